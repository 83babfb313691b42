//! The operations on one element: the traits in which the tile loops are generic.
//!
//! `docs/semantics.md` specifies the results. Everything is `#[inline(always)]`, and without branches where a loop should be vectorized.
//! `f16` and `bf16` are computed in `f32`, which has more than twice their digits, so that the second rounding gives the same result as
//! one rounding of the exact result.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_lossless,
    trivial_numeric_casts,
    reason = "shift amounts are reinterpreted as unsigned on purpose, for every type by the same text"
)]

use crate::math;
use crate::rep::{Rep, bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use half::{bf16, f16};
use titan_core::num;

/// Elements with `+ - * / %`.
pub(crate) trait Number: Rep {
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn rem(self, b: Self) -> Self;
    fn min(self, b: Self) -> Self;
    fn max(self, b: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
}

/// Integers, and `bool` for the bitwise ones.
pub(crate) trait Integer: Rep {
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn shl(self, b: Self) -> Self;
    fn shr(self, b: Self) -> Self;
    fn not(self) -> Self;
}

/// Integers without `bool`.
pub(crate) trait Words: Rep {
    fn mul_hi(self, b: Self) -> Self;
    fn count_ones(self) -> u32;
    fn leading_zeros(self) -> u32;
}

/// Floats with arithmetic. `FMA` states that `mul_add` is one instruction here.
pub(crate) trait Float: Number {
    fn exp<const FMA: bool>(self) -> Self;
    fn exp2<const FMA: bool>(self) -> Self;
    fn ln<const FMA: bool>(self) -> Self;
    fn log2<const FMA: bool>(self) -> Self;
    fn sqrt<const FMA: bool>(self) -> Self;
    fn rsqrt<const FMA: bool>(self) -> Self;
    fn recip<const FMA: bool>(self) -> Self;
    fn sin<const FMA: bool>(self) -> Self;
    fn cos<const FMA: bool>(self) -> Self;
    fn tanh<const FMA: bool>(self) -> Self;
    fn sigmoid<const FMA: bool>(self) -> Self;
    fn erf<const FMA: bool>(self) -> Self;
    fn floor<const FMA: bool>(self) -> Self;
    fn ceil<const FMA: bool>(self) -> Self;
    fn trunc<const FMA: bool>(self) -> Self;
    fn round<const FMA: bool>(self) -> Self;
    fn round_ties_even<const FMA: bool>(self) -> Self;
    fn is_nan(self) -> u8;
    fn mul_add(self, b: Self, c: Self) -> Self;
    fn powf(self, b: Self) -> Self;
    /// Whether `sin` and `cos` cannot reduce the argument.
    fn is_huge(self) -> bool;
    /// Applies `f` to the number.
    fn huge(self, f: fn(f64) -> f64) -> Self;
}

macro_rules! integers {
    ($($t:ident $unsigned:ident $wide:ident $abs:expr;)*) => {$(
        impl Number for $t {
            #[inline(always)] fn add(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline(always)] fn sub(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline(always)] fn mul(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline(always)] fn div(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_div(b) } }
            #[inline(always)] fn rem(self, b: Self) -> Self { if b == 0 { self } else { self.wrapping_rem(b) } }
            #[inline(always)] fn min(self, b: Self) -> Self { if b < self { b } else { self } }
            #[inline(always)] fn max(self, b: Self) -> Self { if b > self { b } else { self } }
            #[inline(always)] fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)] fn abs(self) -> Self { $abs(self) }
        }
        impl Integer for $t {
            #[inline(always)] fn and(self, b: Self) -> Self { self & b }
            #[inline(always)] fn or(self, b: Self) -> Self { self | b }
            #[inline(always)] fn xor(self, b: Self) -> Self { self ^ b }
            #[inline(always)] fn shl(self, b: Self) -> Self {
                let all = self.wrapping_shl(b as u32);
                if (b as $unsigned) < $t::BITS as $unsigned { all } else { 0 }
            }
            #[inline(always)] fn shr(self, b: Self) -> Self {
                // For amounts beyond the width, shifting by all bits but one, twice, leaves only copies of the sign of a signed type.
                let within = (b as $unsigned) < $t::BITS as $unsigned;
                let out = (self >> ($t::BITS - 1)) >> 1;
                if within { self.wrapping_shr(b as u32) } else { out }
            }
            #[inline(always)] fn not(self) -> Self { !self }
        }
        impl Words for $t {
            #[inline(always)] fn mul_hi(self, b: Self) -> Self { ((self as $wide * b as $wide) >> $t::BITS) as $t }
            #[inline(always)] fn count_ones(self) -> u32 { $t::count_ones(self) }
            #[inline(always)] fn leading_zeros(self) -> u32 { $t::leading_zeros(self) }
        }
    )*};
}
integers! {
    i64 u64 i128 i64::wrapping_abs; i32 u32 i64 i32::wrapping_abs; i16 u16 i32 i16::wrapping_abs;
    i8 u8 i32 i8::wrapping_abs; u64 u64 u128 std::convert::identity; u32 u32 u64 std::convert::identity;
    u16 u16 u32 std::convert::identity; u8 u8 u32 std::convert::identity;
}

