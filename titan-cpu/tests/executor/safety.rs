//! What a careless kernel or launch can ask for: answers are errors or what `docs/semantics.md` says, never anything else.
//! These tests are small, so that they can be run under Miri.

use crate::common::{K, Tensor, all_options, run, shape_of};
use titan_core::ir::{
    Access, BinOp, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, OpKind, Pred, Unit, Value,
};
use titan_core::verify::verify;
use titan_cpu::{Arg, Options, Program, RunError, Scalar};

/// Rounds of a test that needs threads to meet.
const ROUNDS: usize = if cfg!(miri) { 3 } else { 200 };

/// Rows and columns of the tiles of [`segments`].
const TILE: [i32; 2] = if cfg!(miri) { [4, 8] } else { [64, 128] };

/// Each program adds its index to one segment of `y`; those of odd indices take their time before they ask for it.
fn segments() -> Program {
    let mut k = K::new("segments");
    let (off, y) = (k.input("off", Elem::I32, 1), k.output("y", Elem::F32, 2));
    let (p, zero, one, many) = (k.pid(0), k.i32(0), k.i32(1), k.i32(300));
    let odd = k.op(OpKind::Binary(BinOp::And), &[p, one]);
    let times = k.op(OpKind::Binary(BinOp::Mul), &[odd, many]);
    let open = k.0.begin_for(ForKind::Sequential, [zero, times, one], &[]).unwrap();
    k.0.terminate(OpKind::Continue(0), &[]);
    k.0.end_loop(open, &[]);
    let part = k.op(OpKind::Segment, &[y, off, p]);
    let x = k.load(part, &[zero, zero], &TILE);
    let id = k.op(OpKind::Cast(Elem::F32), &[p]);
    let tile = k.op(OpKind::Splat(shape_of(&TILE)), &[id]);
    let tile = k.op(OpKind::Binary(BinOp::Add), &[tile, x]);
    k.store(part, &[zero, zero], tile);
    k.compile(Options { threads: std::num::NonZeroUsize::new(4), ..Options::default() })
}

/// Offsets that go back make segments overlap. One program finds that out and traps; until then, others may be storing to the
/// same rows.
#[test]
fn segments_out_of_order_are_an_error() {
    let program = segments();
    let [rows, cols] = TILE;
    let (end, t) = (i64::from(4 * rows), i64::from(rows));
    let y = Tensor::zeros(Elem::F32, &[4 * rows, cols]);
    for _ in 0..ROUNDS {
        let off = Tensor::ints(Elem::I32, &[9], &[0, end, 3, end, 1, end, 2, end, end]);
        let error = program.run(&[off.arg(), y.arg()], [8, 1, 1]).unwrap_err();
        assert!(
            matches!(&error, RunError::Trap { message, .. } if message.contains("which is not a range")),
            "{error}"
        );
    }
    let off = Tensor::ints(Elem::I32, &[5], &[0, t, t, t + t / 2, end]);
    let y = Tensor::zeros(Elem::F32, &[4 * rows, cols]);
    run(&program, &[off.arg(), y.arg()], [4, 1, 1]);
    // Each program stores a tile to its segment, of the rows that there are.
    let of = |row: i64| {
        if (t..t + t / 2).contains(&row) {
            2.0
        } else if (t + t / 2..2 * t + t / 2).contains(&row) {
            3.0
        } else {
            0.0
        }
    };
    assert_eq!(y.values(), (0..end * i64::from(cols)).map(|i| of(i / i64::from(cols))).collect::<Vec<f64>>());
}

/// `y[p] = 1` where the grid is one axis of `extent(y)`.
fn bounded() -> Program {
    let mut b = Builder::new("bounded", vec![]);
    let y = b.tensor("y", Elem::I32, Access::Mut, false, vec![DimSpec::Any]);
    let p = b.op1(OpKind::ProgramId(0), &[]).unwrap();
    let one = b.i32(1);
    let tile = b.op1(OpKind::Splat(shape_of(&[1])), &[one]).unwrap();
    b.op(OpKind::Store(Unit::Tile), &[y, p, tile]).unwrap();
    let mut kernel = b.finish();
    kernel.sig.grid = GridSpec::Extents(vec![HostExpr::Dim(0, 0)]);
    Program::compile(&verify(kernel).unwrap()).unwrap()
}

