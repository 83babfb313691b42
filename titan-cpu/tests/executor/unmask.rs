//! Loops whose first iterations need no masks, as a loop of their own: the results are those of the loop as it was, for masks of every
//! form, at the limits of `i32` too.

use crate::common::{Tensor, run};
use titan_core::ir::{BinOp, Const, Elem, Kernel, OpKind, Pred, Tails};
use titan_core::pipeline::unmask::{unmask, with_masks};
use titan_core::text::{parse_one, print};
use titan_core::verify::{unmasked, verify};
use titan_cpu::{Arg, Options, Program, Scalar};

/// A loop over tiles of 8 keys, with the sums of what a mask leaves; the rows of the mask begin at `%x`.
fn kernel(from: i32, mask: &str) -> Kernel {
    let text = format!(
        "kernel @k(%q: in tensor<f32>[8, 8], %k: in tensor<f32>[NK, 8], %out: mut tensor<f32>[8, 8], %x: i32) grid(1) {{
            %0 = const 0 : i32
            %1 = const 1 : i32
            %8 = const 8 : i32
            %from = const {from} : i32
            %NK = dim<0> %k
            %more = const 7 : i32
            %up = add %NK, %more
            %steps = div %up, %8
            %pad = const 0.0 : f32
            %none = const -1.0 : f32
            %zero = splat %pad : tile<8x8xf32>
            %nothing = splat %none : tile<8x8xf32>
            %qt = load_tile %q[%0, %0] or %pad : tile<8x8xf32>
            %all = for %j = %from to %steps step %1 carry(%sum = %zero) : tile<8x8xf32> unmasked {{
                %kt = load_tile %k[%j, %0] or %pad : tile<8x8xf32>
                %t = permute<1, 0> %kt : tile<8x8xf32>
                %s = mma %qt, %t, %zero : tile<8x8xf32>
                %at = mul %j, %8
                %ats = splat %at : tile<8xi32>
                %column = iota<8> : tile<8xi32>
                %key = add %column, %ats
                %xs = splat %x : tile<8xi32>
                %row = add %column, %xs
                %ends = splat %NK : tile<8xi32>
                %keys = broadcast<0, 8> %key : tile<8x8xi32>
                %rows = broadcast<1, 8> %row : tile<8x8xi32>
                %end = broadcast<0, 8> %ends : tile<8x8xi32>
                {mask}
                %left = select %mask, %s, %nothing
                %next = add %sum, %left
                continue %next
            }}
            store_tile %out[%0, %0], %all
            return
        }}"
    );
    parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn results(kernel: &Kernel, keys: i32, x: i32) -> Vec<f64> {
    let kernel = verify(kernel.clone()).unwrap_or_else(|e| panic!("{e:?}"));
    let program = Program::compile_with(&kernel, Options::default()).unwrap();
    let numbers = |n: i32, step: i32| -> Vec<f64> { (0..n).map(|i| f64::from(i * step % 5 - 2)).collect() };
    let q = Tensor::new(Elem::F32, &[8, 8], &numbers(64, 3));
    let k = Tensor::new(Elem::F32, &[keys, 8], &numbers(keys * 8, 7));
    let out = Tensor::zeros(Elem::F32, &[8, 8]);
    let x = Arg::Scalar(Scalar::Int(x.into()));
    run(&program, &[q.arg(), k.arg(), out.arg(), x], [1, 1, 1]);
    out.values()
}

/// How many loops a kernel has.
fn loops(kernel: &Kernel) -> usize {
    let mut n = 0;
    kernel.walk(&mut |_, op| n += usize::from(op.kind.is_loop()));
    n
}

const KEYS: [i32; 9] = [0, 1, 7, 8, 9, 16, 23, 40, 41];

/// Rows that see nothing, some keys or all, and rows whose numbers wrap.
const ROWS: [i32; 17] =
    [i32::MIN, i32::MIN + 7, -9, -8, -7, -1, 0, 1, 7, 8, 9, 24, 40, 1 << 30, i32::MAX - 8, i32::MAX - 7, i32::MAX];

