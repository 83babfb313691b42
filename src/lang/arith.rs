//! Arithmetic on single elements, with the same result on every device.
//!
//! Integers wrap; `x / 0` is 0 and `x % 0` is `x`; shifts by the width or more shift everything out. Floats round once,
//! to nearest even: `f16` and `bf16` compute in `f64`, whose 53 bits are more than twice theirs plus two, so that the
//! second rounding changes nothing.

use half::{bf16, f16};

use super::elem::{Number, Repr};

/// `+ - * / %` and what reductions need; sealed by [`Repr`].
pub trait Arith: Repr {
    #[doc(hidden)]
    fn plus(self, b: Self) -> Self;
    #[doc(hidden)]
    fn minus(self, b: Self) -> Self;
    #[doc(hidden)]
    fn times(self, b: Self) -> Self;
    #[doc(hidden)]
    fn over(self, b: Self) -> Self;
    /// Exact, with the sign of the dividend; of floats by 0, NaN.
    #[doc(hidden)]
    fn remainder(self, b: Self) -> Self;
    /// The number 1 with the sign; of integers 0 for 0, of NaN NaN.
    #[doc(hidden)]
    fn unit_with_sign(self) -> Self;
    #[doc(hidden)]
    fn negated(self) -> Self;
    #[doc(hidden)]
    fn magnitude(self) -> Self;
    /// If one is NaN, the other is the result; −0 is less than +0.
    #[doc(hidden)]
    fn greater(self, b: Self) -> Self;
    #[doc(hidden)]
    fn lesser(self, b: Self) -> Self;
    #[doc(hidden)]
    fn missing(self) -> bool;
    /// The sums of every prefix, each rounded once.
    #[doc(hidden)]
    fn sums(values: &[Self]) -> Vec<Self>;
    #[doc(hidden)]
    fn product(values: &[Self]) -> Self;
}

/// `& | ^ !`; sealed by [`Repr`].
pub trait Bitwise: Repr {
    #[doc(hidden)]
    fn and(self, b: Self) -> Self;
    #[doc(hidden)]
    fn or(self, b: Self) -> Self;
    #[doc(hidden)]
    fn xor(self, b: Self) -> Self;
    #[doc(hidden)]
    fn complement(self) -> Self;
}

/// `<< >>`, and the bits of numbers; sealed by [`Repr`].
pub trait Integral: Repr {
    #[doc(hidden)]
    fn ones(self) -> u32;
    #[doc(hidden)]
    fn zeros_above(self) -> u32;
    #[doc(hidden)]
    fn zeros_below(self) -> u32;
    #[doc(hidden)]
    fn upper_half(self, b: Self) -> Self;
    #[doc(hidden)]
    fn shifted_left(self, n: Self) -> Self;
    #[doc(hidden)]
    fn shifted_right(self, n: Self) -> Self;
}

