//! Groups: chains of elementwise operations, reductions and stores that run as one step, against the same kernels step by step.
#![expect(clippy::cast_sign_loss, reason = "test data are small")]

use crate::common::{K, Tensor, all_options, assert_close, data, run, shape_of};
use titan_core::ir::{BinOp, Const, Elem, ForKind, OpKind, ReduceOp, UnOp, Value};

#[test]
fn what_is_the_same_in_every_program_is_stored_by_every_program() {
    for options in all_options() {
        let mut k = K::new("same");
        let (x, y) = (k.input("x", Elem::F32, 1), k.output("y", Elem::F32, 2));
        let (p, zero) = (k.pid(0), k.i32(0));
        let t = k.load(x, &[zero], &[8]);
        let t = k.op(OpKind::Binary(BinOp::Mul), &[t, t]);
        let t = k.op(OpKind::Reshape(shape_of(&[1, 8])), &[t]);
        let t = k.op(OpKind::Binary(BinOp::Add), &[t, t]);
        k.store(y, &[p, zero], t);
        let values = data(Elem::F32, 8, 3);
        let (x, y) = (Tensor::new(Elem::F32, &[8], &values), Tensor::zeros(Elem::F32, &[5, 8]));
        run(&k.compile(options), &[x.arg(), y.arg()], [5, 1, 1]);
        let row: Vec<f64> = values.iter().map(|v| f64::from(*v as f32 * *v as f32 * 2.0)).collect();
        assert_eq!(y.values(), row.repeat(5), "{options:?}");
    }
}

fn binary(k: &mut K, op: BinOp, a: Value, b: Value) -> Value {
    k.op(OpKind::Binary(op), &[a, b])
}

/// `[rows]` to `[rows, n]`.
fn col(k: &mut K, v: Value, n: i32) -> Value {
    k.op(OpKind::Broadcast { axis: 1, n }, &[v])
}

fn sum(k: &mut K, v: Value) -> Value {
    k.op(OpKind::Reduce(ReduceOp::Sum, 1), &[v])
}

/// Runs a kernel on `x` with every option and compares `y` and `z` with what is wanted.
fn check(make: &dyn Fn(&mut K, [Value; 3], Value), extents: [&[i32]; 3], grid: u32, x: &[f64], want: [&[f64]; 2]) {
    for options in all_options() {
        let mut k = K::new("rows");
        let ranks = extents.map(<[i32]>::len);
        let x_param = k.input("x", Elem::F32, ranks[0]);
        let outs = [k.output("y", Elem::F32, ranks[1]), k.output("z", Elem::F32, ranks[2])];
        let p = k.pid(0);
        make(&mut k, [x_param, outs[0], outs[1]], p);
        let tensors = [
            Tensor::new(Elem::F32, extents[0], x),
            Tensor::zeros(Elem::F32, extents[1]),
            Tensor::zeros(Elem::F32, extents[2]),
        ];
        run(&k.compile(options), &tensors.clone().map(|t| t.arg()), [grid, 1, 1]);
        for (tensor, want) in tensors[1..].iter().zip(want) {
            assert_close(&tensor.values(), want, 2e-4, &format!("{extents:?} {options:?}"));
        }
    }
}

/// Rows shorter than a block, as long as one, longer than one, longer than rows that are kept; tiles that reach beyond the
/// tensor. The scale of each row is stored too.
#[test]
fn norms_of_rows_of_every_length() {
    for (rows, n, m) in
        [(1, 5, 3), (4, 7, 10), (3, 64, 7), (2, 300, 3), (1, 1000, 2), (2, 1024, 5), (2, 2500, 3), (1, 9000, 2)]
    {
        let make = |k: &mut K, [x, y, z]: [Value; 3], p: Value| {
            let zero = k.i32(0);
            let t = k.load(x, &[p, zero], &[rows, n]);
            let total = sum(k, t);
            let count = k.0.constant(Const::Float(Elem::F32, n.into()));
            let count = k.op(OpKind::Splat(shape_of(&[rows])), &[count]);
            let mean = binary(k, BinOp::Div, total, count);
            let mean = col(k, mean, n);
            let t = binary(k, BinOp::Sub, t, mean);
            let squares = binary(k, BinOp::Mul, t, t);
            let total = sum(k, squares);
            let scale = binary(k, BinOp::Div, total, count);
            let eps = k.0.constant(Const::Float(Elem::F32, 0.5));
            let eps = k.op(OpKind::Splat(shape_of(&[rows])), &[eps]);
            let scale = binary(k, BinOp::Add, scale, eps);
            let scale = k.op(OpKind::Unary(UnOp::Rsqrt), &[scale]);
            let all = col(k, scale, n);
            let t = binary(k, BinOp::Mul, t, all);
            k.store(y, &[p, zero], t);
            k.store(z, &[p], scale);
        };
        let x = data(Elem::F32, (m * n) as usize, 7);
        let (mut y, mut z) = (Vec::new(), Vec::new());
        for row in x.chunks(n as usize) {
            let mean = row.iter().sum::<f64>() / f64::from(n);
            let scale = (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(n) + 0.5).sqrt().recip();
            y.extend(row.iter().map(|v| (v - mean) * scale));
            z.push(scale);
        }
        check(&make, [&[m, n], &[m, n], &[m]], (m as u32).div_ceil(rows as u32), &x, [&y, &z]);
    }
}

