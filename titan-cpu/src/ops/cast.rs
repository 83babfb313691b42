//! Conversions between element types: one exact step to a wide type, one rounding to the result.
//!
//! A source type has a wide type (`f32`, `f64`, `i32`, `u32`, `i64` or `u64`, whichever holds all its values), a target type
//! converts from every wide type. That makes 18 × 18 loops out of 18 + 18 short definitions.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    trivial_numeric_casts,
    reason = "conversions between numbers are what this module is for, and Rust's `as` is the meaning that is wanted"
)]

use super::elementwise::{Unary, unary_fn};
use super::halves::{from_half, from_single, to_half, to_single};
use super::{ElementFn, TileFn};
use crate::rep::{Rep, bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use half::{bf16, f16};
use titan_core::ir::Elem;
use titan_core::num::{self, Format};

/// An element type to convert from.
trait Source {
    type Rep: Rep;
    type Wide;
    fn widen(x: Self::Rep) -> Self::Wide;
}

/// An element type to convert to, from a wide type.
trait Target<W>: Kind {
    fn narrow(x: W) -> Self::Rep;
}

/// An element type as a type.
trait Kind {
    type Rep: Rep;
}

macro_rules! sources {
    ($($name:ident: $rep:ty => $wide:ty, $widen:expr;)*) => {$(
        struct $name;
        impl Kind for $name {
            type Rep = $rep;
        }
        impl Source for $name {
            type Rep = $rep;
            type Wide = $wide;
            #[inline(always)]
            fn widen(x: $rep) -> $wide {
                $widen(x)
            }
        }
    )*};
}
sources! {
    F64: f64 => f64, |x| x;
    F32: f32 => f32, |x| x;
    Tf32: f32 => f32, |x| x;
    F16: f16 => f32, f16_to_f32;
    Bf16: bf16 => f32, bf16_to_f32;
    E4m3: u8 => f32, |x: u8| E4M3_VALUES[usize::from(x)];
    E5m2: u8 => f32, |x: u8| E5M2_VALUES[usize::from(x)];
    I64: i64 => i64, |x| x;
    I32: i32 => i32, |x| x;
    I16: i16 => i32, i32::from;
    I8: i8 => i32, i32::from;
    I4: i8 => i32, i32::from;
    U64: u64 => u64, |x| x;
    U32: u32 => u32, |x| x;
    U16: u16 => i32, i32::from;
    U8: u8 => i32, i32::from;
    U4: u8 => i32, i32::from;
    Bool: u8 => i32, i32::from;
}

static E4M3_VALUES: [f32; 256] = table(Format::E4M3);
static E5M2_VALUES: [f32; 256] = table(Format::E5M2);

const fn table(format: Format) -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        values[code] = format.to_f64(code as u32) as f32;
        code += 1;
    }
    values
}

/// Implements targets to which Rust's `as` converts.
macro_rules! native_targets {
    ($($name:ident: $rep:ty;)*) => {
        native_targets! { @ f32: $($name $rep)* }
        native_targets! { @ f64: $($name $rep)* }
        native_targets! { @ i32: $($name $rep)* }
        native_targets! { @ u32: $($name $rep)* }
        native_targets! { @ i64: $($name $rep)* }
        native_targets! { @ u64: $($name $rep)* }
    };
    (@ $wide:ty: $($name:ident $rep:ty)*) => {$(
        impl Target<$wide> for $name {
            #[inline(always)]
            fn narrow(x: $wide) -> $rep {
                x as $rep
            }
        }
    )*};
}
native_targets! {
    F64: f64; F32: f32; I64: i64; I32: i32; I16: i16; I8: i8; U64: u64; U32: u32; U16: u16; U8: u8;
}