macro_rules! ints {
    ($($t:ident $wide:ident $negative:expr;)*) => {$(
        impl Arith for $t {
            fn plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            fn minus(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            fn times(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            fn over(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            fn remainder(self, b: Self) -> Self {
                if b == 0 { self } else { self.wrapping_rem(b) }
            }
            fn unit_with_sign(self) -> Self {
                if self == 0 {
                    0
                } else if $negative(self) {
                    !0
                } else {
                    1
                }
            }
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
            fn magnitude(self) -> Self {
                if $negative(self) { self.wrapping_neg() } else { self }
            }
            fn greater(self, b: Self) -> Self {
                self.max(b)
            }
            fn lesser(self, b: Self) -> Self {
                self.min(b)
            }
            fn missing(self) -> bool {
                false
            }
            fn sums(values: &[Self]) -> Vec<Self> {
                let mut sum: Self = 0;
                values.iter().map(|x| { sum = sum.wrapping_add(*x); sum }).collect()
            }
            fn product(values: &[Self]) -> Self {
                values.iter().fold(1, |p, x| p.wrapping_mul(*x))
            }
        }

        impl Bitwise for $t {
            fn and(self, b: Self) -> Self {
                self & b
            }
            fn or(self, b: Self) -> Self {
                self | b
            }
            fn xor(self, b: Self) -> Self {
                self ^ b
            }
            fn complement(self) -> Self {
                !self
            }
        }

        impl Integral for $t {
            fn ones(self) -> u32 {
                self.count_ones()
            }
            fn zeros_above(self) -> u32 {
                self.leading_zeros()
            }
            fn zeros_below(self) -> u32 {
                self.trailing_zeros()
            }
            #[expect(clippy::allow_attributes, reason = "only some types lose their sign")]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the upper half has as many bits as the type")]
            fn upper_half(self, b: Self) -> Self {
                ($wide::from(self) * $wide::from(b) >> Self::BITS) as $t
            }
            fn shifted_left(self, n: Self) -> Self {
                u32::try_from(n).ok().and_then(|n| self.checked_shl(n)).unwrap_or(0)
            }
            fn shifted_right(self, n: Self) -> Self {
                let out = if $negative(self) { !0 } else { 0 };
                u32::try_from(n).ok().and_then(|n| self.checked_shr(n)).unwrap_or(out)
            }
        }
    )*};
}
ints! {
    i64 i128 i64::is_negative; i32 i64 i32::is_negative; i16 i32 i16::is_negative; i8 i32 i8::is_negative;
    u64 u128 |_| false; u32 u64 |_| false; u16 u32 |_| false; u8 u32 |_| false;
}

impl Bitwise for bool {
    fn and(self, b: Self) -> Self {
        self & b
    }
    fn or(self, b: Self) -> Self {
        self | b
    }
    fn xor(self, b: Self) -> Self {
        self ^ b
    }
    fn complement(self) -> Self {
        !self
    }
}

macro_rules! floats {
    ($($t:ident: $plus:expr, $minus:expr, $times:expr, $over:expr;)*) => {$(
        impl Arith for $t {
            fn plus(self, b: Self) -> Self {
                $plus(self, b)
            }
            fn minus(self, b: Self) -> Self {
                $minus(self, b)
            }
            fn times(self, b: Self) -> Self {
                $times(self, b)
            }
            fn over(self, b: Self) -> Self {
                $over(self, b)
            }
            fn remainder(self, b: Self) -> Self {
                // Exact, so that the remainder of two numbers of a type is one of its numbers.
                Self::of_number(Number::Float(f64::from(self) % f64::from(b)))
            }
            fn unit_with_sign(self) -> Self {
                Self::of_number(Number::Float(f64::from(self).signum()))
            }
            fn negated(self) -> Self {
                -self
            }
            fn magnitude(self) -> Self {
                if self.is_sign_negative() { -self } else { self }
            }
            fn greater(self, b: Self) -> Self {
                if self.is_nan() || (!b.is_nan() && (b > self || (b == self && self.is_sign_negative()))) { b } else { self }
            }
            fn lesser(self, b: Self) -> Self {
                if self.is_nan() || (!b.is_nan() && (b < self || (b == self && b.is_sign_negative()))) { b } else { self }
            }
            fn missing(self) -> bool {
                self.is_nan()
            }
            fn sums(values: &[Self]) -> Vec<Self> {
                let mut sum = None;
                let mut add = |x: &Self| {
                    let x = f64::from(*x);
                    let total = sum.map_or(x, |s| s + x);
                    sum = Some(total);
                    Self::of_number(Number::Float(total))
                };
                values.iter().map(&mut add).collect()
            }
            fn product(values: &[Self]) -> Self {
                Self::of_number(Number::Float(values.iter().map(|x| f64::from(*x)).product()))
            }
        }
    )*};
}

macro_rules! in_f64 {
    ($t:ident $op:tt) => {
        |a: $t, b: $t| $t::of_number(Number::Float(f64::from(a) $op f64::from(b)))
    };
}
floats! {
    f64: |a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b;
    f32: |a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b;
    f16: in_f64!(f16 +), in_f64!(f16 -), in_f64!(f16 *), in_f64!(f16 /);
    bf16: in_f64!(bf16 +), in_f64!(bf16 -), in_f64!(bf16 *), in_f64!(bf16 /);
}
