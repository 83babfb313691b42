//! Element types of tensors and tiles, and casts between them.
//!
//! A cast goes through [`Number`], which holds every value of every element type exactly, so it rounds at most once.

use std::fmt::Debug;

use half::{bf16, f16};
use titan_core::{ir, num};

use super::arith::{Arith, Bitwise, Integral};
use super::storage::{e4m3, e5m2, i4, tf32, u4};

/// The exact value of an element of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A value of a floating-point type.
    Float(f64),
    /// A value of an integer type, or 0 or 1 for `bool`.
    Int(i128),
}

/// The operations of element types that this crate needs; it also seals [`Elem`].
pub trait Repr: Sized {
    #[doc(hidden)]
    fn number(self) -> Number;
    /// The nearest value of this type, by the rules of casts.
    #[doc(hidden)]
    fn of_number(n: Number) -> Self;
    /// The bits of the value, in the low end.
    #[doc(hidden)]
    fn raw(self) -> u64;
    #[doc(hidden)]
    fn of_raw(bits: u64) -> Self;
}

/// A type of elements of tensors and tiles.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    note = "element types: f64 f32 tf32 f16 bf16 e4m3 e5m2, i64 i32 i16 i8 i4, u64 u32 u16 u8 u4, bool"
)]
pub trait Elem: Repr + Copy + Default + PartialEq + Debug + Send + Sync + 'static {
    /// The same type as a value.
    const ELEM: ir::Elem;

    /// The bytes of these elements in device memory. The 4-bit types take two to a byte, the lower index low.
    #[must_use]
    fn pack(values: &[Self]) -> Vec<u8>;

    /// The first `n` elements in these bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    fn unpack(bytes: &[u8], n: usize) -> Vec<Self>;

    /// The elements as bytes, without a copy, for types with the same layout on the host and on devices.
    #[must_use]
    fn as_bytes(values: &[Self]) -> Option<&[u8]>;
}

/// An element type with `+ - * /` and an order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic",
    label = "not an arithmetic element type",
    note = "arithmetic: f64 f32 f16 bf16 and the integers of 8 bits and more; `.cast::<..>()` other types first"
)]
pub trait Num: Comparable + Arith + PartialOrd {
    /// 1 with the sign of the value, as Rust's `signum`: 1 for 0.0 and −1 for −0.0, but 0 for an integer 0; NaN for NaN.
    #[must_use]
    fn signum(self) -> Self {
        self.unit_with_sign()
    }
}

/// An integer element type with arithmetic: 8 bits and more.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer type with arithmetic",
    label = "needs integers",
    note = "`<<`, `>>` and operations on bits take i64 i32 i16 i8, u64 u32 u16 u8"
)]
pub trait Int: Num + Bits + Integral {
    /// The number of bits that are 1.
    #[must_use]
    fn count_ones(self) -> u32 {
        self.ones()
    }

    /// The number of zeros before the highest bit that is 1; of 0, the width.
    #[must_use]
    fn leading_zeros(self) -> u32 {
        self.zeros_above()
    }

    /// The number of zeros behind the lowest bit that is 1; of 0, the width.
    #[must_use]
    fn trailing_zeros(self) -> u32 {
        self.zeros_below()
    }

    /// The upper half of the product of twice the width.
    #[must_use]
    fn mul_hi(self, b: Self) -> Self {
        self.upper_half(b)
    }
}

/// An element type with `& | ^ !`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `& | ^ !`",
    label = "needs `bool` or integers",
    note = "`.bitcast::<..>()` a float to the unsigned type of its width first"
)]
pub trait Bits: Elem + Bitwise {}

/// An element type with `==` and `!=`.
#[diagnostic::on_unimplemented(
    message = "values of type `{Self}` cannot be compared",
    note = "`.cast::<..>()` them to a type with arithmetic first"
)]
pub trait Comparable: Elem {}