/// That programs keep to themselves is proved for every grid that the kernel can have, whatever its arguments.
#[test]
fn grids_beyond_the_proof_are_refused() {
    let program = bounded();
    let y = Tensor::zeros(Elem::I32, &[3]);
    for grid in [[3, 2, 1], [1, 1, 2], [u32::MAX, 1, 1]] {
        let error = program.run(&[y.arg()], grid).unwrap_err();
        assert!(matches!(&error, RunError::BadArguments(message) if message.contains("a grid of")), "{error}");
    }
    run(&program, &[y.arg()], [2, 1, 1]);
    assert_eq!(y.int_values(), [1, 1, 0]);
    run(&program, &[y.arg()], [5, 1, 1]);
    assert_eq!(y.int_values(), [1, 1, 1]);
    for grid in [[0, 1, 1], [3, 0, 1], [0, 0, 0]] {
        run(&program, &[y.arg()], grid);
    }
    run(&program, &[Tensor::zeros(Elem::I32, &[0]).arg()], [0, 1, 1]);
}

fn constant(k: &mut K, v: i32) -> Value {
    k.i32(v)
}

/// Gathers and scatters at the ends of `i32`, of tensors with elements and without.
#[test]
fn indices_of_every_kind_touch_nothing_outside() {
    let far = [i64::from(i32::MIN), -1, 0, 1, 2, 3, i64::from(i32::MAX), 5];
    for extents in [[3, 2], [0, 2], [3, 0], [0, 0]] {
        for options in all_options() {
            let mut k = K::new("far");
            let (x, ix) = (k.input("x", Elem::I32, 2), k.input("ix", Elem::I32, 1));
            let outs = [
                k.output("y", Elem::I32, 2),
                k.output("z", Elem::I32, 2),
                k.output("s", Elem::I32, 2),
                k.output("a", Elem::I32, 2),
            ];
            let zero = constant(&mut k, 0);
            let index = k.load(ix, &[zero], &[8]);
            let (pad, least) = (constant(&mut k, -7), constant(&mut k, i32::MIN));
            let rows = k.op(OpKind::GatherRows { rows: 8, width: 2 }, &[x, index, zero, pad]);
            k.store(outs[0], &[zero, zero], rows);
            let column = k.op(OpKind::Splat(shape_of(&[8])), &[zero]);
            let lanes = k.op(OpKind::Gather, &[x, index, column, pad]);
            let lanes = k.op(OpKind::Reshape(shape_of(&[8, 1])), &[lanes]);
            k.store(outs[1], &[zero, zero], lanes);
            k.run(OpKind::ScatterRows, &[outs[2], index, least, rows]);
            k.run(OpKind::ScatterRows, &[outs[2], index, zero, rows]);
            k.run(OpKind::Atomic(titan_core::ir::AtomicOp::Add), &[outs[3], index, column, index]);
            let program = k.compile(options);
            let n = (extents[0] * extents[1]) as usize;
            let x = Tensor::ints(Elem::I32, &extents, &(1..=n as i64).collect::<Vec<_>>());
            let ix = Tensor::ints(Elem::I32, &[8], &far);
            let [y, z, s, a] = [[8, 2], [8, 1], extents, extents].map(|e| Tensor::zeros(Elem::I32, &e));
            run(&program, &[&x, &ix, &y, &z, &s, &a].map(Tensor::arg), [1, 1, 1]);
            let inside = |i: i64, j: i64| (0..i64::from(extents[0])).contains(&i) && j < i64::from(extents[1]);
            let at = |i: i64, j: i64| if inside(i, j) { i * i64::from(extents[1]) + j + 1 } else { -7 };
            assert_eq!(
                y.int_values(),
                far.iter().flat_map(|i| [at(*i, 0), at(*i, 1)]).collect::<Vec<_>>(),
                "{options:?}"
            );
            assert_eq!(z.int_values(), far.map(|i| at(i, 0)));
            assert_eq!(s.int_values(), x.int_values());
            let sums: Vec<i64> = (0..n as i64).map(|e| if e % 2 == 0 { e / 2 } else { 0 }).collect();
            assert_eq!(a.int_values(), sums);
        }
    }
}

/// Tiles far outside, and tensors without elements: padding comes out, nothing goes in.
#[test]
fn tiles_far_outside_are_padding() {
    for (rows, cols) in [(0, 5), (4, 0), (4, 5)] {
        for at in [i32::MIN, -1, 1, i32::MAX] {
            for options in all_options() {
                let mut k = K::new("outside");
                let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
                let z = k.output("z", Elem::F32, 2);
                let (i, zero) = (k.i32(at), k.i32(0));
                let t = k.load(x, &[i, zero], &[4, 8]);
                let total = k.op(OpKind::Reduce(titan_core::ir::ReduceOp::Sum, 1), &[t]);
                let all = k.op(OpKind::Broadcast { axis: 1, n: 8 }, &[total]);
                let t = k.op(OpKind::Binary(BinOp::Add), &[t, all]);
                k.store(y, &[zero, zero], t);
                k.store(z, &[i, zero], t);
                let program = k.compile(options);
                let x = Tensor::new(Elem::F32, &[rows, cols], &vec![1.0; (rows * cols) as usize]);
                let (y, z) = (Tensor::new(Elem::F32, &[4, 8], &[9.0; 32]), Tensor::zeros(Elem::F32, &[rows, cols]));
                run(&program, &[x.arg(), y.arg(), z.arg()], [1, 1, 1]);
                assert_eq!(y.values(), [0.0; 32]);
                assert!(z.values().iter().all(|v| *v == 0.0));
            }
        }
    }
}

