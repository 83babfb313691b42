//! Float arithmetic against Rust's and against rounding by its definition; halves over all of their numbers.

use crate::harness::{Format, Lane, Random, codes, doubles, singles, target};
use titan_core::ir::{BinOp, Elem, Pred, ReduceOp, UnOp};
use titan_core::lower::scalar::{binary, combine, compare, constant, mul_add, neutral, unary};

const HALVES: [Elem; 2] = [Elem::F16, Elem::Bf16];
const BINARY: [BinOp; 6] = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Min, BinOp::Max];

fn value(elem: Elem, code: u16) -> f64 {
    if elem == Elem::F16 { half::f16::from_bits(code).to_f64() } else { half::bf16::from_bits(code).to_f64() }
}

/// A result that may be any NaN where the right one is NaN.
fn same(elem: Elem, got: u64, want: u16) -> bool {
    let got = got as u16;
    got == want || (value(elem, got).is_nan() && value(elem, want).is_nan())
}

/// The half nearest to an exact `f64`.
fn rounded(elem: Elem, format: &Format, x: f64) -> u16 {
    let nan = if elem == Elem::F16 { 0x7e00 } else { 0x7fc0 };
    if x.is_nan() {
        return nan;
    }
    let infinity = format.numbers.len() as u16;
    let magnitude = if x.is_infinite() { infinity } else { format.nearest_to(x.abs()) as u16 };
    magnitude | if x.is_sign_negative() { 0x8000 } else { 0 }
}

fn extreme(op: BinOp, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return if x.is_nan() { y } else { x };
    }
    let first = x < y || (x == y && x.is_sign_negative());
    if first == (op == BinOp::Min) { x } else { y }
}

/// Every half with some others: sums and products are exact in `f64` or far from ties, quotients are far from ties there.
#[test]
fn halves_are_rounded_once() {
    let others: [u16; 9] = [0x0000, 0x8000, 0x0001, 0x3c01, 0xbf81, 0x0400, 0x7bff, 0xff80, 0x7fff];
    let mut random = Random(77);
    for elem in HALVES {
        let format = Format::of(elem);
        for native in [true, false] {
            let target = target(native);
            for op in BINARY {
                let lane = Lane::new(&[elem, elem], |b, v| binary(b, &target, op, elem, v[0], v[1]));
                let mut call = lane.call();
                for code in codes() {
                    let (a, c) = (random.word() as u16, others[usize::from(code) % 9]);
                    for (p, q) in [(code, a), (c, code)] {
                        let (x, y) = (value(elem, p), value(elem, q));
                        let exact = match op {
                            BinOp::Add => x + y,
                            BinOp::Sub => x - y,
                            BinOp::Mul => x * y,
                            BinOp::Div => x / y,
                            _ => extreme(op, x, y),
                        };
                        let (got, want) = (call(&[p.into(), q.into()]), rounded(elem, &format, exact));
                        assert!(same(elem, got, want), "{elem} {p:#x} {op} {q:#x}: {got:#x}, not {want:#x}");
                    }
                }
            }
        }
    }
}

#[test]
fn functions_that_round_are_those_of_rust() {
    type Round = fn(f64) -> f64;
    let ops: [(UnOp, Round); 9] = [
        (UnOp::Floor, f64::floor),
        (UnOp::Ceil, f64::ceil),
        (UnOp::Trunc, f64::trunc),
        (UnOp::Round, f64::round),
        (UnOp::RoundTiesEven, f64::round_ties_even),
        (UnOp::Sqrt, f64::sqrt),
        (UnOp::Recip, f64::recip),
        (UnOp::Neg, |x| -x),
        (UnOp::Abs, f64::abs),
    ];
    let target = target(false);
    for (op, exact) in ops {
        for elem in HALVES {
            let format = Format::of(elem);
            let lane = Lane::new(&[elem], |b, v| unary(b, &target, op, elem, v[0]));
            let mut call = lane.call();
            for code in codes() {
                let want = rounded(elem, &format, exact(value(elem, code)));
                assert!(same(elem, call(&[code.into()]), want), "{op} of {elem} {code:#x}");
            }
        }
        let lane = Lane::new(&[Elem::F32], |b, v| unary(b, &target, op, Elem::F32, v[0]));
        let mut call = lane.call();
        let ties = (0..200u32).map(|n| (n as f32 * 0.5).to_bits()).chain((0..64).map(|n| 0x4affff00 + n * 7));
        for x in singles(test_depth::cases(20_000, 2_000)).into_iter().chain(ties) {
            let want = exact(f32::from_bits(x).into()) as f32;
            let got = f32::from_bits(call(&[x.into()]) as u32);
            assert!(
                got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                "{op} of {x:#x}: {got}, not {want}"
            );
        }
        let lane = Lane::new(&[Elem::F64], |b, v| unary(b, &target, op, Elem::F64, v[0]));
        let mut call = lane.call();
        for x in doubles(test_depth::cases(20_000, 1_000)) {
            let (got, want) = (f64::from_bits(call(&[x.to_bits()])), exact(x));
            assert!(
                got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                "{op} of {x:e}: {got}, not {want}"
            );
        }
    }
}

