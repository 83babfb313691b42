//! The errors of functions, measured against the table of `docs/semantics.md`: of `f32` and halves against `libm` in `f64`, of
//! `f64` against sums of two `f64`; the approximate operations of machines exact and at both ends of their contracts.

use crate::eval::Margin;
use crate::harness::{Lane, Random, codes, target};
use crate::wide::Wide;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, SQRT_2};
use titan_core::ir::{Elem, UnOp};
use titan_core::lower::scalar::unary;

/// Random places for each margin, beside the edges; five operands around each.
fn places() -> u32 {
    test_depth::cases(70_000, 7_000)
}

const MARGINS: [Margin; 3] = [Margin::None, Margin::High, Margin::Low];

fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The function, what it is exactly, and its bounds: units in the last place, and an absolute error allowed instead.
struct Row {
    op: UnOp,
    exact: fn(f64) -> f64,
    wide: Option<fn(f64) -> Wide>,
    ulps: f64,
    /// In units of the last place of 1, for which operands.
    absolute: fn(f64) -> f64,
    /// Where most happens.
    range: f64,
    /// What the functions' documentation says was measured, over twelve times as many operands: of `f32` where the machine
    /// is exact and where it is at its worst, of `f64`.
    figures: [f64; 3],
}

fn nothing(_: f64) -> f64 {
    0.0
}

/// 2⁻²² of `f32`: two units in the last place of 1.
fn near_one(x: f64) -> f64 {
    if (0.5..=2.0).contains(&x) { 2.0 } else { 0.0 }
}

/// Results below 2⁻¹²⁵ may be zero: those of machines that are a little too small are subnormal.
fn subnormal(x: f64) -> f64 {
    if x < -125.0 { 2f64.powi(23 - 125) } else { 0.0 }
}

fn far(x: f64) -> f64 {
    if x.abs() > 65536.0 { 2.0 } else { 0.0 }
}

const ROWS: [Row; 10] = [
    Row {
        op: UnOp::Exp,
        exact: libm::exp,
        wide: Some(|x| Wide::from(x).exp()),
        ulps: 2.6,
        absolute: nothing,
        range: 110.0,
        figures: [1.1, 2.6, 1.1],
    },
    Row {
        op: UnOp::Exp2,
        exact: libm::exp2,
        wide: Some(Wide::exp2),
        ulps: 2.0,
        absolute: subnormal,
        range: 155.0,
        figures: [0.75, 2.0, 1.1],
    },
    Row {
        op: UnOp::Ln,
        exact: libm::log,
        wide: Some(Wide::ln),
        ulps: 2.0,
        absolute: near_one,
        range: 3.0,
        figures: [0.9, 0.9, 1.1],
    },
    Row {
        op: UnOp::Log2,
        exact: libm::log2,
        wide: Some(Wide::log2),
        ulps: 2.0,
        absolute: near_one,
        range: 3.0,
        figures: [1.0, 1.0, 0.8],
    },
    Row {
        op: UnOp::Rsqrt,
        exact: |x| 1.0 / x.sqrt(),
        wide: Some(Wide::rsqrt),
        ulps: 2.0,
        absolute: nothing,
        range: 10.0,
        figures: [0.5, 2.0, 1.5],
    },
    Row {
        op: UnOp::Sin,
        exact: libm::sin,
        wide: Some(Wide::sin),
        ulps: 2.0,
        absolute: far,
        range: 65536.0,
        figures: [1.5, 1.5, 1.4],
    },
    Row {
        op: UnOp::Cos,
        exact: libm::cos,
        wide: Some(Wide::cos),
        ulps: 2.0,
        absolute: far,
        range: 65536.0,
        figures: [1.5, 1.5, 1.4],
    },
    Row {
        op: UnOp::Tanh,
        exact: libm::tanh,
        wide: Some(Wide::tanh),
        ulps: 4.0,
        absolute: nothing,
        range: 10.0,
        figures: [1.7, 2.8, 1.5],
    },
    Row {
        op: UnOp::Sigmoid,
        exact: sigmoid,
        wide: Some(Wide::sigmoid),
        ulps: 4.0,
        absolute: nothing,
        range: 110.0,
        figures: [2.0, 3.4, 2.1],
    },
    Row {
        op: UnOp::Erf,
        exact: libm::erf,
        wide: Some(Wide::erf),
        ulps: 4.0,
        absolute: nothing,
        range: 6.0,
        figures: [1.3, 1.7, 1.2],
    },
];