/// Loops whose ranges are as long as `i32` allows, left early or stepping far.
#[test]
fn loops_over_all_of_i32() {
    let mut k = K::new("long");
    let y = k.output("y", Elem::I32, 1);
    let (lo, hi, zero) = (k.i32(i32::MIN), k.i32(i32::MAX), k.i32(0));
    let mut count = zero;
    for step in [i32::MAX, 1 << 30] {
        let step = k.i32(step);
        let open = k.0.begin_for(ForKind::Sequential, [lo, hi, step], &[count]).unwrap();
        let one = k.i32(1);
        let next = k.op(OpKind::Binary(BinOp::Add), &[open.carried[0], one]);
        k.0.terminate(OpKind::Continue(0), &[next]);
        count = k.0.end_loop(open, &[])[0];
    }
    let one = k.i32(1);
    let open = k.0.begin_for(ForKind::Sequential, [lo, hi, one], &[count]).unwrap();
    let index = open.index.unwrap();
    let low = k.i32(i32::MIN + 5);
    let enough = k.op(OpKind::Cmp(Pred::Ge), &[index, low]);
    let mut branch = k.0.begin_if(enough);
    k.0.terminate(OpKind::Break(0), &[index]);
    k.0.begin_else(&mut branch);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.end_if(branch, &[]);
    let carried = open.carried[0];
    k.0.terminate(OpKind::Continue(0), &[carried]);
    let last = k.0.end_loop(open, &[])[0];
    let sum = k.op(OpKind::Binary(BinOp::Add), &[last, count]);
    k.run(OpKind::Set, &[y, zero, sum]);
    let y = Tensor::zeros(Elem::I32, &[1]);
    run(&k.compile(Options::default()), &[y.arg()], [1, 1, 1]);
    // From MIN by MAX: three steps; by 2³⁰: four.
    assert_eq!(y.int_values(), [i64::from(i32::MIN) + 5 + 3 + 4]);
}

/// Every program asserts something false, in the midst of groups that are half done: the error is that of the first program.
#[test]
fn assertions_in_every_program() {
    for options in all_options() {
        let mut k = K::new("asserts");
        let (x, y) = (k.input("x", Elem::F32, 1), k.output("y", Elem::F32, 1));
        let p = k.pid(0);
        let t = k.load(x, &[p], &[8]);
        let zero = k.0.constant(Const::Float(Elem::F32, 0.0));
        let zeros = k.op(OpKind::Splat(shape_of(&[8])), &[zero]);
        let t = k.op(OpKind::Binary(BinOp::Mul), &[t, zeros]);
        let positive = k.op(OpKind::Cmp(Pred::Gt), &[t, zeros]);
        k.run(OpKind::Assert("positive".to_owned()), &[positive]);
        k.store(y, &[p], t);
        let program = k.compile(options);
        let (x, y) = (Tensor::zeros(Elem::F32, &[64]), Tensor::new(Elem::F32, &[64], &[3.0; 64]));
        for _ in 0..ROUNDS {
            let error = program.run(&[x.arg(), y.arg()], [8, 1, 1]).unwrap_err();
            assert!(matches!(&error, RunError::Trap { message, .. } if message == "positive"), "{error}");
        }
        assert_eq!(y.values(), [3.0; 64]);
    }
}

#[test]
fn an_access_outside_names_its_tensor() {
    let mut k = K::new("outside");
    let (x, n, y) = (k.input("x", Elem::F32, 2), k.0.scalar("n", Elem::I32), k.output("y", Elem::F32, 1));
    let zero = k.i32(0);
    let row = k.op(OpKind::Index(0), &[x, zero]);
    let v = k.op(OpKind::Get, &[row, zero]);
    let y = k.shared(y);
    k.run(OpKind::Set, &[y, n, v]);
    let program = k.compile(Options::default());
    let trap = |columns: i32, n: i64| {
        let (x, y) = (Tensor::zeros(Elem::F32, &[2, columns]), Tensor::zeros(Elem::F32, &[3]));
        match program.run(&[x.arg(), Arg::Scalar(Scalar::Int(n)), y.arg()], [1, 1, 1]) {
            Err(RunError::Trap { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(trap(0, 0), "`get` at [0] is outside a view of `x`, whose extents are [0]");
    assert_eq!(trap(1, 3), "`set` at [3] is outside `y`, whose extents are [3]");
}