const MASKS: [&str; 12] = [
    "%mask = lt %keys, %end",
    "%mask = gt %end, %keys",
    "%mask = ge %rows, %keys",
    "%mask = gt %rows, %keys",
    "%mask = le %keys, %rows",
    "%mask = lt %keys, %rows",
    "%a = lt %keys, %end\n%b = ge %rows, %keys\n%mask = and %a, %b",
    "%a = lt %key, %ends\n%b = broadcast<0, 8> %a : tile<8x8xbool>\n%c = gt %rows, %keys\n%mask = and %c, %b",
    "%a = splat %1 : tile<8x8xi32>\n%later = add %keys, %a\n%mask = le %later, %rows",
    "%a = splat %8 : tile<8x8xi32>\n%twice = mul %keys, %a\n%mask = lt %twice, %rows",
    "%a = splat %8 : tile<8x8xi32>\n%less = sub %rows, %a\n%mask = ge %less, %keys",
    "%a = lt %keys, %end\n%c = eq %keys, %rows\n%mask = or %c, %a",
];

#[test]
fn masks_that_hold_at_first_are_left_out() {
    let loops_of = MASKS.iter().flat_map(|mask| [(mask, 0), (mask, 1), (mask, 3)]);
    for (number, (mask, from)) in loops_of.enumerate() {
        let before = kernel(from, mask);
        let after = unmask(&before).unwrap_or_else(|why| panic!("{mask}: {why:?}"));
        assert_eq!((loops(&before), loops(&after)), (1, 2), "{mask}");
        assert_eq!(unmasked(&before, &after), Ok(()), "{mask} from {from}");
        // In the quick depth a ninth of the arguments, other ones for each loop.
        let is_meant = |of: usize| test_depth::is_full() || (of + number).is_multiple_of(KEYS.len());
        let all = KEYS.iter().flat_map(|keys| ROWS.iter().map(move |x| (*keys, *x))).enumerate();
        for (_, (keys, x)) in all.filter(|(of, _)| is_meant(*of)) {
            assert_eq!(results(&before, keys, x), results(&after, keys, x), "{mask}: {keys} keys, {x}, from {from}");
        }
    }
}

#[test]
fn tiles_that_are_whole_have_a_loop_if_the_kernel_asks_for_it() {
    let mut before = kernel(0, "%mask = ge %keys, %rows");
    before.sig.tails = Some(Tails::Split);
    let after = unmask(&before).expect("the tiles of keys are whole at first");
    assert_eq!((loops(&before), loops(&after)), (1, 2));
    assert_eq!(unmasked(&before, &after), Ok(()));
    for keys in KEYS {
        assert_eq!(results(&before, keys, 5), results(&after, keys, 5), "{keys} keys");
    }
}

#[test]
fn other_masks_stay() {
    let masks = [
        // They hold at last, once, or for no first iterations.
        "%mask = ge %keys, %rows",
        "%mask = eq %keys, %rows",
        "%unused = lt %keys, %rows\n%mask = eq %keys, %rows",
        "%mask = lt %rows, %keys",
        "%mask = lt %rows, %end",
        "%minus = sub %end, %keys\n%mask = lt %minus, %rows",
        // Two values from outside, or a product of one, may wrap.
        "%both = add %rows, %end\n%mask = lt %keys, %both",
        "%a = splat %8 : tile<8x8xi32>\n%twice = mul %rows, %a\n%mask = lt %keys, %twice",
        // Of floats.
        "%f = cast %keys : tile<8x8xf32>\n%mask = lt %f, %s",
    ];
    for mask in masks {
        assert_eq!(refused(&kernel(0, mask)), NO_ITERATION, "{mask}");
    }
    assert_eq!(refused(&kernel(-1, "%mask = lt %keys, %end")), NO_ITERATION, "tiles in front of the tensor");
}

const NO_ITERATION: &str = "no iteration of this loop is known to need no masks";

/// The reason why a kernel cannot be split as its schedule says.
fn refused(kernel: &Kernel) -> String {
    assert!(with_masks(kernel).is_empty());
    let why = unmask(kernel).expect_err("no loop is split");
    assert!(kernel.op(why.op).unmasked, "the operation that is marked");
    why.message
}

