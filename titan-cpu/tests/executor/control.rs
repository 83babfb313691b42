//! Loops, branches, early exits, carried values.
#![expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "test data are small")]

use crate::common::{K, Tensor, all_options, data, run, shape_of};
use titan_core::ir::{BinOp, Elem, ForKind, OpKind, Pred, Ty, Value};
use titan_cpu::{Options, Program};

fn binary(k: &mut K, op: BinOp, a: Value, b: Value) -> Value {
    k.op(OpKind::Binary(op), &[a, b])
}

/// Runs a kernel on one `i32` and gives what it stored to an output of `n`.
fn run_int(program: &Program, x: i64, n: i32, grid: u32) -> Vec<i64> {
    let y = Tensor::zeros(Elem::I32, &[n]);
    run(program, &[Tensor::ints(Elem::I32, &[1], &[x]).arg(), y.arg()], [grid, 1, 1]);
    y.int_values()
}

/// A kernel that reads one integer and stores what `f` makes of it.
fn integer_kernel(f: impl FnOnce(&mut K, Value) -> Value) -> Program {
    let mut k = K::new("integer");
    let (x, y) = (k.input("x", Elem::I32, 1), k.output("y", Elem::I32, 1));
    let zero = k.i32(0);
    let n = k.op(OpKind::Get, &[x, zero]);
    let value = f(&mut k, n);
    k.run(OpKind::Set, &[y, zero, value]);
    k.compile(Options::default())
}

#[test]
fn a_for_carries_values_and_may_run_no_time() {
    // (a, b) = (b, a + b), which needs all carried values to be replaced at once.
    let program = integer_kernel(|k, n| {
        let [zero, one] = [0, 1].map(|i| k.i32(i));
        let open = k.0.begin_for(ForKind::Sequential, [zero, n, one], &[zero, one]).unwrap();
        let (a, b) = (open.carried[0], open.carried[1]);
        let sum = binary(k, BinOp::Add, a, b);
        k.0.terminate(OpKind::Continue(0), &[b, sum]);
        k.0.end_loop(open, &[])[0]
    });
    for (n, want) in [(-5, 0), (0, 0), (1, 1), (10, 55), (40, 102_334_155)] {
        assert_eq!(run_int(&program, n, 1, 1), [want], "{n}");
    }
}

#[test]
fn a_for_steps_to_below_its_bound_without_overflow() {
    let program = integer_kernel(|k, n| {
        let [zero, step] = [0, 1 << 30].map(|i| k.i32(i));
        let open = k.0.begin_for(ForKind::Sequential, [n, step, step], &[zero]).unwrap();
        let one = k.i32(1);
        let next = binary(k, BinOp::Add, open.carried[0], one);
        k.0.terminate(OpKind::Continue(0), &[next]);
        k.0.end_loop(open, &[])[0]
    });
    for (lo, want) in [(0, 1), (1 << 30, 0), (-1, 2), (i64::from(i32::MIN), 3)] {
        assert_eq!(run_int(&program, lo, 1, 1), [want], "{lo}");
    }
}

#[test]
fn breaks_and_continues_of_nested_loops() {
    // for i in 0..n { for j in 0..10 { if j == 3 { continue 'outer with +1 } if i == 5 { break 'outer with 1000 } s += 10 } }
    let program = integer_kernel(|k, n| {
        let [zero, one, three, five, ten, thousand] = [0, 1, 3, 5, 10, 1000].map(|i| k.i32(i));
        let outer = k.0.begin_for(ForKind::Sequential, [zero, n, one], &[zero]).unwrap();
        let (i, s) = (outer.index.unwrap(), outer.carried[0]);
        let inner = k.0.begin_for(ForKind::Sequential, [zero, ten, one], &[s]).unwrap();
        let (j, t) = (inner.index.unwrap(), inner.carried[0]);
        let is_three = k.op(OpKind::Cmp(Pred::Eq), &[j, three]);
        let mut first = k.0.begin_if(is_three);
        let plus = binary(k, BinOp::Add, t, one);
        k.0.terminate(OpKind::Continue(1), &[plus]);
        k.0.begin_else(&mut first);
        let is_five = k.op(OpKind::Cmp(Pred::Eq), &[i, five]);
        let mut second = k.0.begin_if(is_five);
        let plus = binary(k, BinOp::Add, t, thousand);
        k.0.terminate(OpKind::Break(1), &[plus]);
        k.0.begin_else(&mut second);
        let plus = binary(k, BinOp::Add, t, ten);
        k.0.terminate(OpKind::Yield, &[plus]);
        let u = k.0.end_if(second, &[Ty::I32])[0];
        k.0.terminate(OpKind::Yield, &[u]);
        let u = k.0.end_if(first, &[Ty::I32])[0];
        k.0.terminate(OpKind::Continue(0), &[u]);
        let t = k.0.end_loop(inner, &[])[0];
        k.0.terminate(OpKind::Continue(0), &[t]);
        k.0.end_loop(outer, &[])[0]
    });
    for (n, want) in [(0, 0), (1, 31), (5, 155), (6, 1155), (20, 1155)] {
        assert_eq!(run_int(&program, n, 1, 1), [want], "{n}");
    }
}

