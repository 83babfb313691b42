//! Folding against evaluation: random operations on constants and arguments, built, run, and computed directly.

use crate::machine::memory::Memory;
use crate::machine::{Machine, Rng, arith};
use titan_core::ir::Pred;
use titan_core::lane::{Builder, IntBin, NvOp, OpKind, Space, Ty, Value, verify};
use titan_core::launch::abi::Slot;

/// A value, and its bits.
type Known = (Value, u64);

const PREDS: [Pred; 6] = [Pred::Eq, Pred::Ne, Pred::Lt, Pred::Le, Pred::Gt, Pred::Ge];

fn interesting(rng: &mut Rng) -> u64 {
    match rng.below(5) {
        0 => rng.of(&[0, 1, 2, 31, 32, 63, u64::MAX, 0xffff_ffff, 0x8000_0000, 0x7fff_ffff, 1 << 63]),
        1 => 1 << rng.below(64),
        2 => rng.below(40).into(),
        _ => rng.word(),
    }
}

fn cut(ty: Ty, bits: u64) -> u64 {
    match ty {
        Ty::Pred => bits & 1,
        Ty::B16 => bits & 0xffff,
        Ty::B32 => bits & 0xffff_ffff,
        Ty::B64 => bits,
    }
}

struct Dag {
    b: Builder,
    known: Vec<Known>,
    folded: usize,
}

impl Dag {
    fn of(&self, rng: &mut Rng, ty: Ty) -> Option<Known> {
        let all: Vec<Known> = self.known.iter().filter(|(v, _)| self.b.ty(*v) == ty).copied().collect();
        (!all.is_empty()).then(|| all[rng.below(all.len() as u32) as usize])
    }

