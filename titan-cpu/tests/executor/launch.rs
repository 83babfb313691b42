//! Arguments that are refused, traps, printing, optional tensors, large grids, determinism.
#![expect(clippy::cast_possible_truncation, reason = "test data are small")]

use crate::common::{K, Tensor, compile_text, data, run, shape_of};
use std::sync::{Arc, Mutex};
use titan_core::ir::{Access, BinOp, Const, DimSpec, Elem, Loc, OpKind, Pred, Ty, UnOp};
use titan_cpu::memory::{Memory, MemoryError};
use titan_cpu::{Arg, Options, Program, RunError, Scalar, set_print_sink};

/// `y[p] = x[p]` in tiles of 4 × 4, with a scalar that does nothing.
fn copy() -> Program {
    let mut k = K::new("copy");
    let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
    k.0.scalar("n", Elem::I32);
    let at = [k.pid(0), k.pid(1)];
    let t = k.load(x, &at, &[4, 4]);
    k.store(y, &at, t);
    k.compile(Options::default())
}

fn refusal(args: &[Arg]) -> String {
    match copy().run(args, [1, 1, 1]) {
        Err(RunError::BadArguments(message)) => message,
        other => panic!("{other:?} for {args:?}"),
    }
}

fn tensor(memory: &Memory, offset: usize, extents: [i32; 2], strides: [i64; 2]) -> Arg {
    Arg::Tensor { memory: memory.clone(), offset, extents: extents.to_vec(), strides: strides.to_vec() }
}

#[test]
fn arguments_that_would_not_be_safe_are_refused() {
    let (x, y) = (Memory::zeroed(1024).unwrap(), Memory::zeroed(1024).unwrap());
    let good = tensor(&y, 0, [4, 4], [4, 1]);
    let n = || Arg::Scalar(Scalar::Int(1));
    let cases = [
        (tensor(&x, 0, [16, 17], [17, 1]), "elements 0 ..= 271 of a memory of 256 elements"),
        (tensor(&x, 4, [16, 16], [16, 1]), "elements 1 ..= 256"),
        (tensor(&x, 0, [4, 4], [4, -1]), "elements -3 ..= 12"),
        (tensor(&x, 2, [4, 4], [4, 1]), "byte 2"),
        (tensor(&x, 0, [4, 4], [i64::MAX, 1]), "elements 0 ..="),
        (tensor(&x, 0, [i32::MAX, i32::MAX], [i64::MAX, i64::MAX]), "elements 0 ..="),
        (tensor(&x, usize::MAX - 3, [4, 4], [4, 1]), "elements"),
        (tensor(&x, 0, [-1, 4], [4, 1]), "an extent of -1"),
        (Arg::Tensor { memory: x.clone(), offset: 0, extents: vec![4], strides: vec![1] }, "rank 2, not 1"),
        (
            Arg::Tensor { memory: x.clone(), offset: 0, extents: vec![4, 4], strides: vec![1] },
            "2 extents and 1 strides",
        ),
        (Arg::Absent, "not optional"),
        (Arg::Scalar(Scalar::Int(3)), "is a tensor"),
    ];
    for (bad, part) in cases {
        let message = refusal(&[bad, good.clone(), n()]);
        assert!(message.contains(part) && message.contains("`x`"), "{message} does not say {part}");
    }
    let fine = tensor(&x, 0, [4, 4], [4, 1]);
    assert!(refusal(&[fine.clone(), good.clone()]).contains("2 arguments for 3 parameters"));
    assert!(refusal(&[fine.clone(), good.clone(), Arg::Scalar(Scalar::Float(1.0))]).contains("`n` is an `i32`"));
    assert!(refusal(&[fine.clone(), good.clone(), fine.clone()]).contains("`n` is an `i32`"));
    assert!(matches!(copy().run(&[fine.clone(), good.clone(), n()], [u32::MAX, 1, 1]), Err(RunError::BadArguments(_))));
    assert!(matches!(copy().run(&[fine, good, n()], [1 << 30, 1 << 30, 1 << 30]), Err(RunError::BadArguments(_))));
}

