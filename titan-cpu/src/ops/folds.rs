//! The combining functions of reductions: sums, products and extremes of every element type. `f16` and `bf16` accumulate in `f32`.

use super::number::Number;
use crate::rep::{bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use half::{bf16, f16};

/// A combining function.
pub(crate) trait Fold<T> {
    type Acc: Copy;
    const START: Self::Acc;
    fn step(acc: Self::Acc, x: T) -> Self::Acc;
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn finish(acc: Self::Acc) -> T;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Max;
pub(super) struct Min;

macro_rules! folds {
    ($($t:ident { $($op:ident $start:expr, $method:ident;)* })*) => {$($(
        impl Fold<$t> for $op {
            type Acc = $t;
            const START: $t = $start;
            #[inline(always)]
            fn step(acc: $t, x: $t) -> $t {
                Number::$method(acc, x)
            }
            #[inline(always)]
            fn merge(a: $t, b: $t) -> $t {
                Number::$method(a, b)
            }
            #[inline(always)]
            fn finish(acc: $t) -> $t {
                acc
            }
        }
    )*)*};
}
macro_rules! int_folds {
    ($($t:ident)*) => {
        folds! { $($t { Sum 0, add; Prod 1, mul; Max $t::MIN, max; Min $t::MAX, min; })* }
    };
}
// Only −0 is neutral for a sum: `0.0 + -0.0` is `0.0`.
folds! { f64 { Sum -0.0, add; Prod 1.0, mul; } f32 { Sum -0.0, add; Prod 1.0, mul; } }
int_folds! { i64 i32 i16 i8 u64 u32 u16 u8 }

/// The extremes of floats are those of integers with the same order, with NaN beyond the last: one short step, whereas comparing
/// floats takes a chain of dependent steps.
macro_rules! float_extremes {
    ($($t:ident $key:ident;)*) => {$(
        float_extremes! { @ $t $key Max $key::MIN, max }
        float_extremes! { @ $t $key Min $key::MAX, min }
    )*};
    (@ $t:ident $key:ident $op:ident $none:expr, $method:ident) => {
        impl Fold<$t> for $op {
            type Acc = $key;
            const START: $key = $none;
            #[inline(always)]
            fn step(acc: $key, x: $t) -> $key {
                let bits = x.to_bits().cast_signed();
                let key = bits ^ ((bits >> ($key::BITS - 1)) & $key::MAX);
                Number::$method(acc, if x.is_nan() { $none } else { key })
            }
            #[inline(always)]
            fn merge(a: $key, b: $key) -> $key {
                Number::$method(a, b)
            }
            #[inline(always)]
            fn finish(acc: $key) -> $t {
                let bits = acc ^ ((acc >> ($key::BITS - 1)) & $key::MAX);
                // A key that belongs to no number is that of a NaN.
                $t::from_bits(bits.cast_unsigned())
            }
        }
    };
}
float_extremes! { f32 i32; f64 i64; }

macro_rules! half_folds {
    ($($t:ident $to:ident $from:ident;)*) => {$(
        half_folds! { @ $t $to $from: Sum Prod Max Min }
    )*};
    (@ $t:ident $to:ident $from:ident: $($op:ident)*) => {$(
        impl Fold<$t> for $op {
            type Acc = <$op as Fold<f32>>::Acc;
            const START: Self::Acc = <$op as Fold<f32>>::START;
            #[inline(always)]
            fn step(acc: Self::Acc, x: $t) -> Self::Acc {
                <$op as Fold<f32>>::step(acc, $to(x))
            }
            #[inline(always)]
            fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc {
                <$op as Fold<f32>>::merge(a, b)
            }
            #[inline(always)]
            fn finish(acc: Self::Acc) -> $t {
                $from(<$op as Fold<f32>>::finish(acc))
            }
        }
    )*};
}
half_folds! { f16 f16_to_f32 f16_from_f32; bf16 bf16_to_f32 bf16_from_f32; }

/// `Some($make::<T, $op>)` for the representation of an element with arithmetic.
macro_rules! choose {
    ($elem:expr, $make:ident, $op:ty) => {
        match $elem {
            Elem::F64 => Some($make::<f64, $op>),
            Elem::F32 => Some($make::<f32, $op>),
            Elem::F16 => Some($make::<f16, $op>),
            Elem::Bf16 => Some($make::<bf16, $op>),
            Elem::I64 => Some($make::<i64, $op>),
            Elem::I32 => Some($make::<i32, $op>),
            Elem::I16 => Some($make::<i16, $op>),
            Elem::I8 => Some($make::<i8, $op>),
            Elem::U64 => Some($make::<u64, $op>),
            Elem::U32 => Some($make::<u32, $op>),
            Elem::U16 => Some($make::<u16, $op>),
            Elem::U8 => Some($make::<u8, $op>),
            Elem::Tf32 | Elem::E4m3 | Elem::E5m2 | Elem::I4 | Elem::U4 | Elem::Bool => None,
        }
    };
}
pub(super) use choose;
