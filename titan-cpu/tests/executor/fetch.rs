//! Atomic updates that return what they found, by many programs at once.
#![expect(clippy::cast_sign_loss, reason = "test data are small")]

use crate::common::{K, Tensor, run, shape_of};
use crate::memory::constant;
use titan_core::ir::{Elem, FetchOp, OpKind, Unit};
use titan_cpu::Options;

#[test]
fn what_is_fetched_by_all_programs_is_each_value_once() {
    let (n, programs) = (64i32, 200u32);
    for e in Elem::ALL.into_iter().filter(|e| e.is_arith_int() && e.bits() >= 16) {
        let mut k = K::new("fetch");
        let (c, y) = (k.output("c", e, 1), k.output("y", e, 1));
        let (p, zero) = (k.pid(0), k.i32(0));
        let zeros = k.op(OpKind::Splat(shape_of(&[n])), &[zero]);
        let one = constant(&mut k, e, 1.0);
        let ones = k.op(OpKind::Splat(shape_of(&[n])), &[one]);
        let found = k.op(OpKind::Fetch(FetchOp::Add), &[c, zeros, ones]);
        k.run(OpKind::Store(Unit::Tile), &[y, p, found]);
        let program = k.compile(Options::default());
        let total = n * programs as i32;
        let (c, y) = (Tensor::ints(e, &[1], &[0]), Tensor::ints(e, &[total], &vec![-1; total as usize]));
        run(&program, &[c.arg(), y.arg()], [programs, 1, 1]);
        let mut found = y.int_values();
        found.sort_unstable();
        assert_eq!(found, (0..i64::from(total)).collect::<Vec<_>>(), "{e}");
        assert_eq!(c.int_values(), [i64::from(total)], "{e}");
    }
}

#[test]
fn of_all_programs_one_exchanges() {
    for e in [Elem::I32, Elem::U64, Elem::F32, Elem::F64, Elem::F16, Elem::I16] {
        let mut k = K::new("exchange");
        let (c, y) = (k.output("c", e, 1), k.output("y", Elem::I32, 1));
        let (p, zero) = (k.pid(0), k.i32(0));
        let index = k.op(OpKind::Splat(shape_of(&[1])), &[zero]);
        let number = |k: &mut K, x: f64| {
            let value = constant(k, e, x);
            k.op(OpKind::Splat(shape_of(&[1])), &[value])
        };
        let (three, five) = (number(&mut k, 3.0), number(&mut k, 5.0));
        let both = k.run(OpKind::CompareExchange, &[c, index, three, five]);
        let done = k.op(OpKind::Cast(Elem::I32), &[both[1]]);
        k.run(OpKind::Store(Unit::Tile), &[y, p, done]);
        let program = k.compile(Options::default());
        let (c, y) = (Tensor::new(e, &[1], &[3.0]), Tensor::ints(Elem::I32, &[300], &[9; 300]));
        run(&program, &[c.arg(), y.arg()], [300, 1, 1]);
        assert_eq!(c.values(), [5.0], "{e}");
        assert_eq!(y.int_values().iter().sum::<i64>(), 1, "{e}");
    }
}