/// A `bool` in its buffer form, 0 or 1, so that `!` is not that of `u8`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub(crate) struct Bit(u8);

impl Rep for Bit {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Bit(bits as u8 & 1)
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.0.into()
    }
}

impl Integer for Bit {
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        Bit(self.0 & b.0)
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        Bit(self.0 | b.0)
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        Bit(self.0 ^ b.0)
    }
    #[inline(always)]
    fn shl(self, _: Self) -> Self {
        self
    }
    #[inline(always)]
    fn shr(self, _: Self) -> Self {
        self
    }
    #[inline(always)]
    fn not(self) -> Self {
        Bit(self.0 ^ 1)
    }
}

macro_rules! floats {
    ($($t:ident $m:ident;)*) => {$(
        impl Number for $t {
            #[inline(always)] fn add(self, b: Self) -> Self { self + b }
            #[inline(always)] fn sub(self, b: Self) -> Self { self - b }
            #[inline(always)] fn mul(self, b: Self) -> Self { self * b }
            #[inline(always)] fn div(self, b: Self) -> Self { self / b }
            #[inline(always)] fn rem(self, b: Self) -> Self { self % b }
            #[inline(always)] fn min(self, b: Self) -> Self {
                // Equal numbers have equal bits, except zeros, of which the negative one is the smaller.
                let equal = $t::from_bits(self.to_bits() | b.to_bits());
                let least = if self < b { self } else { b };
                let least = if self == b { equal } else { least };
                if b.is_nan() { self } else { least }
            }
            #[inline(always)] fn max(self, b: Self) -> Self {
                let equal = $t::from_bits(self.to_bits() & b.to_bits());
                let greatest = if self > b { self } else { b };
                let greatest = if self == b { equal } else { greatest };
                if b.is_nan() { self } else { greatest }
            }
            #[inline(always)] fn neg(self) -> Self { -self }
            #[inline(always)] fn abs(self) -> Self { $t::abs(self) }
        }
        impl Float for $t {
            #[inline(always)] fn exp<const FMA: bool>(self) -> Self { math::$m::exp::<FMA>(self) }
            #[inline(always)] fn exp2<const FMA: bool>(self) -> Self { math::$m::exp2::<FMA>(self) }
            #[inline(always)] fn ln<const FMA: bool>(self) -> Self { math::$m::ln::<FMA>(self) }
            #[inline(always)] fn log2<const FMA: bool>(self) -> Self { math::$m::log2::<FMA>(self) }
            #[inline(always)] fn sqrt<const FMA: bool>(self) -> Self { $t::sqrt(self) }
            #[inline(always)] fn rsqrt<const FMA: bool>(self) -> Self { 1.0 / $t::sqrt(self) }
            #[inline(always)] fn recip<const FMA: bool>(self) -> Self { 1.0 / self }
            #[inline(always)] fn sin<const FMA: bool>(self) -> Self { math::$m::sin(self) }
            #[inline(always)] fn cos<const FMA: bool>(self) -> Self { math::$m::cos(self) }
            #[inline(always)] fn tanh<const FMA: bool>(self) -> Self { math::$m::tanh::<FMA>(self) }
            #[inline(always)] fn sigmoid<const FMA: bool>(self) -> Self { math::$m::sigmoid::<FMA>(self) }
            #[inline(always)] fn erf<const FMA: bool>(self) -> Self { math::$m::erf::<FMA>(self) }
            #[inline(always)] fn floor<const FMA: bool>(self) -> Self { $t::floor(self) }
            #[inline(always)] fn ceil<const FMA: bool>(self) -> Self { $t::ceil(self) }
            #[inline(always)] fn trunc<const FMA: bool>(self) -> Self { $t::trunc(self) }
            #[inline(always)] fn round<const FMA: bool>(self) -> Self { $t::round(self) }
            #[inline(always)] fn round_ties_even<const FMA: bool>(self) -> Self { $t::round_ties_even(self) }
            #[inline(always)] fn is_nan(self) -> u8 { u8::from($t::is_nan(self)) }
            #[inline(always)] fn mul_add(self, b: Self, c: Self) -> Self { num::fma(self, b, c) }
            #[inline(always)] fn powf(self, b: Self) -> Self { libm::pow(self.into(), b.into()) as $t }
            #[inline(always)] fn is_huge(self) -> bool { math::$m::is_huge(self) }
            fn huge(self, f: fn(f64) -> f64) -> Self { f(self.into()) as $t }
        }
    )*};
}
floats! { f32 single; f64 double; }