#[test]
fn a_loop_runs_until_its_break() {
    // The steps of Collatz's sequence from n, and its greatest number, by a `loop` with results of another kind than it carries.
    let program = integer_kernel(|k, n| {
        let zero = k.i32(0);
        let open = k.0.begin_loop(&[n, zero]);
        let (x, steps) = (open.carried[0], open.carried[1]);
        let [one, two, three] = [1, 2, 3].map(|i| k.i32(i));
        let done = k.op(OpKind::Cmp(Pred::Le), &[x, one]);
        let mut end = k.0.begin_if(done);
        k.0.terminate(OpKind::Break(0), &[steps]);
        k.0.begin_else(&mut end);
        k.0.terminate(OpKind::Yield, &[]);
        k.0.end_if(end, &[]);
        let odd = binary(k, BinOp::Rem, x, two);
        let odd = k.op(OpKind::Cmp(Pred::Ne), &[odd, zero]);
        let half = binary(k, BinOp::Div, x, two);
        let triple = binary(k, BinOp::Mul, x, three);
        let triple = binary(k, BinOp::Add, triple, one);
        let next = k.op(OpKind::Select, &[odd, triple, half]);
        let more = binary(k, BinOp::Add, steps, one);
        k.0.terminate(OpKind::Continue(0), &[next, more]);
        k.0.end_loop(open, &[Ty::I32])[0]
    });
    for (n, want) in [(1, 0), (2, 1), (27, 111), (97, 118)] {
        assert_eq!(run_int(&program, n, 1, 1), [want], "{n}");
    }
}

#[test]
fn a_program_returns_from_anywhere() {
    let mut k = K::new("return");
    let (x, y) = (k.input("x", Elem::I32, 1), k.output("y", Elem::I32, 1));
    let [zero, one, ten] = [0, 1, 10].map(|i| k.i32(i));
    let p = k.pid(0);
    let n = k.op(OpKind::Get, &[x, zero]);
    k.run(OpKind::Set, &[y, p, one]);
    let open = k.0.begin_for(ForKind::Sequential, [zero, ten, one], &[]).unwrap();
    let j = open.index.unwrap();
    let late = k.op(OpKind::Cmp(Pred::Ge), &[p, n]);
    let hit = k.op(OpKind::Cmp(Pred::Eq), &[j, p]);
    let both = k.op(OpKind::Binary(BinOp::And), &[late, hit]);
    let mut leave = k.0.begin_if(both);
    k.0.terminate(OpKind::Return, &[]);
    k.0.begin_else(&mut leave);
    k.0.terminate(OpKind::Yield, &[]);
    k.0.end_if(leave, &[]);
    k.run(OpKind::Set, &[y, p, j]);
    k.0.terminate(OpKind::Continue(0), &[]);
    k.0.end_loop(open, &[]);
    let two = k.i32(200);
    k.run(OpKind::Set, &[y, p, two]);
    let program = k.compile(Options::default());
    assert_eq!(run_int(&program, 3, 12, 12), [200, 200, 200, 2, 3, 4, 5, 6, 7, 8, 200, 200]);
}

