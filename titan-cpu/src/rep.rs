//! The representation of elements in tile buffers and in scalar slots, and their values as numbers.
//!
//! | element | in a buffer | | element | in a buffer |
//! |---|---|---|---|---|
//! | `f64` `f32` | themselves | | `i64` … `u8` | themselves |
//! | `tf32` | `f32` | | `i4` | `i8` in `-8..8` |
//! | `f16` `bf16` | `half`'s types | | `u4` | `u8` in `0..16` |
//! | `e4m3` `e5m2` | `u8` | | `bool` | `u8`, 0 or 1 |
//!
//! A scalar slot is a `u64`: an integer is sign- or zero-extended, a float is its bits.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    trivial_numeric_casts,
    reason = "conversions between numbers are what this module is for, and Rust's `as` is the meaning that is wanted"
)]

use bytemuck::Pod;
use half::{bf16, f16};
use titan_core::ir::Elem;

/// A type that represents elements in buffers.
pub(crate) trait Rep: Pod + PartialEq + PartialOrd + Send + Sync {
    /// Converts from a scalar slot.
    fn from_bits(bits: u64) -> Self;
    /// Converts to a scalar slot.
    fn to_bits(self) -> u64;
}

macro_rules! int_rep {
    ($($t:ty)*) => {$(
        impl Rep for $t {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as i64 as u64
            }
        }
    )*};
}
int_rep! { i64 i32 i16 i8 u64 u32 u16 u8 }

macro_rules! float_rep {
    ($($t:ty: $bits:ty;)*) => {$(
        impl Rep for $t {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$t>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                <$t>::to_bits(self) as u64
            }
        }
    )*};
}
float_rep! { f64: u64; f32: u32; f16: u16; bf16: u16; }

/// The size of an element in a tile buffer, in bytes.
pub(crate) const fn size(elem: Elem) -> usize {
    let bits = elem.bits() as usize;
    if bits == 4 { 1 } else { bits / 8 }
}

/// The scalar slot of an element given by its low bits: signed integers are sign-extended.
pub(crate) fn extend(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::I32 => i32::from_bits(bits).to_bits(),
        Elem::I16 => i16::from_bits(bits).to_bits(),
        Elem::I8 | Elem::I4 => i8::from_bits(bits).to_bits(),
        Elem::F64
        | Elem::F32
        | Elem::Tf32
        | Elem::F16
        | Elem::Bf16
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => bits,
    }
}

/// Calls a generic function with the unsigned type of a width in bytes: 1, 2, 4 or 8.
macro_rules! with_width {
    ($bytes:expr, $f:ident ($($arg:expr),* $(,)?)) => {
        match $bytes {
            1 => $f::<u8>($($arg),*),
            2 => $f::<u16>($($arg),*),
            4 => $f::<u32>($($arg),*),
            _ => $f::<u64>($($arg),*),
        }
    };
}
pub(crate) use with_width;

/// `f16` to `f32`, exact, without branches.
#[inline(always)]
pub(crate) fn f16_to_f32(x: f16) -> f32 {
    let bits = u32::from(x.to_bits());
    let magnitude = (bits & 0x7FFF) << 13;
    // A product moves the exponent from bias 15 to bias 127, and normalizes subnormals.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let value = if magnitude >= 0x0F80_0000 { magnitude | 0x7F80_0000 } else { scaled.to_bits() };
    f32::from_bits(value | (bits & 0x8000) << 16)
}

/// `f32` to `f16`, to nearest even, without branches.
#[inline(always)]
pub(crate) fn f16_from_f32(x: f32) -> f16 {
    let bits = x.to_bits();
    let twice = bits << 1;
    // Scaling up and down again makes values that overflow infinite.
    let base = (x.abs() * f32::from_bits(0x7780_0000)) * f32::from_bits(0x0880_0000);
    // Adding a power of two 2^13 units in the last place of f16 above rounds to f16's last place.
    let exponent = (twice & 0xFF00_0000).max(0x7100_0000);
    let rounded = (f32::from_bits((exponent >> 1) + 0x0780_0000) + base).to_bits();
    let magnitude = ((rounded >> 13) & 0x7C00) + (rounded & 0x0FFF);
    let magnitude = if twice > 0xFF00_0000 { 0x7E00 } else { magnitude };
    f16::from_bits(((bits >> 16) & 0x8000 | magnitude) as u16)
}

/// `bf16` to `f32`, exact.
#[inline(always)]
pub(crate) fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// `f32` to `bf16`, to nearest even, without branches.
#[inline(always)]
pub(crate) fn bf16_from_f32(x: f32) -> bf16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x0040;
    bf16::from_bits(if bits & 0x7FFF_FFFF > 0x7F80_0000 { quiet } else { rounded } as u16)
}
