//! Reshapes, broadcasts, permutations, interleaving, iota; reductions and scans along every axis.
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "test data are small"
)]

use crate::common::{K, Tensor, all_options, assert_close, data, round_to, run, shape_of};
use titan_core::ir::{ArgOp, BinOp, Const, Elem, OpKind, ReduceOp, Ty, Value};
use titan_cpu::Options;

const SHAPES: [&[i32]; 6] = [&[45], &[6, 70], &[33, 4], &[3, 5, 8], &[2, 3, 4, 5], &[3, 1, 100]];

/// Runs `f` on a tile that is all of a tensor; gives the first result of type `out`.
fn apply(
    elem: Elem,
    shape: &[i32],
    values: &[f64],
    options: Options,
    f: &dyn Fn(&mut K, Value) -> Vec<Value>,
) -> Vec<Vec<f64>> {
    let mut probe = K::new("probe");
    let x = probe.input("x", elem, shape.len());
    let zero = probe.i32(0);
    let t = probe.load(x, &vec![zero; shape.len()], shape);
    let results = f(&mut probe, t);
    let tys: Vec<Ty> = results.iter().map(|v| probe.0.ty(*v)).collect();
    let mut k = K::new("shape");
    let x = k.input("x", elem, shape.len());
    let rank = |ty: &Ty| ty.tile_shape().map_or(1, |s| s.rank());
    let outs: Vec<Value> =
        tys.iter().enumerate().map(|(i, ty)| k.output(&format!("y{i}"), ty.elem(), rank(ty))).collect();
    let zero = k.i32(0);
    let t = k.load(x, &vec![zero; shape.len()], shape);
    let results = f(&mut k, t);
    for ((out, ty), value) in outs.iter().zip(&tys).zip(results) {
        match ty {
            Ty::Tile(..) => k.store(*out, &vec![zero; rank(ty)], value),
            Ty::Scalar(_) => drop(k.run(OpKind::Set, &[*out, zero, value])),
            other => panic!("a result of type {other}"),
        }
    }
    let program = k.compile(options);
    let x = Tensor::new(elem, shape, values);
    let outs: Vec<Tensor> =
        tys.iter().map(|ty| Tensor::zeros(ty.elem(), &ty.tile_shape().map_or(vec![1], |s| s.to_vec()))).collect();
    let args: Vec<_> = [&x].into_iter().chain(&outs).map(Tensor::arg).collect();
    run(&program, &args, [1, 1, 1]);
    outs.iter().map(Tensor::values).collect()
}

fn len(shape: &[i32]) -> usize {
    shape.iter().map(|n| *n as usize).product()
}

/// Coordinates of element `i`.
fn coordinates(shape: &[i32], mut i: usize) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        at[axis] = i % shape[axis] as usize;
        i /= shape[axis] as usize;
    }
    at
}

fn index(shape: &[i32], at: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |i, (a, n)| i * *n as usize + a)
}

#[test]
fn views_of_a_tile_move_its_elements() {
    for options in all_options() {
        for e in Elem::ALL.into_iter().filter(|e| e.bits() >= 8) {
            for shape in SHAPES {
                let x = data(e, len(shape), 3);
                let flat = shape_of(&[len(shape) as i32]);
                let got = apply(e, shape, &x, options, &|k, t| vec![k.op(OpKind::Reshape(flat), &[t])]);
                assert_eq!(got[0], x);
                check_broadcasts(e, shape, &x, options);
                check_permutations(e, shape, &x, options);
            }
        }
    }
}

fn check_broadcasts(e: Elem, shape: &[i32], x: &[f64], options: Options) {
    if shape.len() == 4 {
        return;
    }
    for axis in 0..=shape.len() {
        let mut to = shape.to_vec();
        to.insert(axis, 3);
        let kind = OpKind::Broadcast { axis: axis as u8, n: 3 };
        let got = apply(e, shape, x, options, &|k, t| vec![k.op(kind.clone(), &[t])]);
        for (i, got) in got[0].iter().enumerate() {
            let mut at = coordinates(&to, i);
            at.remove(axis);
            assert_eq!(*got, x[index(shape, &at)], "{kind:?} of {shape:?}");
        }
    }
}