/// Casts of scalars, with the same rules as those of tiles.
pub trait Cast: Elem {
    /// The nearest `U`: see "Casts" in `docs/semantics.md`.
    #[must_use]
    fn cast<U: Elem>(self) -> U {
        U::of_number(self.number())
    }

    /// The `U` with the same bits. Both types have one width.
    #[must_use]
    fn bitcast<U: Elem>(self) -> U {
        const {
            assert!(Self::ELEM.bits() == U::ELEM.bits(), "`bitcast` keeps the width");
            assert!(is_plain::<Self>() && is_plain::<U>(), "`bitcast` of `bool`: compare or cast instead");
        };
        U::of_raw(self.raw())
    }
}

impl<T: Elem> Cast for T {}

/// Whether every pattern of bits is a value.
pub(crate) const fn is_plain<T: Elem>() -> bool {
    !matches!(T::ELEM, ir::Elem::Bool)
}

macro_rules! plain_bytes {
    () => {
        fn pack(values: &[Self]) -> Vec<u8> {
            bytemuck::cast_slice(values).to_vec()
        }
        fn unpack(bytes: &[u8], n: usize) -> Vec<Self> {
            let mut values = vec![Self::default(); n];
            bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes[..Self::ELEM.bytes_for(n)]);
            values
        }
        fn as_bytes(values: &[Self]) -> Option<&[u8]> {
            Some(bytemuck::cast_slice(values))
        }
    };
}

macro_rules! ints {
    ($($t:ident $unsigned:ident $elem:ident)*) => {$(
        #[expect(clippy::allow_attributes, reason = "which casts narrow depends on the type")]
        #[allow(
            clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless, trivial_numeric_casts,
            reason = "casts wrap, and saturate from floats"
        )]
        impl Repr for $t {
            fn number(self) -> Number {
                Number::Int(i128::from(self))
            }
            fn of_number(n: Number) -> Self {
                match n {
                    Number::Float(x) => x as $t,
                    Number::Int(i) => i as $t,
                }
            }
            fn raw(self) -> u64 {
                self as $unsigned as u64
            }
            fn of_raw(bits: u64) -> Self {
                bits as $t
            }
        }
        impl Elem for $t {
            const ELEM: ir::Elem = ir::Elem::$elem;
            plain_bytes!();
        }
        #[diagnostic::do_not_recommend]
        impl Num for $t {}
        #[diagnostic::do_not_recommend]
        impl Int for $t {}
        #[diagnostic::do_not_recommend]
        impl Bits for $t {}
        #[diagnostic::do_not_recommend]
        impl Comparable for $t {}
    )*};
}
ints! { i64 u64 I64 i32 u32 I32 i16 u16 I16 i8 u8 I8 u64 u64 U64 u32 u32 U32 u16 u16 U16 u8 u8 U8 }

macro_rules! floats {
    ($($t:ident $bits:ident $elem:ident $of_f64:expr, $of_int:expr;)*) => {$(
        impl Repr for $t {
            fn number(self) -> Number {
                Number::Float(f64::from(self))
            }
            fn of_number(n: Number) -> Self {
                match n {
                    Number::Float(x) => $of_f64(x),
                    Number::Int(i) => $of_int(i),
                }
            }
            fn raw(self) -> u64 {
                self.to_bits().into()
            }
            #[expect(clippy::allow_attributes, reason = "only the narrow types cut bits off")]
            #[allow(clippy::cast_possible_truncation, trivial_numeric_casts, reason = "the bits lie in the low end")]
            fn of_raw(bits: u64) -> Self {
                Self::from_bits(bits as $bits)
            }
        }
        impl Elem for $t {
            const ELEM: ir::Elem = ir::Elem::$elem;
            plain_bytes!();
        }
        #[diagnostic::do_not_recommend]
        impl Num for $t {}
        #[diagnostic::do_not_recommend]
        impl Comparable for $t {}
    )*};
}
floats! {
    f64 u64 F64 |x| x, |i: i128| i as f64;
    f32 u32 F32 narrow, |i: i128| i as f32;
    f16 u16 F16 |x| f16::from_bits(num::f16_from_f64(x)), |i| f16::from_bits(low16(int_code(num::Format::F16, i)));
    bf16 u16 Bf16 |x| bf16::from_bits(num::bf16_from_f64(x)), |i| bf16::from_bits(low16(int_code(num::Format::BF16, i)));
}