#[test]
fn outputs_that_overlap_are_refused_and_neighbours_are_not() {
    let memory = Memory::zeroed(1024).unwrap();
    let n = || Arg::Scalar(Scalar::Int(1));
    let x = tensor(&memory, 0, [4, 4], [8, 1]);
    for (y, message) in [
        (tensor(&memory, 0, [4, 4], [8, 1]), "`y` is written and overlaps `x`"),
        (tensor(&memory, 12, [4, 4], [8, 1]), "`y` is written and overlaps `x`"),
        (tensor(&memory, 28, [4, 4], [8, 1]), "`y` is written and overlaps `x`"),
        (tensor(&memory, 16, [4, 4], [7, 1]), "`y` is written and overlaps `x`"),
        (tensor(&memory, 512, [4, 4], [0, 1]), "not provably distinct"),
        (tensor(&memory, 512, [4, 4], [3, 1]), "not provably distinct"),
        (tensor(&memory, 512, [4, 4], [1, 1]), "not provably distinct"),
    ] {
        let refused = refusal(&[x.clone(), y, n()]);
        assert!(refused.contains(message), "{refused}");
    }
    // The other four columns of the same rows, and another part of the memory.
    let values: Vec<u8> = (0..64u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    for offset in [16, 512] {
        memory.write(0, &values).unwrap();
        let y = tensor(&memory, offset, [4, 4], [8, 1]);
        run(&copy(), &[x.clone(), y, n()], [1, 1, 1]);
        let mut got = vec![0; 128];
        memory.read(offset, &mut got).unwrap();
        let row: Vec<u8> = (8..12u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
        assert_eq!(got[32..48], row[..]);
    }
}

#[test]
fn memory_checks_the_host_too() {
    let memory = Memory::zeroed(8).unwrap();
    assert_eq!(memory.write(4, &[1; 8]), Err(MemoryError::OutOfBounds { offset: 4, len: 8, size: 8 }));
    assert!(memory.read(usize::MAX, &mut [0]).is_err());
    assert!(Memory::zeroed(usize::MAX).is_err());
    assert!(Memory::zeroed(1 << 62).is_err());
    let other = memory.clone();
    other.write(2, &[7, 8]).unwrap();
    let mut out = [0; 8];
    memory.read(0, &mut out).unwrap();
    assert_eq!(out, [0, 0, 7, 8, 0, 0, 0, 0]);
    assert!(memory.id() == other.id() && memory.id() != Memory::zeroed(8).unwrap().id());
    let empty = Memory::zeroed(0).unwrap();
    assert!(empty.is_empty() && empty.write(0, &[]).is_ok());
}

/// Every program asserts that it is not the one in `x`; the others store 1.
fn trapping() -> Program {
    let mut k = K::new("trap");
    let (x, y) = (k.input("x", Elem::I32, 1), k.output("y", Elem::I32, 1));
    let zero = k.i32(0);
    let bad = k.op(OpKind::Get, &[x, zero]);
    let (p, q) = (k.pid(0), k.pid(1));
    let one = k.i32(1);
    k.0.set_loc(Loc { line: 7, column: 3 });
    let differs = k.op(OpKind::Cmp(Pred::Ne), &[p, bad]);
    let other = k.op(OpKind::Cmp(Pred::Ne), &[q, one]);
    let fine = k.op(OpKind::Binary(BinOp::Or), &[differs, other]);
    k.run(OpKind::Assert("the bad one".to_owned()), &[fine]);
    let y = k.shared(y);
    k.run(OpKind::Set, &[y, p, one]);
    k.compile(Options::default())
}

#[test]
fn a_trap_names_its_place_and_program_and_stops_the_others() {
    let n = 100_000;
    let y = Tensor::zeros(Elem::I32, &[n]);
    let args = |bad: i64| [Tensor::ints(Elem::I32, &[1], &[bad]).arg(), y.arg()];
    let program = trapping();
    let error = program.run(&args(5), [n as u32, 2, 1]).unwrap_err();
    let want =
        RunError::Trap { message: "the bad one".to_owned(), loc: Loc { line: 7, column: 3 }, program: [5, 1, 0] };
    assert_eq!(error, want);
    assert_eq!(error.to_string(), "the bad one (line 7, column 3, program [5, 1, 0])");
    // The same program runs again, and to its end.
    run(&program, &args(-1), [n as u32, 2, 1]);
    assert_eq!(y.int_values(), vec![1; n as usize]);
    // An endless loop in other programs ends when one traps.
    let mut k = K::new("endless");
    let p = k.pid(0);
    let hundred = k.i32(100);
    let not_last = k.op(OpKind::Cmp(Pred::Ne), &[p, hundred]);
    let mut open = k.0.begin_if(not_last);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.begin_else(&mut open);
    let no = k.0.constant(Const::Int(Elem::Bool, 0));
    k.run(OpKind::Assert("enough".to_owned()), &[no]);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.end_if(open, &[]);
    let more = k.i32(1000);
    let late = k.op(OpKind::Cmp(Pred::Gt), &[p, more]);
    let mut open = k.0.begin_if(late);
    let zero = k.i32(0);
    let forever = k.0.begin_loop(&[]);
    let never = k.op(OpKind::Cmp(Pred::Lt), &[p, zero]);
    let mut leave = k.0.begin_if(never);
    k.0.terminate(OpKind::Break(0), &[]);
    k.0.begin_else(&mut leave);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.end_if(leave, &[]);
    k.0.terminate(OpKind::Continue(0), &[]);
    k.0.end_loop(forever, &[]);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.begin_else(&mut open);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.end_if(open, &[]);
    let program = k.compile(Options::default());
    assert!(matches!(program.run(&[], [100_000, 1, 1]), Err(RunError::Trap { .. })));
}

#[test]
fn get_and_set_trap_outside() {
    for (kind, name) in [(OpKind::Get, "get"), (OpKind::Set, "set")] {
        for (i, j) in [(-1, 0), (0, -1), (3, 0), (0, 4), (i32::MIN, i32::MAX)] {
            let mut k = K::new("outside");
            let y = if kind == OpKind::Get { k.input("y", Elem::F32, 2) } else { k.output("y", Elem::F32, 2) };
            let (i, j, v) = (k.i32(i), k.i32(j), k.0.constant(Const::Float(Elem::F32, 1.0)));
            match kind {
                OpKind::Get => drop(k.run(kind.clone(), &[y, i, j])),
                _ => drop(k.run(kind.clone(), &[y, i, j, v])),
            }
            let y = Tensor::zeros(Elem::F32, &[3, 4]);
            let error = k.compile(Options::default()).run(&[y.arg()], [1, 1, 1]).unwrap_err().to_string();
            let outside = "is outside `y`, whose extents are [3, 4]";
            assert!(error.contains(&format!("`{name}` at [")) && error.contains(outside), "{error}");
            assert_eq!(y.values(), [0.0; 12]);
        }
    }
}

#[test]
fn a_tile_of_conditions_is_asserted_as_a_whole() {
    let mut k = K::new("assert");
    let x = k.input("x", Elem::Bool, 1);
    let zero = k.i32(0);
    let t = k.load(x, &[zero], &[40]);
    k.run(OpKind::Assert("all".to_owned()), &[t]);
    let program = k.compile(Options::default());
    let mut values = vec![1.0; 40];
    assert!(program.run(&[Tensor::new(Elem::Bool, &[40], &values).arg()], [1, 1, 1]).is_ok());
    values[33] = 0.0;
    assert!(program.run(&[Tensor::new(Elem::Bool, &[40], &values).arg()], [1, 1, 1]).is_err());
}

/// Without the requirement, the kernel would be refused: its loop might never end.
#[test]
fn steps_of_loops_are_required_to_be_positive() {
    let text = "kernel @step(%n: i32) grid(1) require(%n > 0) {
        %lo = const 0 : i32
        %hi = const 5 : i32
        for %i = %lo to %hi step %n {
            continue
        }
        return
    }";
    let program = compile_text(text, Options::default());
    assert!(program.run(&[Arg::Scalar(Scalar::Int(2))], [1, 1, 1]).is_ok());
    for step in [0, -1] {
        let refused = program.run(&[Arg::Scalar(Scalar::Int(step))], [1, 1, 1]);
        assert!(matches!(refused, Err(RunError::BadArguments(_))), "{refused:?}");
    }
}

#[test]
fn kernels_print_whole_lines() {
    let mut k = K::new("print");
    let (x, h) = (k.input("x", Elem::I32, 2), k.0.scalar("h", Elem::F16));
    let (u, b) = (k.0.scalar("u", Elem::U64), k.0.scalar("b", Elem::Bool));
    let zero = k.i32(0);
    let t = k.load(x, &[zero, zero], &[2, 3]);
    let p = k.pid(0);
    k.run(OpKind::Print("{} {{}} t = {}, {} {} {}".to_owned()), &[p, t, h, u, b]);
    let program = k.compile(Options::default());
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&lines);
    set_print_sink(Some(Arc::new(move |line: &str| sink.lock().unwrap().push(line.to_owned()))));
    let args = [
        Tensor::ints(Elem::I32, &[2, 3], &[1, -2, 3, 4, 5, 6]).arg(),
        Arg::Scalar(Scalar::Float(-0.1)),
        Arg::Scalar(Scalar::Int(-1)),
        Arg::Scalar(Scalar::Int(5)),
    ];
    run(&program, &args, [3, 1, 1]);
    set_print_sink(None);
    let mut lines = lines.lock().unwrap().clone();
    lines.sort();
    let line = |p: i32| format!("{p} {{}} t = [[1, -2, 3], [4, 5, 6]], -0.099975586 18446744073709551615 true\n");
    assert_eq!(lines, [line(0), line(1), line(2)]);
}