fn check_permutations(e: Elem, shape: &[i32], x: &[f64], options: Options) {
    let rank = shape.len();
    for first in 0..rank {
        for second in (0..rank).filter(|s| *s != first || rank == 1) {
            let mut perm: Vec<usize> = vec![first];
            perm.extend((rank > 1).then_some(second));
            perm.extend((0..rank).rev().filter(|a| *a != first && *a != second));
            let mut kind = [0, 1, 2, 3];
            perm.iter().enumerate().for_each(|(i, p)| kind[i] = *p as u8);
            let to: Vec<i32> = perm.iter().map(|p| shape[*p]).collect();
            let got = apply(e, shape, x, options, &|k, t| vec![k.op(OpKind::Permute(kind), &[t])]);
            for (i, got) in got[0].iter().enumerate() {
                let at = coordinates(&to, i);
                let mut from = vec![0; rank];
                perm.iter().zip(&at).for_each(|(p, a)| from[*p] = *a);
                assert_eq!(*got, x[index(shape, &from)], "{kind:?} of {shape:?}");
            }
        }
    }
}

#[test]
fn chains_of_views_and_arithmetic() {
    for options in all_options() {
        // ((xᵀ broadcast along a new axis) reshaped)ᵀ + the same twice, so that lazy forms meet elementwise operations.
        let (shape, x) = ([6, 10], data(Elem::F32, 60, 9));
        let got = apply(Elem::F32, &shape, &x, options, &|k, t| {
            let t = k.op(OpKind::Permute([1, 0, 2, 3]), &[t]);
            let t = k.op(OpKind::Broadcast { axis: 1, n: 4 }, &[t]);
            let t = k.op(OpKind::Reshape(shape_of(&[40, 6])), &[t]);
            let t = k.op(OpKind::Permute([1, 0, 2, 3]), &[t]);
            let twice = k.op(OpKind::Binary(BinOp::Add), &[t, t]);
            vec![k.op(OpKind::Binary(BinOp::Add), &[twice, t])]
        });
        for (i, got) in got[0].iter().enumerate() {
            let (row, col) = (i / 40, i % 40);
            assert_eq!(*got as f32, 2.0 * x[row * 10 + col / 4] as f32 + x[row * 10 + col / 4] as f32);
        }
    }
}

#[test]
fn interleave_and_split_are_inverse() {
    for e in Elem::ALL.into_iter().filter(|e| e.bits() >= 8) {
        let x = data(e, 60, 4);
        let got = apply(e, &[5, 12], &x, Options::default(), &|k, t| k.run(OpKind::Split, &[t]));
        let want = |odd: usize| (0..30).map(|i| x[i / 6 * 12 + i % 6 * 2 + odd]).collect::<Vec<f64>>();
        assert_eq!(got, [want(0), want(1)]);
        let back = apply(e, &[5, 12], &x, Options::default(), &|k, t| {
            let halves = k.run(OpKind::Split, &[t]);
            vec![k.op(OpKind::Interleave, &halves)]
        });
        assert_eq!(back[0], x);
    }
}

#[test]
fn parts_and_concatenations() {
    for options in all_options() {
        for e in Elem::ALL.into_iter().filter(|e| e.bits() >= 8) {
            let (shape, x) = ([3, 4, 5], data(e, 60, 4));
            let at = |i: usize, j: usize, k: usize| x[i * 20 + j * 5 + k];
            // Cuts of cuts and of transposed tiles, and all of it put together again.
            let got = apply(e, &shape, &x, options, &|k, t| {
                let cut = |k: &mut K, axis: u8, from: i32, n: i32, t| k.op(OpKind::Cut { axis, from, n }, &[t]);
                let inner = cut(k, 1, 1, 2, t);
                let inner = cut(k, 2, 2, 3, inner);
                let turned = k.op(OpKind::Permute([2, 0, 1, 3]), &[t]);
                let row = cut(k, 0, 4, 1, turned);
                let (a, b) = (cut(k, 2, 0, 2, t), cut(k, 2, 2, 3, t));
                let swapped = k.op(OpKind::Concat(2), &[b, a]);
                let twice = k.op(OpKind::Concat(0), &[inner, inner]);
                vec![inner, row, swapped, twice]
            });
            let mut want = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
            for (i, j, k) in (0..3).flat_map(|i| (0..2).flat_map(move |j| (0..3).map(move |k| (i, j, k)))) {
                want[0].push(at(i, j + 1, k + 2));
            }
            want[1].extend((0..12).map(|n| at(n / 4, n % 4, 4)));
            want[2].extend((0..60).map(|n| at(n / 20, n / 5 % 4, (n % 5 + 2) % 5)));
            want[3] = [want[0].clone(), want[0].clone()].concat();
            assert_eq!(got, want, "{e}");
        }
    }
}

#[test]
fn iota_and_splat() {
    let got = apply(Elem::I32, &[1], &[7.0], Options::default(), &|k, t| {
        let i = k.op(OpKind::Iota(300), &[]);
        let seven = k.op(OpKind::Reduce(ReduceOp::Sum, 0), &[t]);
        let s = k.op(OpKind::Splat(shape_of(&[300])), &[seven]);
        vec![k.op(OpKind::Binary(BinOp::Mul), &[i, s]), s]
    });
    assert_eq!(got[0], (0..300).map(|i| f64::from(i * 7)).collect::<Vec<_>>());
    assert_eq!(got[1], [7.0; 300]);
}

