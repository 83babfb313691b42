//! Dead code: it goes, and nothing else does.

use crate::machine::{Machine, Rng};
use crate::programs::{arguments, program};
use titan_core::ir::Pred;
use titan_core::lane::{Builder, Func, OpKind, Shuffle, Space, eliminate_dead, verify};
use titan_core::launch::abi::Slot;

fn count(func: &Func) -> usize {
    let mut n = 0;
    func.walk(&mut |_, _| n += 1);
    n
}

#[test]
fn what_a_program_stores_stays_the_same() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..test_depth::cases(400, 120) {
        let mut rng = Rng::new(seed);
        let func = program(&mut rng, seed % 2 == 0);
        let was_right = verify(&func).is_ok();
        let mut less = func.clone();
        eliminate_dead(&mut less);
        assert!(!was_right || verify(&less).is_ok(), "seed {seed}:\n{func}becomes\n{less}");
        (before, after) = (before + count(&func), after + count(&less));
        let mut again = less.clone();
        eliminate_dead(&mut again);
        assert_eq!(again, less, "seed {seed}: once is enough");
        let run = |func: &Func| {
            let (words, memory) = arguments(&mut Rng::new(seed));
            let mut machine = Machine::new(func, words, memory);
            machine.run([0; 3]);
            machine.memory.areas[1].bytes.clone()
        };
        assert_eq!(run(&func), run(&less), "seed {seed}:\n{func}becomes\n{less}");
    }
    assert!(after * 10 < before * 9, "of {before} operations {after} are left");
}

#[test]
fn only_what_nothing_uses_goes() {
    let mut b = Builder::new("k", vec![Slot::Address(0)], 32, 32);
    let (address, lane) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::LaneId, &[]));
    let load = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };
    let store = OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };
    // A chain that ends nowhere, with a load and an exchange in it.
    let x = b.one(load.clone(), &[address]);
    let y = b.one(OpKind::Shuffle(Shuffle::Xor(1)), &[x]);
    b.add(y, lane);
    // A chain that ends in memory, through a loop.
    let (lo, hi, one) = (b.i32(0), b.i32(4), b.i32(1));
    let (open, index, carried) = b.begin_for([lo, hi, one], &[lane]);
    let next = b.add(carried[0], index);
    b.mul(next, next);
    b.terminate(OpKind::Continue(0), &[next]);
    let sum = b.end(open)[0];
    b.op(store.clone(), &[address, sum]);
    // Effects stay without any use.
    let atomic = OpKind::Atomic { op: titan_core::lane::AtomicFn::Add, space: Space::Global, masked: false };
    b.op(atomic.clone(), &[address, lane]);
    b.op(OpKind::CompareSwap(Space::Global), &[address, lane, lane]);
    b.op(OpKind::Barrier, &[]);
    let cond = b.cmp_u(Pred::Lt, lane, one);
    let mut arms = b.begin_if(cond, &[]);
    b.add(sum, sum);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    eliminate_dead(&mut func);
    verify(&func).expect("it is right");
    let mut kinds = Vec::new();
    func.walk(&mut |_, op| kinds.push(op.kind.clone()));
    let left: Vec<OpKind> = kinds.into_iter().filter(|k| !k.is_pure() && !k.is_terminator()).collect();
    assert_eq!(left, [OpKind::For, store, atomic, OpKind::CompareSwap(Space::Global), OpKind::Barrier, OpKind::If]);
    let adds = func.ops.iter().filter(|o| o.kind == OpKind::Int(titan_core::lane::IntBin::Mul)).count();
    assert_eq!(adds, 1, "operations keep their numbers");
    let mut in_body = 0;
    func.walk(&mut |_, op| in_body += usize::from(op.kind == OpKind::Int(titan_core::lane::IntBin::Mul)));
    assert_eq!(in_body, 0, "but dead ones stand in no block");
}