#[test]
fn an_if_gives_values_of_both_kinds() {
    let mut k = K::new("if");
    let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
    let (p, zero, two) = (k.pid(0), k.i32(0), k.i32(2));
    let t = k.load(x, &[p, zero], &[2, 8]);
    let odd = binary(&mut k, BinOp::Rem, p, two);
    let odd = k.op(OpKind::Cmp(Pred::Ne), &[odd, zero]);
    let mut open = k.0.begin_if(odd);
    let twice = binary(&mut k, BinOp::Add, t, t);
    k.0.terminate(OpKind::Yield, &[twice, p]);
    k.0.begin_else(&mut open);
    let (less, before) = (k.i32(1), k.op(OpKind::Binary(BinOp::Sub), &[p, two]));
    let _ = less;
    k.0.terminate(OpKind::Yield, &[t, before]);
    let results = k.0.end_if(open, &[Ty::Tile(Elem::F32, shape_of(&[2, 8])), Ty::I32]);
    let added = k.op(OpKind::Cast(Elem::F32), &[results[1]]);
    let added = k.op(OpKind::Splat(shape_of(&[2, 8])), &[added]);
    // `t` itself is used again after both arms.
    let sum = binary(&mut k, BinOp::Add, results[0], added);
    let sum = binary(&mut k, BinOp::Add, sum, t);
    k.store(y, &[p, zero], sum);
    let program = k.compile(Options::default());
    let values = data(Elem::F32, 10 * 8, 2);
    let (x, y) = (Tensor::new(Elem::F32, &[10, 8], &values), Tensor::zeros(Elem::F32, &[10, 8]));
    run(&program, &[x.arg(), y.arg()], [5, 1, 1]);
    for (i, got) in y.values().iter().enumerate() {
        let p = i / 16;
        let v = values[i] as f32;
        let want = if p % 2 == 1 { (v + v) + p as f32 + v } else { v + (p as f32 - 2.0) + v };
        assert_eq!(*got as f32, want, "element {i}");
    }
}

#[test]
fn tiles_are_exchanged_between_iterations() {
    for options in all_options() {
        // (a, b) = (b, a) n times, then a · 10 + b; and the values before the loop are still whole after it.
        let mut k = K::new("exchange");
        let (x, n, y) = (k.input("x", Elem::I32, 1), k.input("n", Elem::I32, 1), k.output("y", Elem::I32, 1));
        let [zero, one, ten] = [0, 1, 10].map(|i| k.i32(i));
        let (a, b) = (k.load(x, &[zero], &[6]), k.load(x, &[one], &[6]));
        let n = k.op(OpKind::Get, &[n, zero]);
        let open = k.0.begin_for(ForKind::Sequential, [zero, n, one], &[a, b]).unwrap();
        let (c, d) = (open.carried[0], open.carried[1]);
        k.0.terminate(OpKind::Continue(0), &[d, c]);
        let results = k.0.end_loop(open, &[]);
        let ten = k.op(OpKind::Splat(shape_of(&[6])), &[ten]);
        let high = binary(&mut k, BinOp::Mul, results[0], ten);
        let sum = binary(&mut k, BinOp::Add, high, results[1]);
        k.store(y, &[zero], sum);
        let sum = binary(&mut k, BinOp::Sub, a, b);
        k.store(y, &[one], sum);
        let program = k.compile(options);
        let x: Vec<i64> = (1..=12).collect();
        for times in [0i64, 1, 2, 7] {
            let y = Tensor::zeros(Elem::I32, &[12]);
            let args =
                [Tensor::ints(Elem::I32, &[12], &x).arg(), Tensor::ints(Elem::I32, &[1], &[times]).arg(), y.arg()];
            run(&program, &args, [1, 1, 1]);
            let (a, b) = if times % 2 == 0 { (0, 6) } else { (6, 0) };
            let want: Vec<i64> = (0..6).map(|i| x[i + a] * 10 + x[i + b]).chain([-6; 6]).collect();
            assert_eq!(y.int_values(), want, "{times} times");
        }
    }
}