#[test]
fn optional_tensors_are_present_or_not() {
    let mut k = K::new("optional");
    let bias = k.0.tensor("bias", Elem::F32, Access::In, true, vec![DimSpec::Any]);
    let y = k.output("y", Elem::F32, 1);
    let zero = k.i32(0);
    let present = k.op(OpKind::Present, &[bias]);
    let mut open = k.0.begin_if(present);
    let t = k.load(bias, &[zero], &[8]);
    k.0.terminate(OpKind::Yield, &[t]);
    k.0.begin_else(&mut open);
    let minus = k.0.constant(Const::Float(Elem::F32, -1.0));
    let t = k.op(OpKind::Splat(shape_of(&[8])), &[minus]);
    k.0.terminate(OpKind::Yield, &[t]);
    let t = k.0.end_if(open, &[Ty::Tile(Elem::F32, shape_of(&[8]))])[0];
    k.store(y, &[zero], t);
    let program = k.compile(Options::default());
    let y = Tensor::zeros(Elem::F32, &[8]);
    run(&program, &[Arg::Absent, y.arg()], [1, 1, 1]);
    assert_eq!(y.values(), [-1.0; 8]);
    run(&program, &[Tensor::new(Elem::F32, &[8], &[2.0; 8]).arg(), y.arg()], [1, 1, 1]);
    assert_eq!(y.values(), [2.0; 8]);
}

