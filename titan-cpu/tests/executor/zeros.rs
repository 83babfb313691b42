//! The signs of zeros: −0 is less than 0, and the only neutral element of a sum.

use crate::common::{K, Tensor, all_options, run};
use titan_core::ir::{Elem, OpKind, ReduceOp};
use titan_cpu::Options;

const FLOATS: [Elem; 4] = [Elem::F64, Elem::F32, Elem::F16, Elem::Bf16];

/// A kernel that reduces the rows of two, and one that scans them.
fn both(elem: Elem, op: ReduceOp, n: i32, options: Options) -> [titan_cpu::Program; 2] {
    let mut k = K::new("reduce");
    let (x, y) = (k.input("x", elem, 2), k.output("y", elem, 1));
    let zero = k.i32(0);
    let rows = k.load(x, &[zero; 2], &[2, n]);
    let out = k.op(OpKind::Reduce(op, 1), &[rows]);
    k.store(y, &[zero], out);
    let reduce = k.compile(options);
    let mut k = K::new("scan");
    let (x, y) = (k.input("x", elem, 2), k.output("y", elem, 2));
    let zero = k.i32(0);
    let rows = k.load(x, &[zero; 2], &[2, n]);
    let out = k.op(OpKind::Scan(op, 1), &[rows]);
    k.store(y, &[zero; 2], out);
    [reduce, k.compile(options)]
}

/// What a reduction of these zeros is.
fn of_zeros(op: ReduceOp, zeros: &[f64]) -> f64 {
    let has = |negative: bool| zeros.iter().any(|x| x.is_sign_negative() == negative);
    let negative = match op {
        // The sum of zeros is −0 if all are, the greatest of them as well.
        ReduceOp::Sum | ReduceOp::Max => !has(false),
        ReduceOp::Min => has(true),
        ReduceOp::Prod => zeros.iter().filter(|x| x.is_sign_negative()).count() % 2 == 1,
    };
    if negative { -0.0 } else { 0.0 }
}

#[test]
fn reductions_and_scans_of_zeros() {
    for elem in FLOATS {
        for op in ReduceOp::ALL.iter().copied() {
            // Vectors, several of them, and what is left.
            for n in [1, 2, 7, 8, 9, 40, 67] {
                let width = n as usize;
                for options in all_options() {
                    let [reduce, scan] = both(elem, op, n, options);
                    for odd in 0..=width {
                        // All of one sign but for one element; for `odd == width`, all.
                        let row = |most: f64| (0..width).map(move |i| if i == odd { -most } else { most });
                        let values: Vec<f64> = row(0.0).chain(row(-0.0)).collect();
                        let (x, y) = (Tensor::new(elem, &[2, n], &values), Tensor::zeros(elem, &[2]));
                        run(&reduce, &[x.arg(), y.arg()], [1, 1, 1]);
                        let z = Tensor::zeros(elem, &[2, n]);
                        run(&scan, &[x.arg(), z.arg()], [1, 1, 1]);
                        let (reduced, scanned) = (y.values(), z.values());
                        for (r, row) in values.chunks(width).enumerate() {
                            let told = |i: usize| format!("{op} {elem} {i} of {n}, the other sign at {odd}: {row:?}");
                            assert_eq!(reduced[r].to_bits(), of_zeros(op, row).to_bits(), "{}", told(width));
                            for i in 0..width {
                                let want = of_zeros(op, &row[..=i]).to_bits();
                                assert_eq!(scanned[r * width + i].to_bits(), want, "{}", told(i));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The sums of products of two rows, which are computed together.
#[test]
fn sums_of_products() {
    for options in all_options() {
        let mut k = K::new("dot");
        let (a, b, y) = (k.input("a", Elem::F32, 2), k.input("b", Elem::F32, 2), k.output("y", Elem::F32, 1));
        let zero = k.i32(0);
        let (left, right) = (k.load(a, &[zero; 2], &[2, 21]), k.load(b, &[zero; 2], &[2, 21]));
        let products = k.op(OpKind::Binary(titan_core::ir::BinOp::Mul), &[left, right]);
        let out = k.op(OpKind::Reduce(ReduceOp::Sum, 1), &[products]);
        k.store(y, &[zero], out);
        let program = k.compile(options);
        let (a, b) = (Tensor::new(Elem::F32, &[2, 21], &[-1.0; 42]), Tensor::zeros(Elem::F32, &[2, 21]));
        let y = Tensor::zeros(Elem::F32, &[2]);
        run(&program, &[a.arg(), b.arg(), y.arg()], [1, 1, 1]);
        assert!(y.values().iter().all(|x| x.to_bits() == (-0.0f64).to_bits()), "{:?}", y.values());
    }
}

/// Loops that are a matrix product, over tensors of every small K: the accumulator begins with 0, which is added.
#[test]
fn products_of_zeros_in_loops() {
    for elem in [Elem::F32, Elem::F16, Elem::F64] {
        let acc = if elem == Elem::F64 { Elem::F64 } else { Elem::F32 };
        for options in all_options() {
            for depth in [1, 2, 3, 4, 5, 9] {
                let text = format!(
                    "kernel @gemm(%a: in tensor<{elem}>[M, K], %b: in tensor<{elem}>[K, N], %c: mut tensor<{acc}>[M, N])
                     grid(1) {{
                       %zero = const 0 : i32
                       %one = const 1 : i32
                       %four = const 4 : i32
                       %k = dim<1> %a
                       %less = sub %k, %one
                       %q = div %less, %four
                       %steps = add %q, %one
                       %pad = const 0.0 : {elem}
                       %none = const 0.0 : {acc}
                       %start = splat %none : tile<4x4x{acc}>
                       %sum = for %i = %zero to %steps step %one carry(%c0 = %start) : tile<4x4x{acc}> {{
                         %x = load_tile %a[%zero, %i] or %pad : tile<4x4x{elem}>
                         %y = load_tile %b[%i, %zero] or %pad : tile<4x4x{elem}>
                         %z = mma %x, %y, %c0
                         continue %z
                       }}
                       store_tile %c[%zero, %zero], %sum
                       return
                     }}"
                );
                let program = crate::common::compile_text(&text, options);
                let a = Tensor::new(elem, &[4, depth], &vec![-1.0; 4 * depth as usize]);
                let b = Tensor::zeros(elem, &[depth, 4]);
                let c = Tensor::new(acc, &[4, 4], &[7.0; 16]);
                run(&program, &[a.arg(), b.arg(), c.arg()], [1, 1, 1]);
                assert!(c.values().iter().all(|x| x.to_bits() == 0), "{elem}, K = {depth}: {:?}", c.values());
            }
        }
    }
}
