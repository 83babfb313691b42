//! Changes of single fields of an encoded map, as device code makes them by `tensormap.replace`.
//!
//! Source: PTX ISA, "tensormap.replace": the fields, and the table "Mapping of new_val to field" with the numbers of choices. The
//! numbers of element types are those of PTX, which differ from the driver's from 8 on.
//!
//! A field takes every value: whether the map as a whole is legal is asked when a copy uses it ([`TensorMap::check`]).
//!
//! Deliberately absent: interleaved layouts, swizzles of 96 bytes and other atomicities, and types that flush, round or are
//! narrower than a byte, which [`TensorMap`] does not have.

use super::{Element, Fill, MAX_RANK, Swizzle, TensorMap};

/// A field of a tensor map; the numbers are dimensions, the innermost is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The address of the first element.
    Address,
    /// The number of dimensions less one.
    Rank,
    /// The box along a dimension.
    Box(usize),
    /// The number of elements along a dimension.
    Extent(usize),
    /// The stride of dimension `n + 1`, in bytes.
    Stride(usize),
    /// The element stride along a dimension.
    ElementStride(usize),
    /// The type of the elements, by its number in PTX.
    Element,
    /// The layout of channels: 0 is the one that is not interleaved.
    Interleave,
    /// The swizzle.
    Swizzle,
    /// The value of elements outside of the tensor.
    Fill,
}

/// The reason why a field cannot be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplaceError {
    /// The bytes are not a map that was encoded here, nor all zero.
    #[error("these 128 bytes are neither a tensor map that was encoded here nor all zero")]
    NoMap,
    /// A dimension that no map has.
    #[error("a tensor map has no such dimension: {0}")]
    Dim(usize),
    /// A choice that maps do not have here.
    #[error("the number {1} of the field {0:?} stands for a choice that is not supported")]
    Choice(Field, u64),
}

impl Field {
    /// Replaces the field of an encoded map. 128 zero bytes are the map in which every field is zero: kernels that set all fields
    /// start from them.
    ///
    /// # Errors
    /// [`ReplaceError`].
    pub fn replace(self, bytes: &mut [u8; 128], value: u64) -> Result<(), ReplaceError> {
        let mut map = match *bytes == [0; 128] {
            true => TensorMap::ZERO,
            false => TensorMap::from_bytes(bytes).ok_or(ReplaceError::NoMap)?,
        };
        let choice = ReplaceError::Choice(self, value);
        let number = u32::try_from(value).map_err(|_| choice);
        let low = u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        match self {
            Field::Address => map.address = value,
            Field::Rank => map.rank = u8::try_from(u64::from(low) + 1).unwrap_or(u8::MAX),
            Field::Box(dim) => *dim_of(&mut map.box_extents, dim)? = low,
            Field::Extent(dim) => *dim_of(&mut map.extents, dim)? = low.into(),
            Field::Stride(dim) => *dim_of(&mut map.strides, dim)? = value,
            Field::ElementStride(dim) => *dim_of(&mut map.element_strides, dim)? = low,
            Field::Element => map.element = element(number?).ok_or(choice)?,
            Field::Interleave => (number? == 0).then_some(()).ok_or(choice)?,
            Field::Swizzle => map.swizzle = Swizzle::from_number(number?).ok_or(choice)?,
            Field::Fill => map.fill = Fill::from_number(number?).ok_or(choice)?,
        }
        *bytes = map.to_bytes();
        Ok(())
    }
}

fn dim_of<T, const N: usize>(all: &mut [T; N], dim: usize) -> Result<&mut T, ReplaceError> {
    all.get_mut(dim).ok_or(ReplaceError::Dim(dim))
}

/// The type with this number in `tensormap.replace.tile.elemtype`. 8 is `.f32.ftz`; 11 and 12 are `.tf32`, 13 to 15 types of less
/// than a byte.
fn element(number: u32) -> Option<Element> {
    Some(match number {
        0 => Element::U8,
        1 => Element::U16,
        2 => Element::U32,
        3 => Element::I32,
        4 => Element::U64,
        5 => Element::I64,
        6 => Element::F16,
        7 => Element::F32,
        9 => Element::F64,
        10 => Element::Bf16,
        _ => return None,
    })
}

impl TensorMap {
    /// The map in which every field is zero. It is not legal.
    const ZERO: TensorMap = TensorMap {
        element: Element::U8,
        rank: 0,
        address: 0,
        extents: [0; MAX_RANK],
        strides: [0; MAX_RANK - 1],
        box_extents: [0; MAX_RANK],
        element_strides: [0; MAX_RANK],
        swizzle: Swizzle::None,
        l2: super::L2Promotion::None,
        fill: Fill::Zero,
    };
}