/// Implements targets with their own conversion from each wide type.
macro_rules! targets {
    ($($name:ident: f32 $f32:expr, f64 $f64:expr, i32 $i32:expr, u32 $u32:expr, i64 $i64:expr, u64 $u64:expr;)*) => {$(
        targets! { @ $name f32 $f32 }
        targets! { @ $name f64 $f64 }
        targets! { @ $name i32 $i32 }
        targets! { @ $name u32 $u32 }
        targets! { @ $name i64 $i64 }
        targets! { @ $name u64 $u64 }
    )*};
    (@ $name:ident $wide:ident $f:expr) => {
        impl Target<$wide> for $name {
            #[inline(always)]
            fn narrow(x: $wide) -> <$name as Kind>::Rep {
                $f(x)
            }
        }
    };
}
targets! {
    F16:
        f32 f16_from_f32,
        f64 |x| f16::from_bits(num::f16_from_f64(x)),
        // Every integer beyond 2^24 becomes infinite here, whichever way the step to `f32` rounded.
        i32 |x: i32| f16_from_f32(x as f32),
        u32 |x: u32| f16_from_f32(x as f32),
        i64 |x: i64| f16_from_f32(x as f32),
        u64 |x: u64| f16_from_f32(x as f32);
    Bf16:
        f32 bf16_from_f32,
        f64 |x| bf16::from_bits(num::bf16_from_f64(x)),
        i32 |x: i32| bf16::from_bits(num::bf16_from_f64(x.into())),
        u32 |x: u32| bf16::from_bits(num::bf16_from_f64(x.into())),
        i64 |x: i64| bf16::from_bits(Format::BF16.from_int(x < 0, x.unsigned_abs()) as u16),
        u64 |x: u64| bf16::from_bits(Format::BF16.from_int(false, x) as u16);
    E4m3:
        f32 num::e4m3_from_f32,
        f64 num::e4m3_from_f64,
        i32 |x: i32| num::e4m3_from_f64(x.into()),
        u32 |x: u32| num::e4m3_from_f64(x.into()),
        i64 |x: i64| Format::E4M3.from_int(x < 0, x.unsigned_abs()) as u8,
        u64 |x: u64| Format::E4M3.from_int(false, x) as u8;
    E5m2:
        f32 num::e5m2_from_f32,
        f64 num::e5m2_from_f64,
        i32 |x: i32| num::e5m2_from_f64(x.into()),
        u32 |x: u32| num::e5m2_from_f64(x.into()),
        i64 |x: i64| Format::E5M2.from_int(x < 0, x.unsigned_abs()) as u8,
        u64 |x: u64| Format::E5M2.from_int(false, x) as u8;
    Tf32:
        f32 tf32_from_f32,
        f64 num::tf32_from_f64,
        i32 |x: i32| num::tf32_from_f64(x.into()),
        u32 |x: u32| num::tf32_from_f64(x.into()),
        i64 |x: i64| tf32_from_int(x < 0, x.unsigned_abs()),
        u64 |x: u64| tf32_from_int(false, x);
    I4:
        f32 |x: f32| (x as i8).clamp(-8, 7),
        f64 |x: f64| (x as i8).clamp(-8, 7),
        i32 |x: i32| low_nibble(x as i8),
        u32 |x: u32| low_nibble(x as i8),
        i64 |x: i64| low_nibble(x as i8),
        u64 |x: u64| low_nibble(x as i8);
    U4:
        f32 |x: f32| (x as u8).min(15),
        f64 |x: f64| (x as u8).min(15),
        i32 |x: i32| x as u8 & 15,
        u32 |x: u32| x as u8 & 15,
        i64 |x: i64| x as u8 & 15,
        u64 |x: u64| x as u8 & 15;
    Bool:
        f32 |x: f32| u8::from(x != 0.0),
        f64 |x: f64| u8::from(x != 0.0),
        i32 |x: i32| u8::from(x != 0),
        u32 |x: u32| u8::from(x != 0),
        i64 |x: i64| u8::from(x != 0),
        u64 |x: u64| u8::from(x != 0);
}

#[inline(always)]
const fn low_nibble(x: i8) -> i8 {
    (x << 4) >> 4
}

/// Rounds ties away from zero: half a unit is added to the magnitude, and the rest is truncated. Infinities stay, NaN stays NaN.
#[inline(always)]
fn tf32_from_f32(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = f32::from_bits(bits.wrapping_add(0x1000) & !0x1FFF);
    if x.is_finite() { rounded } else { x }
}

fn tf32_from_int(negative: bool, magnitude: u64) -> f32 {
    let code = Format::TF32.from_int(negative, magnitude);
    f32::from_bits(code << 13)
}

struct Convert<S, T>(S, T);

impl<S: Source, T: Target<S::Wide>> Unary<<S as Source>::Rep, <T as Kind>::Rep> for Convert<S, T> {
    #[inline(always)]
    fn eval<const FMA: bool>(a: <S as Source>::Rep) -> <T as Kind>::Rep {
        T::narrow(S::widen(a))
    }
}