#[test]
fn distributed_loops_run_each_iteration_once() {
    let mut k = K::new("distributed");
    let (x, y) = (k.input("x", Elem::I32, 1), k.output("y", Elem::I32, 1));
    let (zero, three) = (k.i32(0), k.i32(3));
    let n = k.op(OpKind::Get, &[x, zero]);
    let lo = k.i32(2);
    let open = k.0.begin_for(ForKind::Distributed, [lo, n, three], &[]).unwrap();
    let j = open.index.unwrap();
    let p = k.pid(0);
    let hundred = k.i32(100);
    let value = binary(&mut k, BinOp::Mul, j, hundred);
    let value = binary(&mut k, BinOp::Add, value, p);
    let y = k.shared(y);
    let old = k.op(OpKind::Get, &[y, j]);
    let value = binary(&mut k, BinOp::Add, value, old);
    k.run(OpKind::Set, &[y, j, value]);
    k.0.terminate(OpKind::Continue(0), &[]);
    k.0.end_loop(open, &[]);
    let program = k.compile(Options::default());
    for programs in [1, 2, 3, 50] {
        let want: Vec<i64> = (0..40)
            .map(|j| if j >= 2 && j % 3 == 2 { j * 100 + (j - 2) / 3 % i64::from(programs) } else { 0 })
            .collect();
        assert_eq!(run_int(&program, 40, 40, programs), want, "{programs} programs");
    }
}

#[test]
fn unflatten_is_row_major() {
    let mut k = K::new("unflatten");
    let (x, y) = (k.input("x", Elem::I32, 1), k.output("y", Elem::I32, 1));
    let p = k.pid(0);
    let extents = [7, 3, 5].map(|i| k.i32(i));
    let parts = k.run(OpKind::Unflatten, &[p, extents[0], extents[1], extents[2]]);
    let hundred = k.i32(100);
    let ten = k.i32(10);
    let a = binary(&mut k, BinOp::Mul, parts[0], hundred);
    let b = binary(&mut k, BinOp::Mul, parts[1], ten);
    let sum = binary(&mut k, BinOp::Add, a, b);
    let sum = binary(&mut k, BinOp::Add, sum, parts[2]);
    k.run(OpKind::Set, &[y, p, sum]);
    let _ = x;
    let program = k.compile(Options::default());
    let want: Vec<i64> = (0..105).map(|i| i / 15 * 100 + i / 5 % 3 * 10 + i % 5).collect();
    assert_eq!(run_int(&program, 0, 105, 105), want);
}

#[test]
fn scalars_and_tiles_survive_many_programs_in_one_thread() {
    // Every program leaves its loop in another way; buffers must not leak from one to the next.
    for options in all_options() {
        let mut k = K::new("leaks");
        let (x, y) = (k.input("x", Elem::F32, 2), k.output("y", Elem::F32, 2));
        let (p, zero, one) = (k.pid(0), k.i32(0), k.i32(1));
        let t = k.load(x, &[p, zero], &[1, 32]);
        let open = k.0.begin_loop(&[t, zero]);
        let (u, i) = (open.carried[0], open.carried[1]);
        let sum = binary(&mut k, BinOp::Add, u, t);
        let done = k.op(OpKind::Cmp(Pred::Ge), &[i, p]);
        let mut end = k.0.begin_if(done);
        k.0.terminate(OpKind::Break(0), &[sum]);
        k.0.begin_else(&mut end);
        k.0.terminate(OpKind::Yield, &[]);
        k.0.end_if(end, &[]);
        let next = binary(&mut k, BinOp::Add, i, one);
        k.0.terminate(OpKind::Continue(0), &[sum, next]);
        let result = k.0.end_loop(open, &[Ty::Tile(Elem::F32, shape_of(&[1, 32]))])[0];
        k.store(y, &[p, zero], result);
        let program = k.compile(options);
        let x: Vec<f64> = (0..50 * 32).map(|i| f64::from(i % 32)).collect();
        let (tx, ty) = (Tensor::new(Elem::F32, &[50, 32], &x), Tensor::zeros(Elem::F32, &[50, 32]));
        run(&program, &[tx.arg(), ty.arg()], [50, 1, 1]);
        let want: Vec<f64> = (0..50 * 32).map(|i| f64::from(i % 32 * (i / 32 + 2))).collect();
        assert_eq!(ty.values(), want);
    }
}