/// The elements that each result of a reduction along `axis` is made of, in order.
fn lines(shape: &[i32], axis: usize) -> Vec<Vec<usize>> {
    let mut rest = shape.to_vec();
    let n = rest.remove(axis) as usize;
    let line = |i: usize| {
        let at = coordinates(&rest, i);
        let element = |j: usize| {
            let mut full = at.clone();
            full.insert(axis, j);
            index(shape, &full)
        };
        (0..n).map(element).collect()
    };
    (0..len(&rest).max(1)).map(line).collect()
}

fn fold(op: ReduceOp, e: Elem, xs: &[f64]) -> f64 {
    let numbers = xs.iter().copied().filter(|x| !x.is_nan());
    match op {
        ReduceOp::Sum if e.is_int() => xs.iter().fold(0i64, |s, x| titan_core::ir::fold::wrap(e, s + *x as i64)) as f64,
        ReduceOp::Prod if e.is_int() => {
            xs.iter().fold(1i64, |s, x| titan_core::ir::fold::wrap(e, s.wrapping_mul(*x as i64))) as f64
        }
        ReduceOp::Sum => xs.iter().sum(),
        ReduceOp::Prod => xs.iter().product(),
        ReduceOp::Max => numbers.fold(f64::NAN, f64::max),
        ReduceOp::Min => numbers.fold(f64::NAN, f64::min),
    }
}

fn values_for(op: ReduceOp, e: Elem, n: usize) -> Vec<f64> {
    match op {
        ReduceOp::Prod if !e.is_int() => data(e, n, 8).into_iter().map(|v| round_to(e, 1.0 + v * 0.01)).collect(),
        ReduceOp::Prod => data(e, n, 8).into_iter().map(|v| if v % 2.0 == 0.0 { v + 1.0 } else { v }).collect(),
        ReduceOp::Sum | ReduceOp::Max | ReduceOp::Min => data(e, n, 8),
    }
}

fn tolerance(e: Elem) -> f64 {
    match e {
        Elem::F64 => 1e-13,
        Elem::F32 => 1e-5,
        Elem::F16 => 1e-3,
        Elem::Bf16 => 8e-3,
        _ => 0.0,
    }
}

/// Whether integers of `u64` are within what a `f64` of the test holds.
fn is_exact(e: Elem, v: f64) -> bool {
    e.is_float() || v.abs() < 2f64.powi(53)
}

#[test]
fn reductions_and_scans_along_every_axis() {
    for e in Elem::ALL.into_iter().filter(|e| e.is_arith()) {
        for op in ReduceOp::ALL {
            for shape in SHAPES {
                for axis in 0..shape.len() {
                    let x = values_for(*op, e, len(shape));
                    let got = apply(e, shape, &x, Options::default(), &|k, t| {
                        let scan = k.op(OpKind::Scan(*op, axis as u8), &[t]);
                        vec![k.op(OpKind::Reduce(*op, axis as u8), &[t]), scan]
                    });
                    check_lines(*op, e, shape, axis, &x, &got);
                }
            }
        }
    }
}

fn check_lines(op: ReduceOp, e: Elem, shape: &[i32], axis: usize, x: &[f64], got: &[Vec<f64>]) {
    for (i, line) in lines(shape, axis).iter().enumerate() {
        let xs: Vec<f64> = line.iter().map(|i| x[*i]).collect();
        let close = |got: f64, want: f64| {
            let scale = if e == Elem::F16 || e == Elem::Bf16 { want.abs().max(1.0) } else { want.abs().max(4.0) };
            got == want || (got - want).abs() <= tolerance(e) * scale || !is_exact(e, want)
        };
        assert!(
            close(got[0][i], fold(op, e, &xs)),
            "{op} {e} of {shape:?} along {axis}: {} not {}",
            got[0][i],
            fold(op, e, &xs)
        );
        for (n, at) in line.iter().enumerate() {
            let want = fold(op, e, &xs[..=n]);
            assert!(close(got[1][*at], want), "scan {op} {e} of {shape:?} along {axis}: {} not {want}", got[1][*at]);
        }
    }
}