/// As in a softmax whose rows come in pieces: a tile of one element per row takes part, from outside and carried by a loop;
/// what is made of the rows is used by a tile of another shape and by the next iteration.
#[test]
fn rows_carried_by_loops() {
    let (rows, n, pieces) = (4, 48, 3);
    let make = |k: &mut K, [x, y, z]: [Value; 3], p: Value| {
        let (lo, hi, step) = (k.i32(0), k.i32(pieces), k.i32(1));
        let least = k.0.constant(Const::Float(Elem::F32, f64::NEG_INFINITY));
        let least = k.op(OpKind::Splat(shape_of(&[rows])), &[least]);
        let none = k.zero(Elem::F32);
        let none = k.op(OpKind::Splat(shape_of(&[rows])), &[none]);
        let open = k.0.begin_for(ForKind::Sequential, [lo, hi, step], &[least, none]).unwrap();
        let (old, total, index) = (open.carried[0], open.carried[1], open.index.unwrap());
        let t = k.load(x, &[p, index], &[rows, n]);
        let max = k.op(OpKind::Reduce(ReduceOp::Max, 1), &[t]);
        let max = binary(k, BinOp::Max, old, max);
        let all = col(k, max, n);
        let t = binary(k, BinOp::Sub, t, all);
        let e = k.op(OpKind::Unary(UnOp::Exp), &[t]);
        let part = sum(k, e);
        let less = binary(k, BinOp::Sub, old, max);
        let less = k.op(OpKind::Unary(UnOp::Exp), &[less]);
        let total = binary(k, BinOp::Mul, total, less);
        let total = binary(k, BinOp::Add, total, part);
        k.0.terminate(OpKind::Continue(0), &[max, total]);
        let results = k.0.end_loop(open, &[]);
        let wide = col(k, results[1], 2);
        let zero = k.i32(0);
        k.store(y, &[p, zero], wide);
        k.store(z, &[p], results[0]);
    };
    let (m, width) = (8usize, (n * pieces) as usize);
    let x = data(Elem::F32, m * width, 11);
    let max: Vec<f64> = x.chunks(width).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
    let total = x.chunks(width).zip(&max).flat_map(|(row, max)| [row.iter().map(|v| (v - max).exp()).sum::<f64>(); 2]);
    let total: Vec<f64> = total.collect();
    check(&make, [&[8, n * pieces], &[8, 2], &[8]], 2, &x, [&total, &max]);
}

/// The reduction of a tile of one axis is a scalar: it is used as one, as an index, and along the tile.
#[test]
fn sums_that_are_scalars() {
    let n = 40;
    let make = |k: &mut K, [x, y, z]: [Value; 3], p: Value| {
        let t = k.load(x, &[p], &[n]);
        let total = k.op(OpKind::Reduce(ReduceOp::Sum, 0), &[t]);
        let half = k.0.constant(Const::Float(Elem::F32, 0.5));
        let total = binary(k, BinOp::Mul, total, half);
        let all = k.op(OpKind::Splat(shape_of(&[n])), &[total]);
        let t = binary(k, BinOp::Sub, t, all);
        let max = k.op(OpKind::Reduce(ReduceOp::Max, 0), &[t]);
        k.store(y, &[p], t);
        let index = k.op(OpKind::Cast(Elem::I32), &[max]);
        let zero = k.i32(0);
        let index = binary(k, BinOp::Mul, index, zero);
        let index = binary(k, BinOp::Add, index, p);
        let sum = binary(k, BinOp::Add, total, max);
        let z = k.shared(z);
        k.run(OpKind::Set, &[z, index, sum]);
    };
    let x = data(Elem::F32, 120, 5);
    let (mut y, mut z) = (Vec::new(), Vec::new());
    for row in x.chunks(n as usize) {
        let total = row.iter().sum::<f64>() * 0.5;
        y.extend(row.iter().map(|v| v - total));
        z.push(total + row.iter().map(|v| v - total).fold(f64::NEG_INFINITY, f64::max));
    }
    check(&make, [&[120], &[120], &[3]], 3, &x, [&y, &z]);
}

/// A value per row that is repeated along the rows and wanted outside of its group, in a shape with more than two axes.
#[test]
fn repeated_rows_are_tiles_too() {
    let make = |k: &mut K, [x, y, z]: [Value; 3], p: Value| {
        let zero = k.i32(0);
        let t = k.load(x, &[p, zero, zero], &[2, 3, 20]);
        let total = k.op(OpKind::Reduce(ReduceOp::Sum, 2), &[t]);
        let all = k.op(OpKind::Broadcast { axis: 2, n: 20 }, &[total]);
        let turned = k.op(OpKind::Permute([0, 2, 1, 3]), &[all]);
        k.store(z, &[p, zero, zero], turned);
        let t = binary(k, BinOp::Add, t, all);
        k.store(y, &[p, zero, zero], t);
    };
    let x = data(Elem::F32, 4 * 3 * 20, 9);
    let sums: Vec<f64> = x.chunks(20).map(|row| row.iter().sum()).collect();
    let y: Vec<f64> = x.iter().enumerate().map(|(i, v)| v + sums[i / 20]).collect();
    let z: Vec<f64> = (0..x.len()).map(|i| sums[i / 60 * 3 + i % 3]).collect();
    check(&make, [&[4, 3, 20], &[4, 3, 20], &[4, 20, 3]], 2, &x, [&y, &z]);
}