#[test]
fn scalar_arguments_of_every_type() {
    for e in Elem::ALL {
        let mut k = K::new("scalar");
        let n = k.0.scalar("n", e);
        let y = k.output("y", e, 1);
        let zero = k.i32(0);
        let t = k.op(OpKind::Splat(shape_of(&[4])), &[n]);
        k.store(y, &[zero], t);
        let program = k.compile(Options::default());
        let y = Tensor::zeros(e, &[4]);
        let (arg, want) = if e.is_float() { (Scalar::Float(-1.5), -1.5) } else { (Scalar::Int(1), 1.0) };
        run(&program, &[Arg::Scalar(arg), y.arg()], [1, 1, 1]);
        assert_eq!(y.values(), [want; 4], "{e}");
    }
}

#[test]
fn large_grids_run_every_program_once() {
    let mut k = K::new("grid");
    let y = k.output("y", Elem::I32, 3);
    let at = [k.pid(0), k.pid(1), k.pid(2)];
    let old = k.op(OpKind::Get, &[y, at[0], at[1], at[2]]);
    let counts: Vec<_> = (0..3).map(|axis| k.op(OpKind::NumPrograms(axis), &[])).collect();
    let mut sum = old;
    for v in at.iter().chain(&counts) {
        sum = k.op(OpKind::Binary(BinOp::Add), &[sum, *v]);
    }
    k.run(OpKind::Set, &[y, at[0], at[1], at[2], sum]);
    let program = k.compile(Options::default());
    let y = Tensor::zeros(Elem::I32, &[101, 67, 13]);
    run(&program, &[y.arg()], [101, 67, 13]);
    let want: Vec<i64> = (0..101 * 67 * 13).map(|i| i / 871 + i / 13 % 67 + i % 13 + 181).collect();
    assert_eq!(y.int_values(), want);
    run(&program, &[y.arg()], [0, 67, 13]);
    assert_eq!(y.int_values(), want, "an empty grid runs nothing");
}

#[test]
fn partitioned_kernels_give_the_same_bits_every_time() {
    let mut k = K::new("softmax");
    let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
    let (p, zero) = (k.pid(0), k.i32(0));
    let t = k.load(x, &[p, zero], &[2, 300]);
    let max = k.op(OpKind::Reduce(titan_core::ir::ReduceOp::Max, 1), &[t]);
    let max = k.op(OpKind::Broadcast { axis: 1, n: 300 }, &[max]);
    let t = k.op(OpKind::Binary(BinOp::Sub), &[t, max]);
    let t = k.op(OpKind::Unary(UnOp::Exp), &[t]);
    let sum = k.op(OpKind::Reduce(titan_core::ir::ReduceOp::Sum, 1), &[t]);
    let sum = k.op(OpKind::Broadcast { axis: 1, n: 300 }, &[sum]);
    let t = k.op(OpKind::Binary(BinOp::Div), &[t, sum]);
    k.store(y, &[p, zero], t);
    let program = k.compile(Options::default());
    let x = Tensor::new(Elem::F32, &[999, 300], &data(Elem::F32, 999 * 300, 4));
    let mut first = None;
    for _ in 0..5 {
        let y = Tensor::zeros(Elem::F32, &[999, 300]);
        run(&program, &[x.arg(), y.arg()], [500, 1, 1]);
        let got = y.values();
        for row in got.chunks(300) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        }
        assert_eq!(*first.get_or_insert(got.clone()), got);
    }
}

#[test]
fn programs_are_shared_between_threads() {
    let program = copy();
    let x = Tensor::new(Elem::F32, &[64, 64], &data(Elem::F32, 4096, 1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let y = Tensor::zeros(Elem::F32, &[64, 64]);
                    run(&program, &[x.arg(), y.arg(), Arg::Scalar(Scalar::Int(0))], [16, 16, 1]);
                    assert_eq!(y.values(), x.values());
                }
            });
        }
    });
}