/// Numbers that often go wrong, and around them; then of all exponents, and of the range where most happens.
fn points(range: f64, count: u32, seed: u64) -> Vec<f64> {
    let edges = [
        0.0,
        1.0,
        0.5,
        2.0,
        0.25,
        88.72,
        88.73,
        87.33,
        103.9,
        103.98,
        104.1,
        126.0,
        127.99,
        128.0,
        149.0,
        150.0,
        151.5,
        709.7,
        709.8,
        745.1,
        745.2,
        1023.9,
        1024.0,
        1074.5,
        0.55,
        0.92,
        0.95,
        FRAC_1_SQRT_2,
        SQRT_2,
        3.9,
        4.0,
        5.9,
        6.0,
        9.2,
        65536.0,
        1e5,
        134_217_728.0,
        1e22,
        1e300,
        3e38,
        1e-40,
        1e-310,
        f64::INFINITY,
        f64::NAN,
    ];
    let mut points: Vec<f64> = edges.to_vec();
    let mut random = Random(seed);
    for i in 0..count {
        let word = random.word();
        let unit = (word >> 11) as f64 / 2f64.powi(53);
        points.push(match i % 4 {
            0 => f32::from_bits(word as u32 & 0x7fff_ffff).into(),
            1 => unit * range,
            2 => unit * 2.0,
            _ => 1.0 + (unit - 0.5) * 2f64.powi(-(word as i32 & 15)),
        });
    }
    points
}

/// Beside multiples of π/2, where nothing is left but digits that must not be lost; in the quick depth, multiples by one odd number after
/// the other, in all quadrants.
fn multiples(limit: f64) -> impl Iterator<Item = f64> {
    let step = test_depth::cases(1, 9);
    (1..).step_by(step).map(|n| f64::from(n) * FRAC_PI_2).take_while(move |x| *x < limit)
}

/// The unit in the last place of a format with so many digits and this least exponent.
fn ulp(x: f64, digits: i32, least: i32) -> f64 {
    let exponent = if x == 0.0 { least } else { libm::ilogb(x).max(least) };
    libm::scalbn(1.0, exponent - digits)
}

#[derive(Default)]
struct Worst {
    ulps: f64,
    at: f64,
    absolute: f64,
}

/// Whether a result that is not finite, or ought not to be, is right all the same; nothing if it must be measured.
fn edge(got: f64, want: f64, greatest: f64) -> Option<bool> {
    if want.is_nan() || got.is_nan() {
        return Some(want.is_nan() && got.is_nan());
    }
    if want.is_infinite() || got.is_infinite() || want.abs() > greatest {
        let over = want.abs() > greatest * (1.0 - 1e-6);
        return Some(
            got == want
                || (over && got.abs() > greatest * (1.0 - 1e-6) && got.is_sign_negative() == want.is_sign_negative()),
        );
    }
    None
}