/// Implements methods of a 16-bit float by conversion to `f32`.
macro_rules! through_f32 {
    ($t:ident $to:ident $from:ident: $($unary:ident)*) => {
        $(#[inline(always)] fn $unary<const FMA: bool>(self) -> $t { $from(Float::$unary::<FMA>($to(self))) })*
    };
}

macro_rules! halves {
    ($($t:ident $to:ident $from:ident $from_f64:path;)*) => {$(
        impl Number for $t {
            #[inline(always)] fn add(self, b: Self) -> Self { $from($to(self) + $to(b)) }
            #[inline(always)] fn sub(self, b: Self) -> Self { $from($to(self) - $to(b)) }
            #[inline(always)] fn mul(self, b: Self) -> Self { $from($to(self) * $to(b)) }
            #[inline(always)] fn div(self, b: Self) -> Self { $from($to(self) / $to(b)) }
            #[inline(always)] fn rem(self, b: Self) -> Self { $from($to(self) % $to(b)) }
            #[inline(always)] fn min(self, b: Self) -> Self { $from(Number::min($to(self), $to(b))) }
            #[inline(always)] fn max(self, b: Self) -> Self { $from(Number::max($to(self), $to(b))) }
            #[inline(always)] fn neg(self) -> Self { $t::from_bits(self.to_bits() ^ 0x8000) }
            #[inline(always)] fn abs(self) -> Self { $t::from_bits(self.to_bits() & 0x7FFF) }
        }
        impl Float for $t {
            through_f32! { $t $to $from: exp exp2 ln log2 sqrt rsqrt recip sin cos tanh sigmoid erf }
            through_f32! { $t $to $from: floor ceil trunc round round_ties_even }
            #[inline(always)] fn is_nan(self) -> u8 { u8::from($to(self).is_nan()) }
            #[inline(always)] fn mul_add(self, b: Self, c: Self) -> Self {
                let product = f64::from($to(self)) * f64::from($to(b));
                $t::from_bits($from_f64(sum_to_odd(product, f64::from($to(c)))))
            }
            #[inline(always)] fn powf(self, b: Self) -> Self { $from(Float::powf($to(self), $to(b))) }
            #[inline(always)] fn is_huge(self) -> bool { math::single::is_huge($to(self)) }
            fn huge(self, f: fn(f64) -> f64) -> Self { $from(f($to(self).into()) as f32) }
        }
    )*};
}
halves! {
    f16 f16_to_f32 f16_from_f32 num::f16_from_f64;
    bf16 bf16_to_f32 bf16_from_f32 num::bf16_from_f64;
}

/// `a + b` rounded to odd: a later rounding to few digits then gives what one rounding of the exact sum gives.
#[inline(always)]
fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    if error == 0.0 || !error.is_finite() || bits & 1 == 1 {
        return sum;
    }
    // The exact sum lies between `sum`, which is even, and its neighbour on the side of the error, which is odd.
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}