    /// Adds an operation unless its contract forbids the operands.
    fn add(&mut self, kind: &OpKind, args: &[Known]) {
        let bits: Vec<u64> = args.iter().map(|(_, b)| *b).collect();
        let ty = args.first().map(|(v, _)| self.b.ty(*v));
        let Some(out) = arith::plain(kind, ty, &bits) else { return };
        let before = self.b.func().ops.len();
        let values = self.b.op(kind.clone(), &args.iter().map(|(v, _)| *v).collect::<Vec<_>>());
        self.folded += usize::from(self.b.func().ops.len() == before);
        assert_eq!(values.len(), out.len(), "{kind:?}");
        for (value, bits) in values.into_iter().zip(out) {
            self.known.push((value, cut(self.b.ty(value), bits)));
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        let word = rng.of(&[Ty::B32, Ty::B32, Ty::B64]);
        let (Some(x), Some(y), Some(z)) = (self.of(rng, word), self.of(rng, word), self.of(rng, Ty::B32)) else {
            return;
        };
        match rng.below(12) {
            0..=4 => {
                let op = rng.of(IntBin::ALL);
                let shift = matches!(op, IntBin::Shl | IntBin::ShrS | IntBin::ShrU);
                self.add(&OpKind::Int(op), &[x, if shift { z } else { y }]);
            }
            5 => self.add(&OpKind::IntCmp { pred: rng.of(&PREDS), signed: rng.below(2) == 0 }, &[x, y]),
            6 => {
                if let Some(p) = self.of(rng, Ty::Pred) {
                    self.add(&OpKind::Select, &[p, x, y]);
                    self.add(&OpKind::FromPred, &[p]);
                    if let Some(q) = self.of(rng, Ty::Pred) {
                        self.add(&OpKind::Int(rng.of(&[IntBin::And, IntBin::Or, IntBin::Xor])), &[p, q]);
                        self.add(&OpKind::IntCmp { pred: rng.of(&[Pred::Eq, Pred::Ne]), signed: false }, &[p, q]);
                    }
                }
            }
            7 => {
                if let (Some(a), Some(b)) = (self.of(rng, Ty::B32), self.of(rng, Ty::B32)) {
                    self.add(&OpKind::MulWide { signed: rng.below(2) == 0 }, &[a, b]);
                    self.add(&OpKind::Pack, &[a, b]);
                    self.add(&OpKind::Pack, &[a, b, z, a]);
                }
            }
            8 => {
                let to = rng.of(&[Ty::B32, Ty::B64]);
                let from = if to == Ty::B64 { rng.of(&[8, 16, 32]) } else { rng.of(&[8, 16]) };
                self.add(&OpKind::Extend { from, signed: rng.below(2) == 0, to }, &[z]);
            }
            9 => {
                self.add(&OpKind::Truncate(Ty::B16), &[z]);
                if let Some(wide) = self.of(rng, Ty::B64) {
                    self.add(&OpKind::Truncate(Ty::B32), &[wide]);
                }
            }
            10 => {
                self.add(&OpKind::Unpack, &[x]);
                if let (Some(a), Some(b)) = (self.of(rng, Ty::B16), self.of(rng, Ty::B16)) {
                    self.add(&OpKind::Pack, &[a, b]);
                    self.add(&OpKind::Extend { from: 16, signed: rng.below(2) == 0, to: Ty::B32 }, &[a]);
                }
            }
            _ => self.add(&OpKind::UnpackBytes { signed: rng.below(2) == 0 }, &[z]),
        }
    }
}

#[test]
fn what_is_folded_is_what_would_be_computed() {
    let mut folded = 0;
    let dags = test_depth::cases(300, 100);
    for seed in 0..dags as u64 {
        let mut rng = Rng::new(seed);
        let wide = [false, false, true, true];
        let slots: Vec<Slot> = (0..).zip(wide).map(|(param, wide)| Slot::Scalar { param, wide }).collect();
        let mut dag = Dag { b: Builder::new("fold", slots, 32, 32), known: vec![], folded: 0 };
        let mut words = Vec::new();
        for (i, wide) in (0..).zip(wide) {
            let bits = cut(if wide { Ty::B64 } else { Ty::B32 }, interesting(&mut rng));
            let value = dag.b.one(OpKind::Slot(i), &[]);
            dag.known.push((value, bits));
            words.push(bits);
        }
        for _ in 0..6 {
            let ty = rng.of(&[Ty::B32, Ty::B32, Ty::B64, Ty::Pred, Ty::B16]);
            let bits = cut(ty, interesting(&mut rng));
            let value = dag.b.one(OpKind::Const(ty, bits), &[]);
            dag.known.push((value, bits));
        }
        for _ in 0..60 {
            dag.step(&mut rng);
        }
        dag.b.terminate(OpKind::Return, &[]);
        folded += dag.folded;
        let (known, func) = (dag.known, dag.b.finish().expect("operands fit"));
        verify(&func).expect("it is right");
        let mut machine = Machine::new(&func, words, Memory::new());
        machine.run([0; 3]);
        assert!(machine.wrong.is_empty(), "{:?}", machine.wrong);
        for (value, bits) in known {
            assert_eq!(machine.get(value, 0), bits, "seed {seed}: {value} of\n{func}");
        }
    }
    assert!(folded > 3 * dags, "only {folded} operations were not added");
}

/// The widths in which contracts forbid operands: nothing may be made up, and nothing may panic.
#[test]
fn what_no_contract_allows_stays_as_it_is() {
    for (ty, op, x, y) in [
        (Ty::B32, IntBin::DivS, 7, 0),
        (Ty::B32, IntBin::RemU, 7, 0),
        (Ty::B64, IntBin::DivU, 7, 0),
        (Ty::B64, IntBin::RemS, 7, 0),
        (Ty::B32, IntBin::Shl, 1, 32),
        (Ty::B32, IntBin::ShrS, 1, 40),
        (Ty::B64, IntBin::ShrU, 1, 64),
    ] {
        let mut b = Builder::new("k", vec![], 32, 32);
        let x = b.one(OpKind::Const(ty, x), &[]);
        let shift = matches!(op, IntBin::Shl | IntBin::ShrS | IntBin::ShrU);
        let y = b.one(OpKind::Const(if shift { Ty::B32 } else { ty }, y), &[]);
        let z = b.int(op, x, y);
        assert_eq!(b.func().constant(z), None, "{op}");
    }
    // The least number by -1 is itself, and its remainder 0.
    let mut b = Builder::new("k", vec![], 32, 32);
    for (ty, least) in [(Ty::B32, 1u64 << 31), (Ty::B64, 1 << 63)] {
        let (x, y) = (b.one(OpKind::Const(ty, least), &[]), b.one(OpKind::Const(ty, cut(ty, u64::MAX)), &[]));
        let (q, r) = (b.int(IntBin::DivS, x, y), b.int(IntBin::RemS, x, y));
        assert_eq!((b.func().constant(q), b.func().constant(r)), (Some(least), Some(0)), "{ty}");
    }
}

#[test]
fn accesses_whose_condition_is_known_have_none() {
    let mut b = Builder::new("k", vec![Slot::Address(0)], 32, 32);
    let (address, yes, no) = (b.one(OpKind::Slot(0), &[]), b.pred(true), b.pred(false));
    let (x, y) = (b.i32(5), b.i32(6));
    let load = |masked| OpKind::Load { space: Space::Global, bytes: 4, n: 2, offset: 8, masked };
    let store = |masked| OpKind::Store { space: Space::Global, bytes: 4, n: 2, offset: 8, masked };
    assert_eq!(b.op(load(true), &[address, x, y, no]), [x, y]);
    b.op(store(true), &[address, x, y, no]);
    b.op(load(true), &[address, x, y, yes]);
    b.op(store(true), &[address, x, y, yes]);
    let shared = b.one(OpKind::SharedBase, &[]);
    b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: true }, &[shared, address, yes]);
    // Without the condition it would copy: zeros are not nothing.
    b.op(NvOp::CopyAsync { bytes: 16, offset: 16, masked: true }, &[shared, address, no]);
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("operands fit");
    let block = func.block(func.body);
    let kinds: Vec<OpKind> = block.ops.iter().map(|op| func.op(*op).kind.clone()).collect();
    let accesses: Vec<&OpKind> = kinds.iter().filter(|k| !k.is_pure() && !k.is_terminator()).collect();
    let copy = |offset, masked| OpKind::Nv(NvOp::CopyAsync { bytes: 16, offset, masked });
    assert_eq!(accesses, [&load(false), &store(false), &copy(0, false), &copy(16, true)]);
}