/// A loop is split if its schedule says so, and only then; a mark at anything else is refused.
#[test]
fn the_schedule_says_which_loops_are_split() {
    let mut before = kernel(0, MASKS[0]);
    assert_eq!(with_masks(&before).len(), 1);
    assert!(print(&before).contains(" : tile<8x8xf32> unmasked {"), "{}", print(&before));
    assert_eq!(parse_one(&print(&before)), Ok(before.clone()));
    let after = unmask(&before).expect("the loop is split");
    assert!(after.ops.iter().all(|op| !op.unmasked) && !print(&after).contains("unmasked"));
    let mut wrong = before.clone();
    for op in &mut wrong.ops {
        op.unmasked |= op.kind == OpKind::Binary(BinOp::Add);
    }
    let why = unmask(&wrong).expect_err("an addition has no iterations");
    assert_eq!((&wrong.op(why.op).kind, &*why.message), (&OpKind::Binary(BinOp::Add), NO_ITERATION));
    before.ops.iter_mut().for_each(|op| op.unmasked = false);
    assert_eq!(unmask(&before), Ok(before.clone()), "nothing says that the loop is split");
}

/// A kernel with one operation changed in each way in which a wrong split or a wrong threshold could differ.
fn mutants(kernel: &Kernel) -> Vec<(String, Kernel)> {
    let mut all = Vec::new();
    let mut add = |what: String, at: usize, change: &dyn Fn(&mut Kernel)| {
        let mut mutant = kernel.clone();
        change(&mut mutant);
        if mutant != *kernel {
            all.push((format!("operation {at}: {what}"), mutant));
        }
    };
    for (at, op) in kernel.ops.iter().enumerate() {
        let mut becomes =
            |kind: OpKind| add(format!("{:?} becomes {kind:?}", op.kind), at, &|k| k.ops[at].kind = kind.clone());
        match &op.kind {
            OpKind::Const(Const::Int(elem @ Elem::I32, n)) => {
                for by in [-8, -1, 1, 8] {
                    becomes(OpKind::Const(Const::Int(*elem, n + by)));
                }
            }
            OpKind::Const(Const::Int(elem @ Elem::Bool, n)) => becomes(OpKind::Const(Const::Int(*elem, 1 - n))),
            OpKind::Binary(BinOp::Min) => becomes(OpKind::Binary(BinOp::Max)),
            OpKind::Binary(BinOp::Max) => becomes(OpKind::Binary(BinOp::Min)),
            OpKind::Binary(BinOp::Add) => becomes(OpKind::Binary(BinOp::Sub)),
            OpKind::Binary(BinOp::Sub) => becomes(OpKind::Binary(BinOp::Add)),
            OpKind::Binary(BinOp::Div) => becomes(OpKind::Binary(BinOp::Rem)),
            OpKind::Binary(BinOp::And) => becomes(OpKind::Binary(BinOp::Or)),
            OpKind::Cmp(pred) => {
                for other in [Pred::Ge, Pred::Gt, Pred::Le, Pred::Lt].into_iter().filter(|other| other != pred) {
                    becomes(OpKind::Cmp(other));
                }
            }
            _ => {}
        }
        // Another operand of the same type, which is defined before.
        for (i, arg) in op.args.iter().enumerate() {
            let ty = kernel.ty(*arg);
            let before =
                kernel.ops[..at].iter().flat_map(|op| &op.results).filter(|v| kernel.ty(**v) == ty && *v != arg);
            for other in before.copied().collect::<Vec<_>>().into_iter().rev().step_by(3).take(4) {
                add(format!("operand {i} of {:?} is another", op.kind), at, &|k| k.ops[at].args[i] = other);
            }
        }
        if op.args.len() > 1 {
            add(format!("{:?} has the first operands exchanged", op.kind), at, &|k| k.ops[at].args.swap(0, 1));
        }
    }
    all
}

/// The checker of split loops accepts no kernel that has other results than the one before.
#[test]
fn no_wrong_split_is_taken_for_right() {
    let (mut refused, mut accepted) = (0, 0);
    for (number, mask) in MASKS.iter().enumerate().filter(|(number, _)| test_depth::is_full() || number % 4 == 2) {
        let from = [0, 1, 3][number % 3];
        let before = kernel(from, mask);
        let after = unmask(&before).expect("a mask is found");
        for (what, mutant) in mutants(&after) {
            if unmasked(&before, &mutant).is_err() {
                refused += 1;
                continue;
            }
            if verify(mutant.clone()).is_err() {
                continue;
            }
            accepted += 1;
            for (keys, x) in KEYS.iter().flat_map(|keys| ROWS.iter().map(move |x| (*keys, *x))) {
                let (want, got) = (results(&before, keys, x), results(&mutant, keys, x));
                assert_eq!(got, want, "{mask} from {from}, {what}: {keys} keys, {x}");
            }
        }
    }
    assert!(refused >= 100 && accepted > 0, "{refused} refused, {accepted} accepted");
}
