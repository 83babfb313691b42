//! Conversions between number formats on their bits, exact or rounded once.
//!
//! | format | bits | exponent | fraction | overflow gives | ties |
//! |---|---|---|---|---|---|
//! | [`Format::F16`] | 16 | 5 | 10 | infinity | to even |
//! | [`Format::BF16`] | 16 | 8 | 7 | infinity | to even |
//! | [`Format::E4M3`] | 8 | 4 | 3 | ±448, also from infinity | to even |
//! | [`Format::E5M2`] | 8 | 5 | 2 | ±57344, also from infinity | to even |
//! | [`Format::TF32`] | 19 | 8 | 10 | infinity | away from zero |
//!
//! Every `f64`, `i64` and `u64` is a sign, a 64-bit significand and a power of two, so that one rounding routine serves all of them and
//! there are no intermediate roundings. NaN stays NaN; its sign is kept and its payload is not.
//!
//! Deliberately absent: arithmetic but [`fma`]; and conversions between `f32` and `f64`, which Rust's `as` rounds as `docs/semantics.md` requires.

mod fused;

pub use fused::{Fused, fma};

/// A binary floating-point format of at most 32 bits: sign, exponent, fraction, from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exp_bits: u32,
    frac_bits: u32,
    top: Top,
    ties: Ties,
}

/// The meaning of the largest codes of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// Infinity and NaN as in IEEE 754; conversions overflow to infinity.
    Ieee,
    /// Infinity and NaN as in IEEE 754; conversions saturate.
    IeeeSaturating,
    /// No infinity; only the largest code is NaN; conversions saturate.
    OneNan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ties {
    ToEven,
    Away,
}

impl Format {
    /// IEEE 754 binary16.
    pub const F16: Format = Format { exp_bits: 5, frac_bits: 10, top: Top::Ieee, ties: Ties::ToEven };
    /// bfloat16: the upper half of a binary32.
    pub const BF16: Format = Format { exp_bits: 8, frac_bits: 7, top: Top::Ieee, ties: Ties::ToEven };
    /// OCP FP8 with more fraction bits.
    pub const E4M3: Format = Format { exp_bits: 4, frac_bits: 3, top: Top::OneNan, ties: Ties::ToEven };
    /// OCP FP8 with more exponent bits.
    pub const E5M2: Format = Format { exp_bits: 5, frac_bits: 2, top: Top::IeeeSaturating, ties: Ties::ToEven };
    /// The 19 significant bits of a `tf32`; see [`tf32_from_f64`] for its 32-bit form.
    pub const TF32: Format = Format { exp_bits: 8, frac_bits: 10, top: Top::Ieee, ties: Ties::Away };

    const fn sign_bit(self) -> u32 {
        1 << (self.exp_bits + self.frac_bits)
    }

    /// The exponent of the smallest normal number.
    const fn min_exp(self) -> i32 {
        2 - (1 << (self.exp_bits - 1))
    }

    /// The code of infinity, for the formats that have it.
    const fn infinity(self) -> u32 {
        ((1 << self.exp_bits) - 1) << self.frac_bits
    }

    const fn max_finite(self) -> u32 {
        match self.top {
            Top::Ieee | Top::IeeeSaturating => self.infinity() - 1,
            Top::OneNan => self.sign_bit() - 2,
        }
    }

    const fn nan(self) -> u32 {
        match self.top {
            Top::Ieee => self.infinity() | 1 << (self.frac_bits - 1),
            Top::IeeeSaturating | Top::OneNan => self.sign_bit() - 1,
        }
    }

    const fn overflow(self) -> u32 {
        match self.top {
            Top::Ieee => self.infinity(),
            Top::IeeeSaturating | Top::OneNan => self.max_finite(),
        }
    }

    /// The code nearest to `x`.
    #[must_use]
    pub const fn from_f64(self, x: f64) -> u32 {
        let bits = x.to_bits();
        let negative = bits >> 63 != 0;
        let (exp, frac) = (bits >> 52 & 0x7FF, bits & ((1 << 52) - 1));
        let magnitude = if exp == 0x7FF {
            if frac == 0 { self.overflow() } else { self.nan() }
        } else if exp == 0 {
            self.round(frac, -1074)
        } else {
            self.round(frac | 1 << 52, exp.cast_signed() - 1075)
        };
        magnitude | if negative { self.sign_bit() } else { 0 }
    }

    /// The code nearest to `magnitude`, or to `-magnitude`.
    #[must_use]
    pub const fn from_int(self, negative: bool, magnitude: u64) -> u32 {
        self.round(magnitude, 0) | if negative { self.sign_bit() } else { 0 }
    }

