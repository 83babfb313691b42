//! Powers: their errors against `libm` in `f64` and, of `f64`, against sums of two `f64`; and their special cases against Rust's `powf`.

use crate::eval::Margin;
use crate::harness::{Lane, Random, codes, target};
use crate::wide::Wide;
use titan_core::ir::{BinOp, Elem};
use titan_core::lower::scalar::binary;

const MARGINS: [Margin; 3] = [Margin::None, Margin::High, Margin::Low];

fn lane(elem: Elem) -> Lane {
    let target = target(false);
    Lane::new(&[elem, elem], |b, v| binary(b, &target, BinOp::Powf, elem, v[0], v[1]))
}

fn special() -> Vec<f64> {
    let positive = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        5.0,
        16_777_215.0,
        16_777_216.0,
        1e30,
        3e38,
        1e-30,
        1e-45,
        f64::INFINITY,
        0.25,
    ];
    positive.iter().flat_map(|x| [*x, -x]).chain([f64::NAN]).collect()
}

/// NaN, infinities, zeros with their signs, and ones: those of Rust. Other numbers are compared to a few places.
#[test]
fn special_cases_are_rusts() {
    let (of_f64, of_f32) = (lane(Elem::F64), lane(Elem::F32));
    let (mut of_f64, mut of_f32) = (of_f64.call(), of_f32.call());
    let same = |got: f64, want: f64, relative: f64| {
        let plain = want.is_finite() && want != 0.0 && want != 1.0;
        got.to_bits() == want.to_bits()
            || got.is_nan() && want.is_nan()
            || plain && (got - want).abs() <= relative * want.abs() && got != 0.0
    };
    let mut kinds = [0; 4];
    for x in special() {
        for y in special() {
            let (got, want) = (f64::from_bits(of_f64(&[x.to_bits(), y.to_bits()])), x.powf(y));
            assert!(same(got, want, 1e-14), "f64: {x:e} to the power of {y:e} is {got:e}, not {want:e}");
            let (x, y) = (x as f32, y as f32);
            let (got, want) = (f32::from_bits(of_f32(&[x.to_bits().into(), y.to_bits().into()]) as u32), x.powf(y));
            assert!(same(got.into(), want.into(), 1e-6), "f32: {x:e} to the power of {y:e} is {got:e}, not {want:e}");
            kinds[if want.is_nan() {
                0
            } else if want.is_infinite() {
                1
            } else if want == 0.0 {
                2
            } else {
                3
            }] += 1;
        }
    }
    assert!(kinds.iter().all(|n| *n > 50), "{kinds:?}");
}

/// A base and an exponent whose power is neither 0 nor infinity.
fn operands(random: &mut Random, i: u32, limit: f64) -> (f64, f64) {
    let (p, q) = (random.word(), random.word());
    let unit = (q >> 11) as f64 / 2f64.powi(52) - 1.0;
    let x = match i % 4 {
        0 => f64::from(f32::from_bits(p as u32 & 0x7fff_ffff)),
        1 => 1.0 + ((p >> 11) as f64 / 2f64.powi(53) - 0.5) * 2f64.powi(-(q as i32 & 15)),
        2 => (p >> 40) as f64,
        _ => (p >> 11) as f64 / 2f64.powi(50),
    };
    let most = limit / x.log2().abs().max(1e-3);
    let y = unit * most;
    (x, if i.is_multiple_of(3) { y.round() } else { y })
}

fn unit(x: f64, digits: i32, least: i32) -> f64 {
    libm::scalbn(1.0, libm::ilogb(x).max(least) - digits)
}

