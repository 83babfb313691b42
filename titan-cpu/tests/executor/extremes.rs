//! Tensors of shapes, strides and places at the ends of their types. Those without elements fit anywhere: kernels read padding
//! from them and store nothing. The others are refused. No number overflows on the way.

use crate::common::{K, Tensor, all_options, run, shape_of};
use titan_core::ir::{AtomicOp, BinOp, Elem, OpKind};
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Options, Program, RunError};

const MAX: i32 = i32::MAX;

fn tensor(offset: usize, extents: &[i32], strides: &[i64]) -> Arg {
    let memory = Memory::zeroed(64).unwrap();
    Arg::Tensor { memory, offset, extents: extents.to_vec(), strides: strides.to_vec() }
}

/// Shapes of three axes without elements, as far out as there are numbers for.
fn far_and_empty() -> Vec<Arg> {
    let mut all = Vec::new();
    for extents in [[MAX, MAX, 0], [0, MAX, MAX], [MAX, 0, MAX], [0, 0, 0]] {
        for strides in [[i64::MAX; 3], [i64::MIN; 3], [i64::MAX, i64::MIN, 1], [0, 0, 0], [1, i64::MIN, i64::MAX]] {
            for offset in [0, 64, usize::MAX - 3, 1 << 63] {
                all.push(tensor(offset, &extents, &strides));
            }
        }
    }
    all
}

/// Everything that a kernel can do to tensors of three axes, at coordinates up to the ends of `i32`.
fn everything(at: i32, options: Options) -> Program {
    let mut k = K::new("everything");
    let (x, y) = (k.input("x", Elem::F32, 3), k.output("y", Elem::F32, 3));
    let (counts, told) = (k.output("counts", Elem::F32, 3), k.output("told", Elem::F32, 1));
    let (i, zero) = (k.i32(at), k.i32(0));
    let far = k.op(OpKind::Splat(shape_of(&[4])), &[i]);
    let pad = k.zero(Elem::F32);
    let t = k.load(x, &[i, i, i], &[2, 2, 4]);
    let rows = k.op(OpKind::GatherRows { rows: 4, width: 4 }, &[x, far, far, i, pad]);
    let lanes = k.op(OpKind::Gather, &[x, far, far, far, pad]);
    let part = k.op(OpKind::Slice(1), &[x, zero, i]);
    let row = k.op(OpKind::Index(0), &[part, i]);
    let inner = k.load(row, &[i, i], &[2, 4]);
    k.store(y, &[i, i, i], t);
    let counts = k.shared(counts);
    k.run(OpKind::ScatterRows, &[counts, far, far, i, rows]);
    k.run(OpKind::Scatter, &[counts, far, far, far, lanes]);
    k.run(OpKind::Atomic(AtomicOp::Add), &[counts, far, far, far, lanes]);
    let sums = [t, rows, inner].map(|tile| {
        let dims = k.0.ty(tile).tile_shape().unwrap().len();
        let flat = k.op(OpKind::Reshape(shape_of(&[i32::try_from(dims).unwrap()])), &[tile]);
        k.op(OpKind::Reduce(titan_core::ir::ReduceOp::Sum, 0), &[flat])
    });
    let sum = sums.into_iter().reduce(|a, b| k.op(OpKind::Binary(BinOp::Add), &[a, b])).unwrap();
    let one = k.op(OpKind::Splat(shape_of(&[1])), &[sum]);
    k.store(told, &[zero], one);
    k.compile(options)
}

#[test]
fn tensors_without_elements_fit_anywhere() {
    for options in all_options() {
        for at in [i32::MIN, -1, 0, 1, MAX] {
            let program = everything(at, options);
            for far in far_and_empty() {
                let told = Tensor::new(Elem::F32, &[1], &[7.0]);
                run(&program, &[far.clone(), far.clone(), far, told.arg()], [1, 1, 1]);
                assert_eq!(told.values(), [0.0], "padding at {at}");
            }
        }
    }
}