    /// The code nearest to `sig * 2^exp`.
    #[expect(clippy::cast_possible_truncation, reason = "a rounded significand has at most 11 bits, an exponent 8")]
    const fn round(self, sig: u64, exp: i64) -> u32 {
        if sig == 0 {
            return 0;
        }
        let min_exp = self.min_exp() as i64;
        let floor_log2 = 63 - sig.leading_zeros() as i64 + exp;
        let binade = if floor_log2 > min_exp { floor_log2 } else { min_exp };
        // The result is a multiple of 2^quantum.
        let quantum = binade - self.frac_bits as i64;
        let drop = quantum - exp;
        let kept = if drop <= 0 {
            sig << -drop
        } else if drop > 64 {
            0
        } else {
            let (whole, rest) = if drop == 64 { (0, sig) } else { (sig >> drop, sig << (64 - drop)) };
            let half = 1 << 63;
            let up = match self.ties {
                Ties::ToEven => rest > half || (rest == half && whole & 1 == 1),
                Ties::Away => rest >= half,
            };
            whole + up as u64
        };
        // A carry out of the fraction correctly increases the exponent.
        let code = ((binade - min_exp).cast_unsigned() << self.frac_bits) + kept;
        if code > self.max_finite() as u64 { self.overflow() } else { code as u32 }
    }

    /// The exact value of a code.
    #[must_use]
    pub const fn to_f64(self, code: u32) -> f64 {
        let magnitude = code & (self.sign_bit() - 1);
        let (exp, frac) = (magnitude >> self.frac_bits, magnitude & ((1 << self.frac_bits) - 1));
        let infinite = match self.top {
            Top::Ieee | Top::IeeeSaturating => magnitude == self.infinity(),
            Top::OneNan => false,
        };
        let value = if infinite {
            f64::INFINITY
        } else if magnitude > self.max_finite() {
            f64::NAN
        } else {
            let (sig, exp) = if exp == 0 { (frac, 1) } else { (frac | 1 << self.frac_bits, exp) };
            sig as f64 * power_of_two(exp.cast_signed() - 1 + self.min_exp() - self.frac_bits.cast_signed())
        };
        if code & self.sign_bit() != 0 { -value } else { value }
    }
}

/// 2^`exp`, for `exp` in `-1022..=1023`.
const fn power_of_two(exp: i32) -> f64 {
    f64::from_bits(((1023 + exp).cast_unsigned() as u64) << 52)
}

macro_rules! named {
    ($($format:ident $bits:ident: $from_f64:ident $from_f32:ident $to_f64:ident $to_f32:ident;)*) => {$(
        #[doc = concat!("The bits of the `", stringify!($format), "` nearest to `x`.")]
        #[must_use]
        #[expect(clippy::cast_possible_truncation, reason = "a code has as many bits as the type")]
        pub const fn $from_f64(x: f64) -> $bits {
            Format::$format.from_f64(x) as $bits
        }

        #[doc = concat!("The bits of the `", stringify!($format), "` nearest to `x`.")]
        #[must_use]
        pub const fn $from_f32(x: f32) -> $bits {
            $from_f64(x as f64)
        }

        #[doc = concat!("The value of these bits of a `", stringify!($format), "`: exact.")]
        #[must_use]
        pub const fn $to_f64(bits: $bits) -> f64 {
            Format::$format.to_f64(bits as u32)
        }

        #[doc = concat!("The value of these bits of a `", stringify!($format), "`: exact.")]
        #[must_use]
        #[expect(clippy::cast_possible_truncation, reason = "every value is one of `f32`")]
        pub const fn $to_f32(bits: $bits) -> f32 {
            $to_f64(bits) as f32
        }
    )*};
}
named! {
    F16 u16: f16_from_f64 f16_from_f32 f16_to_f64 f16_to_f32;
    BF16 u16: bf16_from_f64 bf16_from_f32 bf16_to_f64 bf16_to_f32;
    E4M3 u8: e4m3_from_f64 e4m3_from_f32 e4m3_to_f64 e4m3_to_f32;
    E5M2 u8: e5m2_from_f64 e5m2_from_f32 e5m2_to_f64 e5m2_to_f32;
}

/// The `f32` with 10 fraction bits nearest to `x`, ties away from zero.
#[must_use]
pub const fn tf32_from_f64(x: f64) -> f32 {
    f32::from_bits(Format::TF32.from_f64(x) << 13)
}

/// The `f32` with 10 fraction bits nearest to `x`, ties away from zero.
#[must_use]
pub const fn tf32_from_f32(x: f32) -> f32 {
    tf32_from_f64(x as f64)
}

/// Packs two 4-bit values per byte, the lower index in the low nibble; only the low four bits of each value are used.
#[must_use]
pub fn pack_nibbles(values: &[u8]) -> Vec<u8> {
    values.chunks(2).map(|pair| (pair[0] & 0xF) | (pair.get(1).map_or(0, |hi| hi << 4))).collect()
}

/// The first `n` 4-bit values of these bytes, each in `0..16`.
#[must_use]
pub fn unpack_nibbles(bytes: &[u8], n: usize) -> Vec<u8> {
    bytes.iter().flat_map(|b| [b & 0xF, b >> 4]).take(n).collect()
}

/// The two's complement value of the low four bits, in `-8..8`.
#[must_use]
#[inline]
pub const fn nibble_to_i8(nibble: u8) -> i8 {
    (nibble << 4).cast_signed() >> 4
}
