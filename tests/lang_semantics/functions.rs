//! Functions of floats against values known to more digits than a float holds.

use titan::lang::{Num, Tile, ops};
use titan::prelude::*;

use crate::tile;

type Row = (&'static str, fn(Tile<f64, D1<1>>) -> Tile<f64, D1<1>>, fn(Tile<f32, D1<1>>) -> Tile<f32, D1<1>>, f64, f64);

macro_rules! rows {
    ($($name:ident($x:expr) = $want:expr;)*) => {
        [$((stringify!($name), Tile::$name, Tile::$name, $x, $want)),*]
    };
}

#[expect(clippy::approx_constant, clippy::excessive_precision, reason = "a table of values, to all their digits")]
const KNOWN: [Row; 27] = rows! {
    exp(1.0) = 2.718_281_828_459_045_235_4;
    exp(-20.0) = 2.061_153_622_438_557_827_97e-9;
    exp2(0.5) = 1.414_213_562_373_095_048_8;
    exp2(-3.0) = 0.125;
    ln(2.0) = 0.693_147_180_559_945_309_4;
    log(10.0) = 2.302_585_092_994_045_684_0;
    log2(10.0) = 3.321_928_094_887_362_347_9;
    sqrt(2.0) = 1.414_213_562_373_095_048_8;
    rsqrt(2.0) = 0.707_106_781_186_547_524_4;
    recip(3.0) = 0.333_333_333_333_333_333_3;
    sin(1.0) = 0.841_470_984_807_896_506_7;
    cos(1.0) = 0.540_302_305_868_139_717_4;
    sin(65536.0) = 0.692_065_453_822_723_247_3;
    tanh(0.5) = 0.462_117_157_260_009_758_5;
    tanh(-9.0) = -0.999_999_969_540_040_974_6;
    sigmoid(2.0) = 0.880_797_077_977_882_444_1;
    sigmoid(-20.0) = 2.061_153_618_190_203_7e-9;
    erf(0.5) = 0.520_499_877_813_046_537_7;
    erf(-1.0) = -0.842_700_792_949_714_869_3;
    erf(0.0009765625) = 0.001_101_932_430_071_814_704_2;
    floor(-1.5) = -2.0;
    ceil(-1.5) = -1.0;
    trunc(-1.5) = -1.0;
    round(-2.5) = -3.0;
    round(0.499_999_97) = 0.0;
    round_ties_even(2.5) = 2.0;
    round_ties_even(3.5) = 4.0;
};

#[test]
fn functions_are_within_two_units_in_the_last_place() {
    for (name, of_f64, of_f32, x, want) in KNOWN {
        let got = of_f64(tile(&[x])).to_vec()[0];
        let unit = (want.abs().next_up() - want.abs()).max(f64::MIN_POSITIVE);
        assert!((got - want).abs() <= 4.0 * unit, "{name}({x}) = {got}");

        let narrow: f32 = x.cast();
        if f64::from(narrow) == x {
            assert_eq!(of_f32(tile(&[narrow])).to_vec(), [want.cast::<f32>()], "{name}({x})");
        }
    }
}

#[test]
fn functions_at_their_edges() {
    let edges = tile::<f32, 4>(&[f32::NEG_INFINITY, f32::INFINITY, f32::NAN, 0.0]);
    let check = |got: Tile<f32, D1<4>>, want: [f32; 4]| {
        for (g, w) in got.to_vec().into_iter().zip(want) {
            assert!(g == w || g.is_nan() && w.is_nan(), "{got} {want:?}");
        }
    };
    let nan = f32::NAN;
    check(edges.exp(), [0.0, f32::INFINITY, nan, 1.0]);
    check(edges.exp2(), [0.0, f32::INFINITY, nan, 1.0]);
    check(edges.ln(), [nan, f32::INFINITY, nan, f32::NEG_INFINITY]);
    check(edges.sqrt(), [nan, f32::INFINITY, nan, 0.0]);
    check(edges.rsqrt(), [nan, 0.0, nan, f32::INFINITY]);
    check(edges.recip(), [0.0, 0.0, nan, f32::INFINITY]);
    check(edges.tanh(), [-1.0, 1.0, nan, 0.0]);
    check(edges.sigmoid(), [0.0, 1.0, nan, 0.5]);
    check(edges.erf(), [-1.0, 1.0, nan, 0.0]);
    check(edges.abs(), [f32::INFINITY, f32::INFINITY, nan, 0.0]);
}

#[test]
fn scalars_have_the_functions_that_std_lacks() {
    assert_eq!(4.0_f32.rsqrt(), 0.5);
    assert_eq!(0.0_f64.sigmoid(), 0.5);
    assert_eq!(Float::erf(0.5_f32), 0.520_499_9);
    let (h, b) = (f16::from_f32(2.0), bf16::from_f32(2.0));
    assert_eq!((h.exp2(), b.exp2()), (f16::from_f32(4.0), bf16::from_f32(4.0)));
    assert_eq!(h.sqrt(), f16::SQRT_2);
    assert_eq!(b.ln(), bf16::LN_2);
    assert_eq!(f16::from_f32(-2.5).round(), f16::from_f32(-3.0));
    assert_eq!(bf16::from_f32(-2.5).abs(), bf16::from_f32(2.5));
}

/// No neighbour of the result is nearer to the exact value, for every `f16`.
#[test]
fn halves_are_correctly_rounded_everywhere() {
    let check = |x: f16, got: f16, exact: f64| {
        if !got.is_finite() {
            assert!(got.is_nan() == exact.is_nan() && (exact.is_nan() || exact.abs() >= 65520.0), "{x}: {got}");
            return;
        }
        let error = (got.to_f64() - exact).abs();
        for neighbour in [got.to_bits().wrapping_sub(1), got.to_bits() + 1].map(f16::from_bits) {
            let other = (neighbour.to_f64() - exact).abs();
            assert!(!neighbour.is_finite() || error <= other, "{x}: {got} is not nearest to {exact}");
        }
    };
    for x in (0..=u16::MAX).map(f16::from_bits) {
        check(x, x.exp(), x.to_f64().exp());
        check(x, x.tanh(), x.to_f64().tanh());
        check(x, Float::recip(x), 1.0 / x.to_f64());
    }
}

/// Bit for bit those of Rust's `f64`, of which the narrower types have the same values.
#[test]
fn remainders_and_signs_are_rusts() {
    let some = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.5,
        -3.0,
        7.0,
        1e-3,
        65504.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        1e300,
    ];
    let same = |got: f64, want: f64| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    for x in some {
        for y in some {
            assert!(same(ops::rem(x, y), x % y), "{x} % {y}");
            let [p, q]: [f16; 2] = [x.cast(), y.cast()];
            assert!(same(ops::rem(p, q).to_f64(), p.to_f64() % q.to_f64()), "{p} % {q}");
            let [p, q]: [bf16; 2] = [x.cast(), y.cast()];
            assert!(
                same(ops::rem(tile::<bf16, 1>(&[p]), q).to_vec()[0].to_f64(), p.to_f64() % q.to_f64()),
                "{p} % {q}"
            );
        }
        assert!(same(Num::signum(x), x.signum()) && same(tile::<f64, 1>(&[x]).signum().to_vec()[0], x.signum()), "{x}");
        let narrow: bf16 = x.cast();
        assert!(same(Num::signum(narrow).to_f64(), narrow.to_f64().signum()), "{narrow}");
        let of_tile = tile::<bf16, 1>(&[narrow]);
        let classes = [of_tile.is_nan(), of_tile.is_infinite(), of_tile.is_finite()].map(|mask| mask.to_vec()[0]);
        assert_eq!(classes, [narrow.is_nan(), narrow.is_infinite(), narrow.is_finite()], "{narrow}");
    }
    assert_eq!([-7, 0, 9].map(|x: i8| Num::signum(x)), [-1, 0, 1]);
    assert_eq!([0, 200].map(|x: u8| Num::signum(x)), [0, 1]);
}