#[test]
fn equal_operations_are_one_where_they_are_visible() {
    let mut b = Builder::new("k", vec![], 32, 32);
    let lane = b.one(OpKind::LaneId, &[]);
    let one = b.add_const(lane, 1);
    assert_eq!(b.add_const(lane, 1), one);
    let cond = b.cmp_u(Pred::Lt, lane, one);
    let mut arms = b.begin_if(cond, &[]);
    assert_eq!(b.add_const(lane, 1), one, "visible inside");
    let inner = b.add_const(lane, 2);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    let other = b.add_const(lane, 2);
    assert_ne!(other, inner, "not visible in the other arm");
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    assert!(![inner, other].contains(&b.add_const(lane, 2)), "nor behind");
    // Loads see memory as it is then; votes see the lanes as they are then.
    let base = b.one(OpKind::SharedBase, &[]);
    let load = OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false };
    assert_ne!(b.op(load.clone(), &[base]), b.op(load, &[base]));
    let vote = OpKind::Vote(titan_core::lane::Vote::Any);
    assert_ne!(b.op(vote.clone(), &[cond]), b.op(vote, &[cond]));
}

/// Sums with a constant on one side of a comparison, around every place where they wrap.
#[test]
fn comparisons_of_sums_are_solved_only_where_nothing_wraps() {
    let slots = vec![Slot::Scalar { param: 0, wide: false }, Slot::Extent(1, 0)];
    let mut b = Builder::new("k", slots, 32, 32);
    let (any, extent) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]));
    let mut all = Vec::new();
    for mask in [0, 7, 255, i32::MAX, i32::MAX - 63, -1] {
        let low = b.i32(mask);
        let base = b.and(any, low);
        for c in [1, -1, 57, 63, 64, i32::MAX, i32::MIN] {
            let sum = b.add_const(base, i64::from(c));
            for (pred, signed, other, turned) in PREDS.iter().flat_map(|p| {
                [true, false]
                    .into_iter()
                    .flat_map(move |s| [extent, any].map(|o| [(*p, s, o, false), (*p, s, o, true)]).concat())
            }) {
                let args = if turned { [other, sum] } else { [sum, other] };
                all.push((
                    b.one(OpKind::IntCmp { pred, signed }, &args),
                    (mask, c),
                    (pred, signed, other == any, turned),
                ));
            }
        }
    }
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("operands fit");
    let solved = func.ops.iter().filter(|op| op.kind == OpKind::Int(IntBin::Sub)).count();
    assert!(solved >= 4, "only {solved} comparisons share a difference");
    let numbers = [0, 1, 6, 7, 57, 63, 64, 255, 256, i32::MAX, i32::MAX - 1, i32::MAX - 57, i32::MAX - 64];
    for any in numbers.into_iter().chain([-1, -57, -64, i32::MIN, i32::MIN + 1]) {
        for extent in numbers {
            let words = [any, extent].map(|n| u64::from(n.cast_unsigned())).to_vec();
            let mut machine = Machine::new(&func, words, Memory::new());
            machine.run([0; 3]);
            for (value, (mask, c), (pred, signed, is_any, turned)) in &all {
                let (sum, other) = ((any & mask).wrapping_add(*c), if *is_any { any } else { extent });
                let (x, y) = if *turned { (other, sum) } else { (sum, other) };
                let order = if *signed { x.cmp(&y) } else { x.cast_unsigned().cmp(&y.cast_unsigned()) };
                let want = match pred {
                    Pred::Eq => order.is_eq(),
                    Pred::Ne => order.is_ne(),
                    Pred::Lt => order.is_lt(),
                    Pred::Le => order.is_le(),
                    Pred::Gt => order.is_gt(),
                    Pred::Ge => order.is_ge(),
                };
                assert_eq!(
                    machine.get(*value, 0) != 0,
                    want,
                    "({any} & {mask}) + {c} {pred:?} {other}, signed: {signed}"
                );
            }
        }
    }
}