#[test]
fn extremes_ignore_nan_and_the_first_of_equals_wins() {
    let nan = f64::NAN;
    for e in [Elem::F64, Elem::F32, Elem::F16, Elem::Bf16] {
        let x = [nan, 1.0, 3.0, 3.0, nan, -2.0, nan, nan, nan, nan, nan, nan, 5.0, nan, -2.0, 4.0, 5.0, -2.0];
        let got = apply(e, &[3, 6], &x, Options::default(), &|k, t| {
            let max = k.op(OpKind::Reduce(ReduceOp::Max, 1), &[t]);
            let min = k.op(OpKind::Reduce(ReduceOp::Min, 1), &[t]);
            let argmax = k.run(OpKind::ArgReduce(ArgOp::Max, 1), &[t]);
            let argmin = k.run(OpKind::ArgReduce(ArgOp::Min, 1), &[t]);
            vec![max, min, argmax[0], argmax[1], argmin[0], argmin[1]]
        });
        for (values, want) in
            [(0, [3.0, nan, 5.0]), (1, [-2.0, nan, -2.0]), (2, [3.0, nan, 5.0]), (4, [-2.0, nan, -2.0])]
        {
            assert!(
                got[values].iter().zip(want).all(|(a, b)| *a == b || a.is_nan() && b.is_nan()),
                "{e} {:?}",
                got[values]
            );
        }
        assert_eq!((&got[3][..], &got[5][..]), (&[2.0, 0.0, 0.0][..], &[5.0, 0.0, 2.0][..]));
    }
}

#[test]
fn arg_reductions_of_every_type_and_axis() {
    for e in Elem::ALL.into_iter().filter(|e| e.is_arith()) {
        for shape in SHAPES {
            for axis in 0..shape.len() {
                let x = data(e, len(shape), 21);
                let got = apply(e, shape, &x, Options::default(), &|k, t| {
                    let mut both = k.run(OpKind::ArgReduce(ArgOp::Max, axis as u8), &[t]);
                    both.extend(k.run(OpKind::ArgReduce(ArgOp::Min, axis as u8), &[t]));
                    both
                });
                for (i, line) in lines(shape, axis).iter().enumerate() {
                    let xs: Vec<f64> = line.iter().map(|i| x[*i]).collect();
                    let best = |want: f64| xs.iter().position(|x| *x == want).unwrap() as f64;
                    let (max, min) =
                        (xs.iter().copied().fold(f64::MIN, f64::max), xs.iter().copied().fold(f64::MAX, f64::min));
                    assert_eq!((got[0][i], got[1][i], got[2][i], got[3][i]), (max, best(max), min, best(min)));
                }
            }
        }
    }
}

#[test]
fn reductions_and_scans_by_a_function() {
    for e in [Elem::F32, Elem::I32, Elem::U8, Elem::Bool, Elem::I8] {
        for shape in SHAPES {
            for axis in 0..shape.len() {
                let x = data(e, len(shape), 33);
                // max(a, b), written as a branchless choice; or exclusive or for `bool`.
                let got = apply(e, shape, &x, Options::default(), &|k, t| {
                    let mut results = Vec::new();
                    for kind in [OpKind::ReduceWith(axis as u8), OpKind::ScanWith(axis as u8)] {
                        let init = match e {
                            Elem::F32 => Const::Float(e, -100.0),
                            Elem::I32 | Elem::I8 => Const::Int(e, -128),
                            _ => Const::Int(e, 0),
                        };
                        let init = k.0.constant(init);
                        let (block, [a, b]) = k.0.begin_combine(e);
                        let value = if e == Elem::Bool {
                            k.op(OpKind::Binary(BinOp::Xor), &[a, b])
                        } else {
                            let greater = k.op(OpKind::Cmp(titan_core::ir::Pred::Gt), &[a, b]);
                            k.op(OpKind::Select, &[greater, a, b])
                        };
                        k.0.terminate(OpKind::Yield, &[value]);
                        results.push(k.0.end_combine(kind, &[t, init], block).unwrap());
                    }
                    results
                });
                for (i, line) in lines(shape, axis).iter().enumerate() {
                    let xs: Vec<f64> = line.iter().map(|i| x[*i]).collect();
                    let want = |xs: &[f64]| match e {
                        Elem::Bool => xs.iter().sum::<f64>() % 2.0,
                        _ => xs.iter().copied().fold(f64::MIN, f64::max),
                    };
                    assert_eq!(got[0][i], want(&xs), "{e} {shape:?} {axis}");
                    line.iter().enumerate().for_each(|(n, at)| assert_eq!(got[1][*at], want(&xs[..=n])));
                }
            }
        }
    }
}

#[test]
fn long_rows_sum_accurately() {
    let x = vec![1.0; 4096];
    for e in [Elem::F16, Elem::Bf16, Elem::F32] {
        let got = apply(e, &[4096], &x, Options::default(), &|k, t| vec![k.op(OpKind::Reduce(ReduceOp::Sum, 0), &[t])]);
        assert_close(&got[0], &[4096.0], 0.0, "a sum that f16 alone could not hold");
    }
}