/// What IEEE 754 and C say of `pow`.
#[test]
fn special_powers() {
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    let always_one =
        [(1.0, nan), (1.0, infinity), (-1.0, infinity), (-1.0, -infinity), (nan, 0.0), (0.0, -0.0), (infinity, 0.0)];
    for (x, y) in always_one {
        assert_eq!(ops::powf(x, y), 1.0, "{x} {y}");
    }
    for (x, y) in [(-2.0, 0.5), (-0.5, 1.5), (nan, 1.0), (2.0, nan), (-1.0, nan), (-1.0, 0.5)] {
        assert!(ops::powf(x, y).is_nan(), "{x} {y}");
    }
    let exact = [
        (-2.0, 3.0, -8.0),
        (-2.0, 4.0, 16.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (-0.0, -3.0, -infinity),
        (0.0, -0.5, infinity),
        (-infinity, 3.0, -infinity),
        (-infinity, 0.5, infinity),
        (-infinity, -3.0, -0.0),
        (0.5, infinity, 0.0),
        (0.5, -infinity, infinity),
        (-2.0, infinity, infinity),
        (-2.0, -infinity, 0.0),
    ];
    for (x, y, want) in exact {
        let got = [ops::powf(x, y), tile::<f32, 1>(&[x]).powf(y).to_vec()[0]];
        assert_eq!(got.map(f32::to_bits), [f32::to_bits(want); 2], "{x} {y}");
    }
}

#[test]
fn bits_of_integers() {
    let x = tile::<i8, 4>(&[0, 1, -1, 40]);
    assert_eq!(x.count_ones().to_vec(), [0, 1, 8, 2]);
    assert_eq!(x.leading_zeros().to_vec(), [8, 7, 0, 2]);
    assert_eq!(x.trailing_zeros().to_vec(), [8, 0, 0, 3]);
    assert_eq!(x.mul_hi(100).to_vec(), [0, 0, -1, 15]);
    assert_eq!(ops::mul_hi(u64::MAX, u64::MAX), u64::MAX - 1);
    assert_eq!(ops::mul_hi(i64::MIN, i64::MIN), 1 << 62);
    assert_eq!(ops::mul_hi(tile::<u32, 1>(&[1 << 31]), 6).to_vec(), [3]);
}
