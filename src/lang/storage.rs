//! Element types that Rust does not have: storage formats and operands of `mma`, without arithmetic.
//!
//! | type | value | from a number |
//! |---|---|---|
//! | [`tf32`] | an `f32` with 10 fraction bits | nearest, ties away from zero |
//! | [`e4m3`] | OCP FP8, ±448 at most, no infinity | nearest even, saturates |
//! | [`e5m2`] | OCP FP8, ±57344 at most | nearest even, saturates |
//! | [`i4`] | −8 to 7 | low bits of integers; floats truncate and saturate |
//! | [`u4`] | 0 to 15 | low bits of integers; floats truncate and saturate |

#![expect(non_camel_case_types, reason = "element types are spelled like Rust's primitive types")]

use std::cmp::Ordering;
use std::fmt;

use titan_core::num;

use super::elem::{Number, Repr, int_code};

/// An `f32` whose significand has 10 fraction bits: an operand of `mma`.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct tf32(f32);

impl tf32 {
    /// The nearest `tf32`, ties away from zero.
    #[must_use]
    pub const fn from_f32(x: f32) -> Self {
        tf32(num::tf32_from_f32(x))
    }

    /// The value: exact.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        self.0
    }
}

macro_rules! eight_bit_floats {
    ($($t:ident $format:ident $from:ident $to:ident $what:literal;)*) => {$(
        #[doc = $what]
        #[derive(Clone, Copy, Default)]
        pub struct $t(u8);

        impl $t {
            /// The value of these bits.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                $t(bits)
            }

            /// The bits.
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest value, ties to even; too large saturates.
            #[must_use]
            pub const fn from_f32(x: f32) -> Self {
                $t(num::$from(x))
            }

            /// The value: exact.
            #[must_use]
            pub const fn to_f32(self) -> f32 {
                num::$to(self.0)
            }
        }

        impl PartialEq for $t {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $t {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl Repr for $t {
            fn number(self) -> Number {
                Number::Float(self.to_f32().into())
            }
            #[expect(clippy::cast_possible_truncation, reason = "the code of an 8-bit format")]
            fn of_number(n: Number) -> Self {
                $t(match n {
                    Number::Float(x) => num::Format::$format.from_f64(x),
                    Number::Int(i) => int_code(num::Format::$format, i),
                } as u8)
            }
            fn raw(self) -> u64 {
                self.0.into()
            }
            #[expect(clippy::cast_possible_truncation, reason = "the bits lie in the low end")]
            fn of_raw(bits: u64) -> Self {
                $t(bits as u8)
            }
        }
    )*};
}
eight_bit_floats! {
    e4m3 E4M3 e4m3_from_f32 e4m3_to_f32 "An 8-bit float with 4 exponent and 3 fraction bits, without infinity.";
    e5m2 E5M2 e5m2_from_f32 e5m2_to_f32 "An 8-bit float with 5 exponent and 2 fraction bits.";
}

/// A signed 4-bit integer, packed two to a byte in tensors.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct i4(i8);

impl i4 {
    /// The low four bits.
    #[must_use]
    pub const fn from_i8(x: i8) -> Self {
        i4(num::nibble_to_i8(x.cast_unsigned()))
    }

    /// The value, −8 to 7.
    #[must_use]
    pub const fn to_i8(self) -> i8 {
        self.0
    }
}

/// An unsigned 4-bit integer, packed two to a byte in tensors.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct u4(u8);

impl u4 {
    /// The low four bits.
    #[must_use]
    pub const fn from_u8(x: u8) -> Self {
        u4(x & 0xF)
    }

    /// The value, 0 to 15.
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        self.0
    }
}

impl Repr for tf32 {
    fn number(self) -> Number {
        Number::Float(self.0.into())
    }
    fn of_number(n: Number) -> Self {
        tf32(match n {
            Number::Float(x) => num::tf32_from_f64(x),
            Number::Int(i) => f32::from_bits(int_code(num::Format::TF32, i) << 13),
        })
    }
    fn raw(self) -> u64 {
        self.0.to_bits().into()
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bits lie in the low end")]
    fn of_raw(bits: u64) -> Self {
        tf32::from_f32(f32::from_bits(bits as u32))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "casts saturate from floats and keep low bits of integers")]
impl Repr for i4 {
    fn number(self) -> Number {
        Number::Int(self.0.into())
    }
    fn of_number(n: Number) -> Self {
        match n {
            Number::Float(x) => i4((x as i8).clamp(-8, 7)),
            Number::Int(i) => i4::from_i8(i as i8),
        }
    }
    fn raw(self) -> u64 {
        (self.0.cast_unsigned() & 0xF).into()
    }
    fn of_raw(bits: u64) -> Self {
        i4::from_i8(bits as i8)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate from floats and keep low bits of integers"
)]
impl Repr for u4 {
    fn number(self) -> Number {
        Number::Int(self.0.into())
    }
    fn of_number(n: Number) -> Self {
        match n {
            Number::Float(x) => u4((x as u8).min(15)),
            Number::Int(i) => u4::from_u8(i as u8),
        }
    }
    fn raw(self) -> u64 {
        self.0.into()
    }
    fn of_raw(bits: u64) -> Self {
        u4::from_u8(bits as u8)
    }
}

macro_rules! shown {
    ($($t:ident $value:ident $of:ident)*) => {$(
        impl From<$t> for $of {
            /// The value: exact.
            fn from(x: $t) -> $of {
                x.$value()
            }
        }

        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.$value(), f)
            }
        }
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.$value(), f)
            }
        }
    )*};
}
shown! { tf32 to_f32 f32 e4m3 to_f32 f32 e5m2 to_f32 f32 i4 to_i8 i8 u4 to_u8 u8 }

macro_rules! in_bits {
    ($($t:ident: $($trait:ident)*;)*) => {$($(
        impl fmt::$trait for $t {
            /// The four bits.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$trait::fmt(&self.raw(), f)
            }
        }
    )*)*};
}
in_bits! { i4: LowerHex UpperHex Octal Binary; u4: LowerHex UpperHex Octal Binary; }