#[test]
fn one_memory_holds_empty_parts_beside_each_other() {
    let program = everything(0, Options::default());
    let memory = Memory::zeroed(64).unwrap();
    let arg = |offset: usize, extents: [i32; 3]| Arg::Tensor {
        memory: memory.clone(),
        offset,
        extents: extents.to_vec(),
        strides: vec![MAX.into(), 1 << 40, 1],
    };
    let told = Tensor::zeros(Elem::F32, &[1]);
    run(&program, &[arg(0, [MAX, 0, MAX]), arg(0, [1, 1, 16]), arg(usize::MAX - 3, [MAX, MAX, 0]), told.arg()], [1; 3]);
    let args = [arg(0, [1, 1, 1]), arg(0, [1, 1, 16]), arg(0, [0, 1, 1]), told.arg()];
    let error = program.run(&args, [1; 3]).unwrap_err();
    assert!(matches!(&error, RunError::BadArguments(why) if why == "`y` is written and overlaps `x`"), "{error}");
}

#[test]
fn tensors_with_elements_that_are_nowhere_are_refused() {
    let program = everything(0, Options::default());
    let good = || tensor(0, &[1, 1, 1], &[1, 1, 1]);
    let told = Tensor::zeros(Elem::F32, &[1]);
    for extents in [[MAX, MAX, MAX], [1, 1, MAX], [MAX, 1, 1], [2, 2, 2]] {
        for stride in [i64::MIN, i64::MIN + 1, i64::MAX, 1 << 62] {
            for offset in [0, 60, usize::MAX - 3, 1 << 63] {
                let bad = tensor(offset, &extents, &[stride; 3]);
                for args in [[bad.clone(), good(), good()], [good(), bad.clone(), good()]] {
                    let [x, y, counts] = args;
                    let error = program.run(&[x, y, counts, told.arg()], [1; 3]).unwrap_err();
                    assert!(matches!(error, RunError::BadArguments(_)), "{extents:?} {stride} {offset}: {error}");
                }
            }
        }
    }
}

/// The two parts of an axis of three, both written by one launch.
#[test]
fn parts_of_every_axis_may_be_written_in_one_launch() {
    let mut k = K::new("both");
    let (x, y) = (k.output("x", Elem::F32, 3), k.output("y", Elem::F32, 3));
    let zero = k.i32(0);
    for tensor in [x, y] {
        let t = k.load(tensor, &[zero; 3], &[4, 4, 8]);
        let one = k.0.constant(titan_core::ir::Const::Float(Elem::F32, 1.0));
        let ones = k.op(OpKind::Splat(shape_of(&[4, 4, 8])), &[one]);
        let sum = k.op(OpKind::Binary(BinOp::Add), &[t, ones]);
        k.store(tensor, &[zero; 3], sum);
    }
    let program = k.compile(Options::default());
    let shape = [3i32, 4, 6];
    for axis in 0..3 {
        for at in 0..=shape[axis] {
            let whole = Tensor::zeros(Elem::F32, &shape);
            let part = |from: i32, n: i32| {
                let mut part = whole.clone();
                part.extents[axis] = n;
                part.offset = usize::try_from(i64::from(from) * part.strides[axis] * 4).unwrap();
                part.arg()
            };
            let args = [part(0, at), part(at, shape[axis] - at)];
            run(&program, &args, [1; 3]);
            assert!(whole.values().iter().all(|v| *v == 1.0), "axis {axis} at {at}");
            if 0 < at {
                let error = program.run(&[part(0, at), part(at - 1, 1)], [1; 3]).unwrap_err();
                assert!(error.to_string().contains("`x` is written and overlaps `y`"), "{error}");
            }
        }
    }
}

/// A launch that fails in its first program ends, however many are left.
#[test]
fn a_failure_ends_the_largest_grid() {
    let mut k = K::new("never");
    let (p, q) = (k.pid(0), k.pid(1));
    let no = k.op(OpKind::Cmp(titan_core::ir::Pred::Ne), &[p, p]);
    let _ = q;
    k.run(OpKind::Assert("never".to_owned()), &[no]);
    let mut kernel = k.0.finish();
    let all = titan_core::ir::HostExpr::Const(i64::from(MAX));
    kernel.sig.grid = titan_core::ir::GridSpec::Extents(vec![all.clone(), all]);
    let program = Program::compile(&titan_core::verify::verify(kernel).unwrap()).unwrap();
    let error = program.run(&[], [MAX.cast_unsigned(), MAX.cast_unsigned(), 1]).unwrap_err();
    assert!(matches!(error, RunError::Trap { program: [0, 0, 0], .. }), "{error}");
}
