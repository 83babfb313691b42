//! `sin` and `cos` of an `f32`, computed in `f64`, because the reduction by multiples of π/2 needs the digits.
//!
//! Up to 2²⁸ the multiple times the first 25 bits of π/2 is exact. Beyond it, `libm` reduces with all of π's digits.
//! Polynomials: FreeBSD's `k_sinf.c` and `k_cosf.c`, of error below 2⁻³⁷.
#![expect(clippy::excessive_precision, reason = "coefficients are written as they were computed")]

/// The greatest magnitude that `sin` and `cos` accept.
pub const LIMIT: f32 = 268_435_456.0;

const FRAC_PI_2_HI: f64 = 1.570_796_310_901_641_845_70;
const FRAC_PI_2_LO: f64 = 1.589_325_477_352_819_669_16e-8;
/// Adding this to a number below 2⁵¹ rounds it to an integer, which the low bits of the sum contain.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The quadrant, and the remainder in −π/4 ..= π/4.
#[inline(always)]
fn reduce(x: f32) -> (u64, f64) {
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND;
    let turns = shifted - ROUND;
    (shifted.to_bits(), (x - turns * FRAC_PI_2_HI) - turns * FRAC_PI_2_LO)
}

#[inline(always)]
fn of_quadrant(quadrant: u64, r: f64) -> f64 {
    let z = r * r;
    let w = z * z;
    let sin = (r + (z * r) * (-0.166_666_666_416_265_235_595 + z * 0.008_333_329_385_889_463_175_6))
        + (z * r) * w * (-0.000_198_393_348_360_966_317_347 + z * 0.000_002_718_311_493_989_821_906_4);
    let cos = ((1.0 + z * -0.499_999_997_251_031_003_120) + w * 0.041_666_623_323_739_063_189_4)
        + (w * z) * (-0.001_388_676_377_460_992_946_92 + z * 0.000_024_390_448_796_277_409_065_4);
    let magnitude = if quadrant & 1 == 0 { sin } else { cos };
    f64::from_bits(magnitude.to_bits() ^ (quadrant & 2) << 62)
}

/// The sine of a number of magnitude at most [`LIMIT`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
pub(crate) fn sin(x: f32) -> f32 {
    let (quadrant, r) = reduce(x);
    let value = of_quadrant(quadrant, r) as f32;
    // Keeps the sign of zero.
    if x == 0.0 { x } else { value }
}

/// The cosine of a number of magnitude at most [`LIMIT`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
pub(crate) fn cos(x: f32) -> f32 {
    let (quadrant, r) = reduce(x);
    of_quadrant(quadrant.wrapping_add(1), r) as f32
}
