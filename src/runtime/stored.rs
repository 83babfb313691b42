//! The host types whose slices hold elements: those of kernels, and 8-bit floats of other crates.
//!
//! candle and cudarc have the 8-bit floats of the crate `float8`, which the feature of this name takes.

use crate::lang::{Elem, is_plain};
use titan_core::ir::Elem as ElemType;

/// A type whose slices are borrowed as tensors of [`ELEM`](Stored::ELEM): the element types of kernels, and with the feature `float8` those of
/// that crate. No other type implements it.
#[diagnostic::on_unimplemented(
    message = "slices of `{Self}` do not hold elements of kernels",
    label = "not an element type",
    note = "the element types of kernels, and with the feature `float8` the 8-bit floats of that crate"
)]
pub trait Stored: sealed::Sealed + Sized {
    /// The element type that the slices hold.
    const ELEM: ElemType;

    /// The elements as bytes, if they have the same layout in a slice and on devices.
    #[doc(hidden)]
    fn stored_bytes(values: &[Self]) -> Option<&[u8]>;

    /// Whether any bytes are elements.
    #[doc(hidden)]
    const IS_PLAIN: bool;
}

mod sealed {
    use crate::lang::Elem;

    pub trait Sealed {}
    impl<T: Elem> Sealed for T {}
    #[cfg(feature = "float8")]
    impl Sealed for float8::F8E4M3 {}
    #[cfg(feature = "float8")]
    impl Sealed for float8::F8E5M2 {}
}

#[diagnostic::do_not_recommend]
impl<T: Elem> Stored for T {
    const ELEM: ElemType = <T as Elem>::ELEM;
    const IS_PLAIN: bool = is_plain::<T>();

    fn stored_bytes(values: &[Self]) -> Option<&[u8]> {
        T::as_bytes(values)
    }
}

#[cfg(feature = "float8")]
macro_rules! float8 {
    ($($t:ident $elem:ident)*) => {$(
        impl Stored for float8::$t {
            const ELEM: ElemType = ElemType::$elem;
            const IS_PLAIN: bool = true;

            fn stored_bytes(values: &[Self]) -> Option<&[u8]> {
                Some(bytemuck::cast_slice(values))
            }
        }
    )*};
}
#[cfg(feature = "float8")]
float8! { F8E4M3 E4m3 F8E5M2 E5m2 }