/// The conversion between two element types.
pub(crate) fn cast(from: Elem, to: Elem) -> ElementFn {
    macro_rules! from {
        ($($name:ident)*) => {
            match from { $(Elem::$name => target::<$name>(to),)* }
        };
    }
    let found = from! { F64 F32 Tf32 F16 Bf16 E4m3 E5m2 I64 I32 I16 I8 I4 U64 U32 U16 U8 U4 Bool };
    in_blocks(from, to).map_or(found, |tile| ElementFn { tile, ..found })
}

/// The loop of a conversion from or to `f16`, block by block through `f32`, where that is what [`Convert`] does for each element.
fn in_blocks(from: Elem, to: Elem) -> Option<TileFn> {
    macro_rules! each {
        ($of:expr, $name:ident => $tile:expr; $($case:ident)*) => {
            match $of {
                $(Elem::$case => {
                    type $name = $case;
                    $tile
                })*
                Elem::F16 | Elem::F32 | Elem::F64 => return None,
            }
        };
    }
    Some(match (from, to) {
        (Elem::F16, Elem::F16) => return None,
        (Elem::F16, Elem::F32) => to_single,
        (Elem::F16, Elem::F64) => from_half::<f64, Convert<F32, F64>>,
        (Elem::F32, Elem::F16) => from_single,
        (Elem::F16, to) => each! {
            to, T => from_half::<<T as Kind>::Rep, Convert<F32, T>>;
            Tf32 Bf16 E4m3 E5m2 I64 I32 I16 I8 I4 U64 U32 U16 U8 U4 Bool
        },
        (from, Elem::F16) => each! {
            from, S => to_half::<<S as Kind>::Rep, Convert<S, F32>>;
            Tf32 Bf16 E4m3 E5m2 I64 I32 I16 I8 I4 U64 U32 U16 U8 U4 Bool
        },
        (_, _) => return None,
    })
}

macro_rules! every_target {
    ($($name:ident)*) => {
        fn target<S: Source>(to: Elem) -> ElementFn
        where
            $($name: Target<S::Wide>,)*
        {
            match to { $(Elem::$name => convert::<S, $name>(),)* }
        }
    };
}
every_target! { F64 F32 Tf32 F16 Bf16 E4m3 E5m2 I64 I32 I16 I8 I4 U64 U32 U16 U8 U4 Bool }

fn convert<S: Source, T: Target<S::Wide>>() -> ElementFn {
    unary_fn::<<S as Source>::Rep, <T as Kind>::Rep, Convert<S, T>>()
}

/// The reinterpretation of bits as another type of the same width.
pub(crate) fn bitcast(from: Elem, to: Elem) -> ElementFn {
    match (from, to) {
        (Elem::U4, Elem::I4) => unary_fn::<u8, i8, Nibble>(),
        (Elem::I4, Elem::U4) => unary_fn::<i8, u8, Nibble>(),
        _ => match crate::rep::size(to) {
            1 => same_bits::<u8>(from, to),
            2 => same_bits::<u16>(from, to),
            4 => same_bits::<u32>(from, to),
            _ => same_bits::<u64>(from, to),
        },
    }
}

struct Nibble;
impl Unary<u8, i8> for Nibble {
    #[inline(always)]
    fn eval<const FMA: bool>(a: u8) -> i8 {
        low_nibble(a as i8)
    }
}
impl Unary<i8, u8> for Nibble {
    #[inline(always)]
    fn eval<const FMA: bool>(a: i8) -> u8 {
        a as u8 & 15
    }
}

struct Same;
impl<T> Unary<T, T> for Same {
    #[inline(always)]
    fn eval<const FMA: bool>(a: T) -> T {
        a
    }
}

/// In a scalar slot a signed integer is sign-extended, everything else is zero-extended.
fn same_bits<T: Rep>(_from: Elem, to: Elem) -> ElementFn {
    let tile = unary_fn::<T, T, Same>().tile;
    let scalar = match to {
        Elem::I32 => unary_fn::<u64, u64, Extend<i32>>().scalar,
        Elem::I16 => unary_fn::<u64, u64, Extend<i16>>().scalar,
        Elem::I8 => unary_fn::<u64, u64, Extend<i8>>().scalar,
        Elem::F64
        | Elem::F32
        | Elem::Tf32
        | Elem::F16
        | Elem::Bf16
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => unary_fn::<u64, u64, Extend<T>>().scalar,
    };
    ElementFn { tile, scalar }
}

struct Extend<T>(T);
impl<T: Rep> Unary<u64, u64> for Extend<T> {
    #[inline(always)]
    fn eval<const FMA: bool>(a: u64) -> u64 {
        T::from_bits(a).to_bits()
    }
}
