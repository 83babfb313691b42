//! The description of a tensor map, and its encoding in 128 bytes.
//!
//! Source: CUDA driver API, "Tensor Map Object Managment", `cuTensorMapEncodeTiled`; PTX ISA, "Tensors", "Swizzling modes".
//!
//! Dimensions are ordered as in the driver: dimension 0 is the innermost, whose elements are adjacent in memory.
//!
//! The strides need no order among each other. The manual computes each from the one before, but states no more than that they are
//! multiples of 16 below 2⁴⁰, and kernels in wide use give smaller ones after larger ones (heads within rows of attention).

use super::{Element, Fill, L2Promotion, Swizzle};
use std::fmt;

/// The largest number of dimensions of a tensor map.
pub const MAX_RANK: usize = 5;
/// The first bytes of an encoded map: eight characters with which no map of the driver begins.
const MAGIC: [u8; 8] = *b"TITANmap";
/// The size of a tensor map, in bytes.
const BYTES: usize = 128;

/// A tensor map of tiled mode. What is said of fields beyond the rank holds for maps of the host; in those that device code has changed they
/// are arbitrary, and nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The type of the elements.
    pub element: Element,
    /// The number of dimensions, 1 to 5.
    pub rank: u8,
    /// The global address of the first element.
    pub address: u64,
    /// The number of elements of each dimension; 1 beyond the rank.
    pub extents: [u64; MAX_RANK],
    /// The strides of dimensions 1 to 4, in bytes; 0 beyond the rank.
    pub strides: [u64; MAX_RANK - 1],
    /// The box along each dimension, in elements of the tensor; 1 beyond the rank.
    pub box_extents: [u32; MAX_RANK],
    /// The element stride `s` along each dimension: every `s`-th element is copied. 1 along dimension 0 and beyond the rank.
    pub element_strides: [u32; MAX_RANK],
    /// The layout in shared memory.
    pub swizzle: Swizzle,
    /// The unit of loads from memory into the L2 cache.
    pub l2: L2Promotion,
    /// The value of elements outside of the tensor.
    pub fill: Fill,
}

impl TensorMap {
    /// A map of `rank` dimensions without swizzle, of elements that are next to each other: extents and box as given, innermost
    /// first; strides in bytes of the dimensions 1 and up.
    #[must_use]
    pub fn tiled(element: Element, address: u64, extents: &[u64], strides: &[u64], box_extents: &[u32]) -> TensorMap {
        let mut map = TensorMap {
            element,
            rank: u8::try_from(extents.len()).unwrap_or(u8::MAX),
            address,
            extents: [1; MAX_RANK],
            strides: [0; MAX_RANK - 1],
            box_extents: [1; MAX_RANK],
            element_strides: [1; MAX_RANK],
            swizzle: Swizzle::None,
            l2: L2Promotion::None,
            fill: Fill::Zero,
        };
        map.extents.iter_mut().zip(extents).for_each(|(to, from)| *to = *from);
        map.strides.iter_mut().zip(strides).for_each(|(to, from)| *to = *from);
        map.box_extents.iter_mut().zip(box_extents).for_each(|(to, from)| *to = *from);
        map
    }

    /// The number of dimensions, limited to [`MAX_RANK`].
    #[must_use]
    pub fn dims(&self) -> usize {
        usize::from(self.rank).min(MAX_RANK)
    }

    /// The extent of a box in shared memory along a dimension: every `element_strides`-th element of the box's extent; all of them along
    /// the innermost dimension, which has no element stride.
    #[must_use]
    pub fn tile(&self, dim: usize) -> u32 {
        let stride = if dim == 0 { 1 } else { self.element_strides[dim].max(1) };
        self.box_extents[dim].div_ceil(stride)
    }

    /// The size of a box in shared memory, in bytes, which a load completes at the barrier, whatever is out of bounds. A box of more
    /// than 2³² - 1 bytes, which no shared memory holds, counts as 2³² - 1.
    #[must_use]
    pub fn box_bytes(&self) -> u32 {
        (0..self.dims()).map(|dim| self.tile(dim)).fold(self.element.bytes(), u32::saturating_mul)
    }

    /// The 128 bytes that the emulated driver makes of the map. Hardware has another encoding, which only the driver knows.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&MAGIC);
        put(&[self.element as u8, self.rank, self.swizzle as u8, self.l2 as u8, self.fill as u8, 0, 0, 0]);
        put(&self.address.to_le_bytes());
        self.extents.iter().for_each(|e| put(&e.to_le_bytes()));
        self.strides.iter().for_each(|s| put(&s.to_le_bytes()));
        // Legal values are at most 256 and 8; an illegal one that does not fit becomes the maximum, which is illegal too.
        self.box_extents.iter().for_each(|b| put(&u16::try_from(*b).unwrap_or(u16::MAX).to_le_bytes()));
        self.element_strides.iter().for_each(|s| put(&[u8::try_from(*s).unwrap_or(u8::MAX)]));
        bytes
    }

    /// Decodes a map; `None` if the bytes are not an encoding by [`to_bytes`](Self::to_bytes).
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<TensorMap> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if bytes.len() != BYTES || !bytes.starts_with(&MAGIC) {
            return None;
        }
        let [element, rank, swizzle, l2, fill] = *bytes.get(8..13)?.first_chunk()?;
        let mut map = TensorMap {
            element: *Element::ALL.get(usize::from(element))?,
            rank,
            address: word(16)?,
            extents: [0; MAX_RANK],
            strides: [0; MAX_RANK - 1],
            box_extents: [0; MAX_RANK],
            element_strides: [0; MAX_RANK],
            swizzle: *Swizzle::ALL.get(usize::from(swizzle))?,
            l2: *L2Promotion::ALL.get(usize::from(l2))?,
            fill: *Fill::ALL.get(usize::from(fill))?,
        };
        for (i, extent) in map.extents.iter_mut().enumerate() {
            *extent = word(24 + 8 * i)?;
        }
        for (i, stride) in map.strides.iter_mut().enumerate() {
            *stride = word(64 + 8 * i)?;
        }
        for (i, extent) in map.box_extents.iter_mut().enumerate() {
            *extent = u16::from_le_bytes(*bytes.get(96 + 2 * i..)?.first_chunk()?).into();
        }
        for (i, stride) in map.element_strides.iter_mut().enumerate() {
            *stride = u32::from(*bytes.get(106 + i)?);
        }
        // Bytes that belong to no field must be zero.
        (map.to_bytes() == bytes).then_some(map)
    }
}

impl fmt::Display for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.dims();
        write!(f, "{:?} {:?}", self.element, &self.extents[..rank])?;
        write!(f, " in boxes of {:?}, swizzle {:?}", &self.box_extents[..rank], self.swizzle)
    }
}