#[test]
fn powers_of_singles_are_almost_rounded_once() {
    let lane = lane(Elem::F32);
    let mut call = lane.call();
    let mut random = Random(41);
    let mut worst = (0.0, 0.0, 0.0);
    for i in 0..test_depth::cases(400_000, 40_000) as u32 {
        let (x, y) = operands(&mut random, i, 150.0);
        let (x, y) = (x as f32, y as f32);
        let (got, want) =
            (f32::from_bits(call(&[x.to_bits().into(), y.to_bits().into()]) as u32), libm::pow(x.into(), y.into()));
        if want.is_nan() || want.abs() > f64::from(f32::MAX) {
            assert!(
                got.is_nan() == want.is_nan() && (got.is_nan() || got == f32::INFINITY || got == f32::MAX),
                "{x:e} {y:e}"
            );
            continue;
        }
        let ulps = (f64::from(got) - want).abs() / unit(want, 23, -126);
        assert!(ulps <= 0.501, "{x:e} to the power of {y:e} is {got:e}, not {want:e}: {ulps} ulp");
        worst = if ulps > worst.0 { (ulps, x, y) } else { worst };
    }
    assert!(worst.0 > 0.49, "{worst:?} was not examined");
}

/// The error of the two functions of `f32`, for machines at both ends of their contracts, before the rounding to a half.
#[test]
fn powers_of_halves_are_within_their_bounds() {
    for (elem, bound, least) in [(Elem::F16, 30.0, -24), (Elem::Bf16, 150.0, -125)] {
        let value = |code: u16| {
            if elem == Elem::F16 { half::f16::from_bits(code).to_f64() } else { half::bf16::from_bits(code).to_f64() }
        };
        let round = |x: f64| {
            if elem == Elem::F16 { half::f16::from_f64(x).to_f64() } else { half::bf16::from_f64(x).to_f64() }
        };
        let lane = lane(elem);
        for margin in MARGINS {
            let mut call = lane.at(margin);
            let mut random = Random(51);
            let mut compared = 0;
            for code in codes().filter(|code| *code < 0x8000) {
                let x = value(code);
                let most = (if elem == Elem::F16 { 25.0 } else { 134.0 }) / x.log2().abs().max(1e-3);
                let y = round(((random.word() >> 11) as f64 / 2f64.powi(52) - 1.0) * most);
                let code_of_y = if elem == Elem::F16 {
                    half::f16::from_f64(y).to_bits()
                } else {
                    half::bf16::from_f64(y).to_bits()
                };
                let (got, want) = (value(call(&[code.into(), code_of_y.into()]) as u16), libm::pow(x, y));
                if want.is_nan() || want.is_infinite() {
                    assert!(
                        got.is_nan() && want.is_nan() || got == want,
                        "{elem} {x:e} to the power of {y:e}: {got:e}"
                    );
                    continue;
                }
                let absolute = if want < 2f64.powi(least) { 2f64.powi(least) } else { 0.0 };
                let error = (bound * unit(want, 23, -126)).max(absolute);
                let inside = round(want - error) <= got && got <= round(want + error);
                assert!(inside, "{elem} {x:e} to the power of {y:e} is {got:e}, not {want:e}, {margin:?}");
                compared += 1;
            }
            assert!(compared > 1_000, "{compared}");
        }
    }
}

#[test]
fn powers_of_doubles_are_within_two_units() {
    let lane = lane(Elem::F64);
    let mut call = lane.call();
    let mut random = Random(61);
    let mut worst = (0.0, 0.0, 0.0);
    for i in 0..test_depth::cases(60_000, 4_000) as u32 {
        let (x, y) = operands(&mut random, i, 1000.0);
        if !(x > 1e-290 && x < 1e290) || (y * x.log2()).abs() > 1000.0 {
            continue;
        }
        let got = f64::from_bits(call(&[x.to_bits(), y.to_bits()]));
        // Both without the power of two that the reference has put aside.
        let (exact, n) = Wide::pow(x, y);
        let got = libm::scalbn(got, -n);
        let ulps = ((got - exact.0) - exact.1).abs() / unit(exact.0, 52, -1022);
        assert!(ulps <= 1.6, "{x:e} to the power of {y:e}: {ulps} ulp");
        worst = if ulps > worst.0 { (ulps, x, y) } else { worst };
    }
    assert!(worst.0 > 0.6, "{worst:?} was not examined");
}