#[test]
fn singles_and_doubles_are_those_of_rust() {
    let target = target(false);
    let mut random = Random(5);
    let edges = singles(0);
    for op in BINARY {
        let lane = Lane::new(&[Elem::F32; 2], |b, v| binary(b, &target, op, Elem::F32, v[0], v[1]));
        let mut call = lane.call();
        for i in 0..test_depth::cases(60_000, 10_000) {
            let pick = |r: u64| if r & 1 == 0 { edges[(r >> 1) as usize % edges.len()] } else { (r >> 32) as u32 };
            let (p, q) = (pick(random.word()), pick(random.word()));
            let (x, y) = (f32::from_bits(p), f32::from_bits(q));
            let want = match op {
                BinOp::Add => x + y,
                BinOp::Sub => x - y,
                BinOp::Mul => x * y,
                BinOp::Div => x / y,
                _ => extreme(op, x.into(), y.into()) as f32,
            };
            let got = f32::from_bits(call(&[p.into(), q.into()]) as u32);
            assert!(
                got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
                "{i}: {x} {op} {y}: {got}, not {want}"
            );
        }
    }
}

#[test]
fn comparisons_follow_ieee_754() {
    let targets = [target(true), target(false)];
    let special = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, -f64::INFINITY, 2.5];
    for elem in [Elem::F16, Elem::Bf16, Elem::F32, Elem::F64] {
        for p in Pred::ALL {
            for x in special {
                for y in special {
                    let lane = Lane::new(&[], |b, _| {
                        let [x, y] = [x, y].map(|v| constant(b, titan_core::ir::Const::Float(elem, v)));
                        compare(b, &targets[usize::from(x == y)], *p, elem, x, y)
                    });
                    let want = match p {
                        Pred::Eq => x == y,
                        Pred::Ne => x != y,
                        Pred::Lt => x < y,
                        Pred::Le => x <= y,
                        Pred::Gt => x > y,
                        Pred::Ge => x >= y,
                    };
                    assert_eq!(lane.call()(&[]) != 0, want, "{elem} {x} {p} {y}");
                }
            }
        }
        let lane = Lane::new(&[], |b, _| {
            let nan = constant(b, titan_core::ir::Const::Float(elem, f64::NAN));
            unary(b, &target(false), UnOp::IsNan, elem, nan)
        });
        assert_eq!(lane.call()(&[]), 1);
    }
}

/// A number as an integer multiple of 2⁻⁵⁰, if it is one.
fn fixed(x: f64) -> Option<i128> {
    let scaled = x * 2f64.powi(50);
    (scaled.abs() < 2f64.powi(62) && scaled.fract() == 0.0).then_some(scaled as i128)
}