fn single(row: &Row, margin: Margin) -> Worst {
    let target = target(false);
    let lane = Lane::new(&[Elem::F32], |b, v| unary(b, &target, row.op, Elem::F32, v[0]));
    let mut call = lane.at(margin);
    let mut worst = Worst::default();
    let mut all = points(row.range, places(), 0x9e37_79b9_7f4a_7c15);
    if matches!(row.op, UnOp::Sin | UnOp::Cos) {
        all.extend(multiples(70_000.0));
    }
    for x in all {
        let near = x as f32;
        for x in [near, -near, near.next_up(), near.next_down(), f32::from_bits(near.to_bits() >> 24)] {
            let got = f32::from_bits(call(&[x.to_bits().into()]) as u32);
            let want = (row.exact)(x.into());
            if let Some(right) = edge(got.into(), want, f32::MAX.into()) {
                assert!(right, "{}({x:e}) = {got:e}, not {want:e}", row.op);
                continue;
            }
            let error = (f64::from(got) - want).abs();
            let ulps = error / ulp(want, 23, -126);
            let absolute = (row.absolute)(x.into()) * 2f64.powi(-23);
            assert!(
                ulps <= row.ulps || error <= absolute,
                "{}({x:e}) = {got:e}, not {want:e}: {ulps} ulp, {margin:?}",
                row.op
            );
            assert!(
                want != 0.0 || got.is_sign_negative() == want.is_sign_negative(),
                "{}({x}): the sign of zero",
                row.op
            );
            if absolute == 0.0 && ulps > worst.ulps {
                (worst.ulps, worst.at) = (ulps, x.into());
            } else if absolute != 0.0 {
                worst.absolute = worst.absolute.max(error);
            }
        }
    }
    worst
}

fn double(row: &Row) -> Worst {
    let target = target(false);
    let lane = Lane::new(&[Elem::F64], |b, v| unary(b, &target, row.op, Elem::F64, v[0]));
    let mut call = lane.call();
    let mut worst = Worst::default();
    let range = if row.range > 100.0 && row.range < 200.0 { row.range * 7.0 } else { row.range };
    let mut all = points(range, places() / 25, 0x1357_9bdf_0246_8ace);
    if matches!(row.op, UnOp::Sin | UnOp::Cos) {
        all.extend(multiples(70_000.0));
    }
    for near in all {
        for x in [near, -near, near.next_up(), f64::from_bits(near.to_bits() >> 53)] {
            let got = f64::from_bits(call(&[x.to_bits()]));
            let want = (row.exact)(x);
            if let Some(right) = edge(got, want, f64::MAX) {
                assert!(right, "{}({x:e}) = {got:e}, not {want:e}", row.op);
                continue;
            }
            let ordinary = want.abs() > 1e-290 && want.abs() < 1e290 && x.abs() > 1e-290 && x.abs() < 1e290;
            let ordinary =
                ordinary && (!matches!(row.op, UnOp::Sin | UnOp::Cos) || (x.abs() <= 65536.0 && want.abs() > 1e-6));
            let error = match row.wide {
                Some(wide) if ordinary => {
                    let exact = wide(x);
                    assert!(
                        (want - exact.0).abs() <= 4.0 * ulp(want, 52, -1022),
                        "the two references differ: {}({x:e})",
                        row.op
                    );
                    ((got - exact.0) - exact.1).abs()
                }
                _ => (got - want).abs(),
            };
            let ulps = error / ulp(want, 52, -1022);
            // Of `f64` nothing becomes zero that is not.
            let absolute = if row.op == UnOp::Exp2 { 0.0 } else { (row.absolute)(x) * f64::EPSILON };
            assert!(ulps <= 4.0 || error <= absolute, "{}({x:e}) = {got:e}, not {want:e}: {ulps} ulp", row.op);
            assert!(
                want != 0.0 || got.is_sign_negative() == want.is_sign_negative(),
                "{}({x}): the sign of zero",
                row.op
            );
            if absolute == 0.0 && ulps > worst.ulps {
                (worst.ulps, worst.at) = (ulps, x);
            } else if absolute != 0.0 {
                worst.absolute = worst.absolute.max(error);
            }
        }
    }
    worst
}

