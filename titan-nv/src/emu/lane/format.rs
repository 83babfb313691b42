//! Floating-point formats on bits, and rounding in every direction.
//!
//! A result is computed in f64 together with the sign of its error; [`sticky`] folds the two into one f64 whose last bit
//! is set if anything was lost, so that rounding it further rounds the exact result once ("rounding to odd", Boldo and
//! Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).

use super::Rnd;

/// A binary format with IEEE encoding of zeros and subnormals.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub(crate) exp: u32,
    pub(crate) frac: u32,
    /// Whether the format has no infinity, and only the code of all ones is NaN.
    finite: bool,
    /// The NaN that instructions produce.
    pub(crate) nan: u64,
}

/// IEEE 754 binary16.
pub const F16: Format = Format { exp: 5, frac: 10, finite: false, nan: 0x7FFF };
/// The upper half of a binary32.
pub const BF16: Format = Format { exp: 8, frac: 7, finite: false, nan: 0x7FFF };
/// IEEE 754 binary32.
pub const F32: Format = Format { exp: 8, frac: 23, finite: false, nan: 0x7FFF_FFFF };
/// The 19 significant bits of a `tf32`.
pub(crate) const TF32: Format = Format { exp: 8, frac: 10, finite: false, nan: 0x3_FFFF };
/// fp8 with more fraction bits.
pub const E4M3: Format = Format { exp: 4, frac: 3, finite: true, nan: 0x7F };
/// fp8 with more exponent bits.
pub const E5M2: Format = Format { exp: 5, frac: 2, finite: false, nan: 0x7F };

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exp) - 1) << self.frac
    }

    const fn largest(self) -> u64 {
        if self.finite { (1 << (self.exp + self.frac)) - 2 } else { self.infinity() - 1 }
    }

    /// The bit of the sign.
    #[must_use]
    pub const fn sign(self) -> u64 {
        1 << (self.exp + self.frac)
    }

    /// The value that a code represents.
    pub fn value(self, code: u64) -> f64 {
        let magnitude = code & (self.sign() - 1);
        let sign = if code & self.sign() != 0 { -1.0 } else { 1.0 };
        let (e, m) = (magnitude >> self.frac, magnitude & ((1 << self.frac) - 1));
        if (self.finite && magnitude == self.sign() - 1) || (!self.finite && magnitude > self.infinity()) {
            return f64::NAN;
        }
        if !self.finite && magnitude == self.infinity() {
            return sign * f64::INFINITY;
        }
        let (sig, e) = if e == 0 { (m, 1) } else { (m | 1 << self.frac, e) };
        let power = i32::try_from(e).unwrap_or(0) - self.bias() - self.frac.cast_signed();
        sign * sig as f64 * exp2i(power)
    }

    /// Rounds a value to a code. Overflow gives infinity or, if `saturate` or without infinities, the largest number.
    pub fn code(self, x: f64, rnd: Rnd, saturate: bool) -> u64 {
        if x.is_nan() {
            return self.nan;
        }
        let (negative, magnitude) = (x.is_sign_negative(), x.abs());
        let sign = if negative { self.sign() } else { 0 };
        let to_largest = saturate || self.finite;
        if magnitude.is_infinite() {
            return sign | if to_largest { self.largest() } else { self.infinity() };
        }
        let bits = magnitude.to_bits();
        let (e, m) = (bits >> 52, bits & ((1 << 52) - 1));
        // A subnormal f64 is far below half of the least subnormal of every format here.
        let (sig, e) = if e == 0 { (m, 1) } else { (m | 1 << 52, e) };
        let exponent = i32::try_from(e).unwrap_or(0) - 1023;
        let least = 1 - self.bias();
        let binade = exponent.max(least);
        let drop = (52 - self.frac.cast_signed() + binade - exponent).cast_unsigned();
        let (kept, rest, half) = if drop < 64 {
            (sig >> drop, sig & ((1 << drop) - 1), 1_u64 << (drop - 1))
        } else {
            (0, u64::from(sig != 0), 2)
        };
        let up = match rnd {
            Rnd::Near => rest > half || (rest == half && kept & 1 == 1),
            Rnd::Away => rest >= half && rest != 0,
            Rnd::Zero => false,
            Rnd::Down => negative && rest != 0,
            Rnd::Up => !negative && rest != 0,
        };
        let rounded = kept + u64::from(up);
        let shifted = u64::try_from(binade - least).unwrap_or(0) << self.frac;
        let code = shifted + rounded;
        if code <= self.largest() {
            return sign | code;
        }
        // Beyond the largest number: depending on the direction, infinity or the largest number.
        let towards = match rnd {
            Rnd::Near | Rnd::Away => false,
            Rnd::Zero => true,
            Rnd::Down => !negative,
            Rnd::Up => negative,
        };
        sign | if to_largest || towards { self.largest() } else { self.infinity() }
    }
}

/// 2^`n`, for every exponent `n` of an f64, subnormal ones included.
fn exp2i(n: i32) -> f64 {
    let normal = |n: i32| f64::from_bits(u64::try_from(n + 1023).unwrap_or(0) << 52);
    if n < -1022 { normal(n + 200) * normal(-200) } else { normal(n) }
}

/// Sets the last bit of `s` if `s` is not exact; `error` has the sign of the missing part.
#[inline]
pub fn sticky(s: f64, error: f64) -> f64 {
    if error == 0.0 || !s.is_finite() || error.is_nan() || s.to_bits() & 1 == 1 {
        return s;
    }
    if s == 0.0 {
        return if error > 0.0 { f64::from_bits(1) } else { -f64::from_bits(1) };
    }
    if error > 0.0 { s.next_up() } else { s.next_down() }
}

/// The error of `s = a + b` (Knuth's two-sum).
#[inline]
pub(crate) fn sum_error(a: f64, b: f64, s: f64) -> f64 {
    let bb = s - a;
    (a - (s - bb)) + (b - bb)
}

/// Rounds a sticky f64 to f32.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
#[inline]
pub fn round32(x: f64, rnd: Rnd) -> f32 {
    match rnd {
        Rnd::Near => x as f32,
        Rnd::Away | Rnd::Zero | Rnd::Down | Rnd::Up => {
            f32::from_bits(u32::try_from(F32.code(x, rnd, false)).unwrap_or(0))
        }
    }
}

/// The f64 to which an exact result is rounded in direction `rnd`, given the nearest f64 `r`; `error` has the sign of the missing part.
#[inline]
pub(crate) fn round64(r: f64, error: f64, rnd: Rnd) -> f64 {
    if error == 0.0 || error.is_nan() || r.is_nan() {
        return r;
    }
    let up = error > 0.0;
    match rnd {
        Rnd::Down if !up => r.next_down(),
        Rnd::Up if up => r.next_up(),
        Rnd::Zero if r > 0.0 && !up => r.next_down(),
        Rnd::Zero if r < 0.0 && up => r.next_up(),
        Rnd::Near | Rnd::Away | Rnd::Zero | Rnd::Down | Rnd::Up => r,
    }
}