/// Exact in 128-bit integers: the sum is a multiple of 2⁻¹⁰⁰, and so is every middle of two neighbours that it is near to.
#[test]
fn sums_of_products_are_rounded_once() {
    let mut random = Random(99);
    for elem in HALVES {
        let format = Format::of(elem);
        for native in [true, false] {
            let target = target(native);
            let lane = Lane::new(&[elem; 3], |b, v| mul_add(b, &target, elem, v[0], v[1], v[2]));
            let mut call = lane.call();
            let mut examined = 0;
            for _ in 0..test_depth::cases(200_000, 30_000) {
                let mut near_one = || {
                    let word = random.word() as u16;
                    // Of the many exponents of `bf16`, those around 1.
                    if elem == Elem::F16 { word } else { word & 0x80ff | (100 + (word >> 8) % 36) << 7 }
                };
                let [p, q, r] = [near_one(), near_one(), near_one()];
                let (x, y, z) = (value(elem, p), value(elem, q), value(elem, r));
                // Near ties: small numbers beside products of many digits.
                let (Some(a), Some(b), Some(c)) = (fixed(x), fixed(y), fixed(z)) else { continue };
                if a.abs() >= 1 << 58 || b.abs() >= 1 << 58 || c.abs() >= 1 << 60 {
                    continue;
                }
                examined += 1;
                let sum = a * b + (c << 50);
                let magnitude = sum.abs();
                let code = format.nearest(|m| {
                    let scaled = m * 2f64.powi(100);
                    if scaled >= 2f64.powi(126) { std::cmp::Ordering::Less } else { compare_scaled(magnitude, scaled) }
                });
                let sign = if sum < 0 { 0x8000 } else { 0 };
                let got = call(&[p.into(), q.into(), r.into()]) as u16;
                let want = code as u16 | sign;
                assert!(
                    got == want || (sum == 0 && value(elem, got) == 0.0),
                    "{elem} {x:e} * {y:e} + {z:e}: {got:#x}, not {want:#x}"
                );
            }
            assert!(examined > test_depth::cases(20_000, 3_000), "{examined}");
        }
    }
}

/// An integer against a real number of few digits.
fn compare_scaled(n: i128, x: f64) -> std::cmp::Ordering {
    let whole = x.floor();
    n.cmp(&(whole as i128)).then(if x > whole { std::cmp::Ordering::Less } else { std::cmp::Ordering::Equal })
}

/// What one rounding too many would get wrong, as far out as exponents go.
#[test]
fn hairs_beside_ties_are_seen() {
    let bits = |x: f32| u64::from(x.to_bits() >> 16);
    for native in [true, false] {
        let target = target(native);
        let lane = Lane::new(&[Elem::Bf16; 3], |b, v| mul_add(b, &target, Elem::Bf16, v[0], v[1], v[2]));
        let mut call = lane.call();
        // (1 + 2⁻⁷)·(1 + 2⁻¹) = 1.5 + 1.5·2⁻⁷: between 1.5 + 2⁻⁷ and 1.5 + 2⁻⁶, right in the middle.
        let (x, y) = (bits(1.0 + 2f32.powi(-7)), bits(1.5));
        let (tie, below, above) = (0x3fc2, 0x3fc1, 0x3fc2);
        let tiny = bits(2f32.powi(-126));
        assert_eq!(call(&[x, y, 0]), tie);
        assert_eq!(call(&[x, y, tiny]), above);
        assert_eq!(call(&[x, y, tiny | 0x8000]), below);
        assert_eq!(call(&[bits(f32::MAX), bits(f32::MAX), bits(f32::NEG_INFINITY)]), bits(f32::NEG_INFINITY));
        assert_eq!(call(&[bits(2.0), bits(3e38), 0]), bits(f32::INFINITY));
        assert_eq!(
            call(&[bits(2f32.powi(-100)), bits(2f32.powi(-34)), 1]),
            2,
            "half of the least and the least: a tie, to even"
        );
        assert_eq!(call(&[bits(2f32.powi(-100)), bits(2f32.powi(-34)), 0]), 0, "half of the least: a tie, to even");
        let nan = call(&[bits(f32::INFINITY), 0, bits(1.0)]);
        assert!(value(Elem::Bf16, nan as u16).is_nan());
    }
}

#[test]
fn neutral_elements_of_floats_change_nothing() {
    let target = target(false);
    for op in ReduceOp::ALL {
        let lane = Lane::new(&[Elem::F32], |b, v| {
            let start = constant(b, neutral(*op, Elem::F32));
            combine(b, &target, *op, Elem::F32, start, v[0])
        });
        let mut call = lane.call();
        for x in singles(100) {
            let got = call(&[x.into()]) as u32;
            assert!(got == x || (f32::from_bits(got).is_nan() && f32::from_bits(x).is_nan()), "{op} {x:#x}");
        }
    }
}
