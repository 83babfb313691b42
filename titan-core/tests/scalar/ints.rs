//! Integers against Rust's: exhaustive in 8 bits, edges and random numbers in the others; conditions by their truth tables.

#![expect(trivial_numeric_casts, reason = "one text for every type")]

use crate::harness::{Lane, integers, target};
use titan_core::ir::{BinOp, Elem, Pred, ReduceOp, UnOp};
use titan_core::lower::scalar::{binary, combine, compare, constant, neutral, unary};

/// The register of an integer.
fn register(elem: Elem, v: i64) -> u64 {
    if elem.bits() == 64 { v as u64 } else { u64::from(v as u32) }
}

fn pred(p: Pred, order: std::cmp::Ordering) -> bool {
    match p {
        Pred::Eq => order.is_eq(),
        Pred::Ne => order.is_ne(),
        Pred::Lt => order.is_lt(),
        Pred::Le => order.is_le(),
        Pred::Gt => order.is_gt(),
        Pred::Ge => order.is_ge(),
    }
}

/// The operations of two integers.
fn of_integers() -> impl Iterator<Item = BinOp> {
    BinOp::ALL.iter().copied().filter(|op| *op != BinOp::Powf)
}

/// The low 128 bits of a product, which are all of those that an upper half has.
fn whole_product(x: i128, y: i128) -> i128 {
    x.wrapping_mul(y)
}

macro_rules! of_type {
    ($name:ident, $t:ident, $elem:expr, $abs:expr) => {
        #[test]
        fn $name() {
            let elem = $elem;
            let mut xs: Vec<$t> = if elem.bits() == 8 {
                ($t::MIN..=$t::MAX).collect()
            } else {
                integers(400).iter().step_by(test_depth::cases(9, 25)).map(|x| *x as $t).collect()
            };
            xs.extend([0, 1, 2, 7, 8, 31, 32, 63, 64, $t::MIN, $t::MAX]);
            xs.sort_unstable();
            xs.dedup();
            let target = target(true);
            let bits = |v: $t| register(elem, v as i64);
            for op in [UnOp::Neg, UnOp::Abs, UnOp::Not] {
                let lane = Lane::new(&[elem], |b, v| unary(b, &target, op, elem, v[0]));
                let mut call = lane.call();
                for x in &xs {
                    let want = match op {
                        UnOp::Neg => x.wrapping_neg(),
                        UnOp::Not => !x,
                        _ => $abs(*x),
                    };
                    assert_eq!(call(&[bits(*x)]), bits(want), "{op} {x}");
                }
            }
            for op in [UnOp::CountOnes, UnOp::LeadingZeros] {
                let lane = Lane::new(&[elem], |b, v| unary(b, &target, op, elem, v[0]));
                let mut call = lane.call();
                for x in &xs {
                    let want = if op == UnOp::CountOnes { x.count_ones() } else { x.leading_zeros() };
                    assert_eq!(call(&[bits(*x)]), u64::from(want), "{op} {x}");
                }
            }
            for op in of_integers() {
                let lane = Lane::new(&[elem, elem], |b, v| binary(b, &target, op, elem, v[0], v[1]));
                let mut call = lane.call();
                for x in &xs {
                    for y in &xs {
                        let (x, y) = (*x, *y);
                        let inside = (0..i128::from($t::BITS)).contains(&i128::from(y));
                        let amount = y as u32;
                        let want = match op {
                            BinOp::Add => x.wrapping_add(y),
                            BinOp::Sub => x.wrapping_sub(y),
                            BinOp::Mul => x.wrapping_mul(y),
                            BinOp::Div => {
                                if y == 0 {
                                    0
                                } else {
                                    x.wrapping_div(y)
                                }
                            }
                            BinOp::Rem => {
                                if y == 0 {
                                    x
                                } else {
                                    x.wrapping_rem(y)
                                }
                            }
                            BinOp::And => x & y,
                            BinOp::Or => x | y,
                            BinOp::Xor => x ^ y,
                            BinOp::Shl => {
                                if inside {
                                    x << amount
                                } else {
                                    0
                                }
                            }
                            BinOp::Shr => {
                                if inside {
                                    x >> amount
                                } else if i128::from(x) < 0 {
                                    !0
                                } else {
                                    0
                                }
                            }
                            BinOp::Min => x.min(y),
                            BinOp::Max => x.max(y),
                            BinOp::MulHi => (whole_product(x.into(), y.into()) >> $t::BITS) as $t,
                            BinOp::Powf => panic!("not of integers"),
                        };
                        assert_eq!(call(&[bits(x), bits(y)]), bits(want), "{x} {op} {y}");
                    }
                }
            }
            for p in Pred::ALL {
                let lane = Lane::new(&[elem, elem], |b, v| compare(b, &target, *p, elem, v[0], v[1]));
                let mut call = lane.call();
                for x in &xs {
                    for y in &xs {
                        assert_eq!(call(&[bits(*x), bits(*y)]) != 0, pred(*p, x.cmp(y)), "{x} {p} {y}");
                    }
                }
            }
            for op in ReduceOp::ALL {
                let lane = Lane::new(&[elem], |b, v| {
                    let start = constant(b, neutral(*op, elem));
                    combine(b, &target, *op, elem, start, v[0])
                });
                let mut call = lane.call();
                for x in &xs {
                    assert_eq!(call(&[bits(*x)]), bits(*x), "the neutral element of {op}");
                }
            }
        }
    };
}
of_type!(i8_is_rusts, i8, Elem::I8, i8::wrapping_abs);
of_type!(u8_is_rusts, u8, Elem::U8, std::convert::identity);
of_type!(i16_is_rusts, i16, Elem::I16, i16::wrapping_abs);
of_type!(u16_is_rusts, u16, Elem::U16, std::convert::identity);
of_type!(i32_is_rusts, i32, Elem::I32, i32::wrapping_abs);
of_type!(u32_is_rusts, u32, Elem::U32, std::convert::identity);
of_type!(i64_is_rusts, i64, Elem::I64, i64::wrapping_abs);
of_type!(u64_is_rusts, u64, Elem::U64, std::convert::identity);