fn check(op: UnOp) {
    let row = ROWS.iter().find(|r| r.op == op).expect("every function has its row");
    let [none, high, low] = MARGINS.map(|margin| single(row, margin));
    let double = double(row);
    let (found, [exact, worst, wide]) = (high.ulps.max(low.ulps), row.figures);
    assert!(none.ulps <= exact, "{op} of f32: {} ulp at {:e}", none.ulps, none.at);
    assert!(found <= worst, "{op} of f32, machines at their worst: {found} ulp at {:e} or {:e}", high.at, low.at);
    assert!(double.ulps <= wide, "{op} of f64: {} ulp at {:e}", double.ulps, double.at);
    // Of sines and cosines beyond 2¹⁶, and logarithms near 1.
    assert!(
        none.absolute <= 2f64.powi(-23) && double.absolute <= f64::EPSILON / 2.0,
        "{op}: {} {}",
        none.absolute,
        double.absolute
    );
    // A function that is exact everywhere would mean that nothing was compared.
    assert!(none.ulps > 0.4 && double.ulps > 0.4, "{op} was not examined");
}

macro_rules! functions {
    ($($name:ident $op:ident;)*) => {$(
        #[test]
        fn $name() {
            check(UnOp::$op);
        }
    )*};
}
functions! { exp Exp; exp2 Exp2; ln Ln; log2 Log2; rsqrt Rsqrt; sin Sin; cos Cos; tanh Tanh; sigmoid_ Sigmoid; erf Erf; }

/// The bounds before the rounding to a half: units in the last place of `f32`, and an absolute error allowed instead.
fn before_rounding(row: &Row, elem: Elem, x: f64, want: f64) -> (f64, f64) {
    match (row.op, elem) {
        (UnOp::Exp, Elem::F16) => (20.0, 0.0),
        // Results below 2⁻¹²⁵ may be zero.
        (UnOp::Exp, _) => (70.0, if want < 2f64.powi(-125) { 2f64.powi(-125) } else { 0.0 }),
        _ => (row.ulps, (row.absolute)(x) * 2f64.powi(-23)),
    }
}

/// A half is what the `f32` function gives, rounded once: a neighbour of the nearest at most, and that only beside a tie.
#[test]
fn halves_are_the_single_rounded() {
    let target = target(false);
    for elem in [Elem::F16, Elem::Bf16] {
        let value = |code: u16| {
            if elem == Elem::F16 { half::f16::from_bits(code).to_f64() } else { half::bf16::from_bits(code).to_f64() }
        };
        let round = |x: f32| {
            if elem == Elem::F16 {
                half::f16::from_f32_const(x).to_bits()
            } else {
                half::bf16::from_f32_const(x).to_bits()
            }
        };
        for row in &ROWS {
            let lane = Lane::new(&[elem], |b, v| unary(b, &target, row.op, elem, v[0]));
            for margin in MARGINS {
                let mut call = lane.at(margin);
                for code in codes() {
                    let x = value(code);
                    let want = (row.exact)(x);
                    let got = call(&[code.into()]) as u16;
                    if want.is_nan() {
                        assert!(value(got).is_nan(), "{} of {elem} {x}", row.op);
                        continue;
                    }
                    if want.abs() > f64::from(f32::MAX) {
                        assert!(value(got) == f64::INFINITY.copysign(want), "{} of {elem} {x}", row.op);
                        continue;
                    }
                    // The ends of what the `f32` may be.
                    let (ulps, absolute) = before_rounding(row, elem, x, want);
                    let error = (ulps * ulp(want, 23, -126)).max(absolute);
                    let (least, greatest) = (round((want - error) as f32), round((want + error) as f32));
                    let inside = value(least) <= value(got) && value(got) <= value(greatest);
                    assert!(inside, "{} of {elem} {x:e}: {:e}, not {want:e}, {margin:?}", row.op, value(got));
                }
            }
        }
    }
}

/// Arguments beyond 2¹⁶ need many digits of π; others do not pay for them, and an `f16` is never one.
#[test]
fn large_angles_are_behind_a_branch() {
    let target = target(true);
    for (elem, branches) in [(Elem::F16, 0), (Elem::Bf16, 1), (Elem::F32, 1), (Elem::F64, 1)] {
        let lane = Lane::new(&[elem], |b, v| unary(b, &target, UnOp::Sin, elem, v[0]));
        assert_eq!(lane.branches(), branches, "{elem}");
    }
}