#[expect(clippy::cast_possible_truncation, reason = "this is the rounding of casts to `f32`")]
fn narrow(x: f64) -> f32 {
    x as f32
}

#[expect(clippy::cast_possible_truncation, reason = "the code of a 16-bit format")]
fn low16(code: u32) -> u16 {
    code as u16
}

/// The code of the value of `format` nearest to an `i64` or `u64`.
pub(super) fn int_code(format: num::Format, i: i128) -> u32 {
    let magnitude = u64::try_from(i.unsigned_abs()).unwrap_or(u64::MAX);
    format.from_int(i < 0, magnitude)
}

impl Repr for bool {
    fn number(self) -> Number {
        Number::Int(self.into())
    }
    fn of_number(n: Number) -> Self {
        match n {
            Number::Float(x) => x != 0.0,
            Number::Int(i) => i != 0,
        }
    }
    fn raw(self) -> u64 {
        self.into()
    }
    fn of_raw(bits: u64) -> Self {
        bits != 0
    }
}

impl Elem for bool {
    const ELEM: ir::Elem = ir::Elem::Bool;

    fn pack(values: &[Self]) -> Vec<u8> {
        bytemuck::cast_slice(values).to_vec()
    }
    fn unpack(bytes: &[u8], n: usize) -> Vec<Self> {
        bytes[..n].iter().map(|b| *b != 0).collect()
    }
    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        Some(bytemuck::cast_slice(values))
    }
}

#[diagnostic::do_not_recommend]
impl Bits for bool {}
#[diagnostic::do_not_recommend]
impl Comparable for bool {}

macro_rules! packed {
    ($($t:ident $elem:ident $pack:expr, $unpack:expr;)*) => {$(
        impl Elem for $t {
            const ELEM: ir::Elem = ir::Elem::$elem;

            fn pack(values: &[Self]) -> Vec<u8> {
                $pack(values)
            }
            fn unpack(bytes: &[u8], n: usize) -> Vec<Self> {
                $unpack(&bytes[..Self::ELEM.bytes_for(n)], n)
            }
            fn as_bytes(_: &[Self]) -> Option<&[u8]> {
                None
            }
        }
    )*};
}
packed! {
    tf32 Tf32 |v: &[tf32]| v.iter().flat_map(|x| x.to_f32().to_ne_bytes()).collect(),
        |b: &[u8], n| f32::unpack(b, n).into_iter().map(tf32::from_f32).collect();
    e4m3 E4m3 |v: &[e4m3]| v.iter().map(|x| x.to_bits()).collect(), |b: &[u8], _| b.iter().map(|x| e4m3::from_bits(*x)).collect();
    e5m2 E5m2 |v: &[e5m2]| v.iter().map(|x| x.to_bits()).collect(), |b: &[u8], _| b.iter().map(|x| e5m2::from_bits(*x)).collect();
    i4 I4 |v: &[i4]| num::pack_nibbles(&v.iter().map(|x| x.to_i8().cast_unsigned()).collect::<Vec<_>>()),
        |b: &[u8], n| num::unpack_nibbles(b, n).into_iter().map(|x| i4::from_i8(x.cast_signed())).collect();
    u4 U4 |v: &[u4]| num::pack_nibbles(&v.iter().map(|x| x.to_u8()).collect::<Vec<_>>()),
        |b: &[u8], n| num::unpack_nibbles(b, n).into_iter().map(u4::from_u8).collect();
}