/// Known operands take other ways through the builder, which must lead to the same place.
#[test]
fn constants_fold_to_what_they_would_compute() {
    let target = target(true);
    for elem in [Elem::I8, Elem::U8, Elem::I32, Elem::U32, Elem::I64, Elem::U64] {
        let bits = |v| Lane::new(&[], |b, _| constant(b, titan_core::ir::Const::Int(elem, v))).call()(&[]);
        let xs = [0i64, 1, -1, 5, 127, -128, i64::MIN, i64::MAX].map(|x| (x, bits(x)));
        for op in of_integers() {
            let open = Lane::new(&[elem, elem], |b, v| binary(b, &target, op, elem, v[0], v[1]));
            let mut open = open.call();
            for y in [0i64, 1, 2, 3, 7, 8, 9, 31, 32, 64, -1, -8, 127] {
                let c = titan_core::ir::Const::Int(elem, y);
                let half = Lane::new(&[elem], |b, v| {
                    let y = constant(b, c);
                    binary(b, &target, op, elem, v[0], y)
                });
                let (mut half, y_bits) = (half.call(), bits(y));
                for (x, x_bits) in xs {
                    let both = Lane::new(&[], |b, _| {
                        let (x, y) = (constant(b, titan_core::ir::Const::Int(elem, x)), constant(b, c));
                        binary(b, &target, op, elem, x, y)
                    });
                    let want = open(&[x_bits, y_bits]);
                    assert_eq!(half(&[x_bits]), want, "{x} {op} constant {y} of {elem}");
                    assert_eq!(both.call()(&[]), want, "constants {x} {op} {y} of {elem}");
                }
            }
        }
    }
}

#[test]
fn conditions_have_their_truth_tables() {
    let (target, elem) = (target(true), Elem::Bool);
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for p in Pred::ALL {
            let lane = Lane::new(&[elem, elem], |b, v| compare(b, &target, *p, elem, v[0], v[1]));
            assert_eq!(lane.call()(&[x, y]) != 0, pred(*p, x.cmp(&y)), "{x} {p} {y}");
        }
        for (op, want) in [(BinOp::And, x & y), (BinOp::Or, x | y), (BinOp::Xor, x ^ y)] {
            let lane = Lane::new(&[elem, elem], |b, v| binary(b, &target, op, elem, v[0], v[1]));
            assert_eq!(lane.call()(&[x, y]), want, "{x} {op} {y}");
        }
        let lane = Lane::new(&[elem], |b, v| unary(b, &target, UnOp::Not, elem, v[0]));
        assert_eq!(lane.call()(&[x]), 1 - x);
    }
}

#[test]
fn what_an_element_cannot_do_is_a_defect_that_the_builder_keeps() {
    let target = target(true);
    for (op, elem) in [(UnOp::Exp, Elem::I32), (UnOp::Not, Elem::F32), (UnOp::Neg, Elem::E4m3), (UnOp::Abs, Elem::Bool)]
    {
        let (mut b, v) = crate::eval::builder(&[false]);
        unary(&mut b, &target, op, elem, v[0]);
        let error = b.finish().expect_err("it is refused");
        assert!(error.message.contains(op.name()) && error.message.contains(elem.name()), "{error}");
    }
}
