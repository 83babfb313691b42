//! The description of a tensor map, its limits, and its 128 bytes.
//!
//! Source: CUDA driver API, "Tensor Map Object Managment", `cuTensorMapEncodeTiled`; PTX ISA, "Tensors", "Swizzling modes".
//!
//! Dimensions are ordered as in the driver: dimension 0 is the innermost, whose elements are adjacent in memory.

use std::fmt;

/// The most dimensions that a tensor map has.
pub const MAX_RANK: usize = 5;
/// Begins the bytes of a map: eight characters that no map of the driver begins with.
const MAGIC: [u8; 8] = *b"TITANmap";
/// The size of a tensor map, in bytes.
const BYTES: usize = 128;

/// The type of a tensor's elements, with the driver's number (`CUtensorMapDataType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Element {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    I32 = 3,
    U64 = 4,
    I64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
}

impl Element {
    const ALL: [Element; 10] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::I32,
        Element::U64,
        Element::I64,
        Element::F16,
        Element::F32,
        Element::F64,
        Element::Bf16,
    ];

    /// The size of an element, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Element::U8 => 1,
            Element::U16 | Element::F16 | Element::Bf16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    /// Whether elements may be filled with NaN.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64 | Element::Bf16)
    }
}

/// How 16-byte units are permuted in shared memory (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Not at all.
    #[default]
    None = 0,
    /// Bit 4 of the address is combined with bit 7.
    B32 = 1,
    /// Bits 4 and 5 with bits 7 and 8.
    B64 = 2,
    /// Bits 4 to 6 with bits 7 to 9.
    B128 = 3,
}

impl Swizzle {
    const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// The most bytes that the inner dimension of a box has; `None` if there is no such limit.
    #[must_use]
    pub const fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }

    /// Where the byte at `address` of the plain layout lies: the exclusive or of the bits above.
    ///
    /// ```
    /// use titan_nv::tma::Swizzle;
    /// // Row 1 of a tile with rows of 128 bytes begins with what would be its second unit of 16 bytes.
    /// assert_eq!(Swizzle::B128.apply(128), 128 + 16);
    /// assert_eq!(Swizzle::B128.apply(128 + 16), 128);
    /// assert_eq!(Swizzle::B32.apply(256), 256);
    /// ```
    #[must_use]
    pub const fn apply(self, address: u64) -> u64 {
        let mask = match self {
            Swizzle::None => 0,
            Swizzle::B32 => 1,
            Swizzle::B64 => 3,
            Swizzle::B128 => 7,
        };
        address ^ ((address >> 7 & mask) << 4)
    }

    /// The alignment in shared memory at which the pattern begins anew, in bytes.
    #[must_use]
    pub const fn alignment(self) -> u32 {
        match self {
            Swizzle::None => 128,
            Swizzle::B32 => 256,
            Swizzle::B64 => 512,
            Swizzle::B128 => 1024,
        }
    }
}

/// How much the copy engine brings into the L2 cache at a time (`CUtensorMapL2promotion`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// What is asked for.
    #[default]
    None = 0,
    /// 64 bytes.
    B64 = 1,
    /// 128 bytes.
    B128 = 2,
    /// 256 bytes.
    B256 = 3,
}

impl L2Promotion {
    const ALL: [L2Promotion; 4] = [L2Promotion::None, L2Promotion::B64, L2Promotion::B128, L2Promotion::B256];
}

/// What a load puts where the box reaches out of the tensor (`CUtensorMapFloatOOBfill`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zero = 0,
    /// A NaN; only of floating-point elements.
    Nan = 1,
}

impl Fill {
    const ALL: [Fill; 2] = [Fill::Zero, Fill::Nan];
}

/// A tensor map of tiled mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The type of the elements.
    pub element: Element,
    /// How many dimensions there are, 1 to 5.
    pub rank: u8,
    /// The global address of the first element.
    pub address: u64,
    /// The elements of each dimension; 1 beyond the rank.
    pub extents: [u64; MAX_RANK],
    /// The distance of neighbours along dimensions 1 to 4, in bytes; 0 beyond the rank.
    pub strides: [u64; MAX_RANK - 1],
    /// The box along each dimension, in elements of the tensor; 1 beyond the rank.
    pub box_extents: [u32; MAX_RANK],
    /// Every how many elements of a dimension one is copied; 1 beyond the rank.
    pub element_strides: [u32; MAX_RANK],
    /// The layout in shared memory.
    pub swizzle: Swizzle,
    /// The unit of loads from memory into the L2 cache.
    pub l2: L2Promotion,
    /// The value of elements outside of the tensor.
    pub fill: Fill,
}

/// Why `cuTensorMapEncodeTiled` refuses a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// The rank is not 1 to 5.
    #[error("a tensor map has 1 to 5 dimensions, not {0}")]
    Rank(u8),
    /// The address is not a multiple of 16.
    #[error("the tensor begins at {0:#x}, which is not a multiple of 16 bytes")]
    Address(u64),
    /// An extent is 0 or more than 2³².
    #[error("dimension {dim} has {extent} elements: 1 to 2^32 are possible")]
    Extent {
        /// Which dimension, from the innermost.
        dim: usize,
        /// Its elements.
        extent: u64,
    },
    /// A stride is not a multiple of 16 bytes, or is 2⁴⁰ or more.
    #[error("the stride of dimension {dim} is {stride} bytes: multiples of 16 below 2^40 are possible")]
    Stride {
        /// Which dimension, from the innermost.
        dim: usize,
        /// Its stride.
        stride: u64,
    },
    /// A box extent is 0 or more than 256.
    #[error("the box has {extent} elements along dimension {dim}: 1 to 256 are possible")]
    Box {
        /// Which dimension, from the innermost.
        dim: usize,
        /// The box there.
        extent: u32,
    },
    /// An element stride is 0 or more than 8.
    #[error("the element stride of dimension {dim} is {stride}: 1 to 8 are possible")]
    ElementStride {
        /// Which dimension, from the innermost.
        dim: usize,
        /// The stride.
        stride: u32,
    },
    /// The inner dimension of the box is not a multiple of 16 bytes.
    #[error("the innermost dimension of the box has {bytes} bytes, which is not a multiple of 16")]
    InnerBytes {
        /// Its size.
        bytes: u32,
    },
    /// The inner dimension of the box is wider than the swizzle.
    #[error("the innermost dimension of the box has {bytes} bytes, and the swizzle allows {span}")]
    Swizzle {
        /// Its size.
        bytes: u32,
        /// The most.
        span: u32,
    },
    /// NaN for elements that have none.
    #[error("only floating-point elements can be filled with NaN")]
    Fill,
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

    /// How many dimensions there are, never more than there is room for.
    #[must_use]
    pub fn dims(&self) -> usize {
        usize::from(self.rank).min(MAX_RANK)
    }

    /// What a box has in shared memory along a dimension: every `element_strides`-th element of the box's extent.
    #[must_use]
    pub fn tile(&self, dim: usize) -> u32 {
        self.box_extents[dim].div_ceil(self.element_strides[dim].max(1))
    }

    /// The bytes of a box in shared memory: what a load adds to the barrier's count, whatever lies out of bounds.
    #[must_use]
    pub fn box_bytes(&self) -> u32 {
        (0..self.dims()).map(|dim| self.tile(dim)).product::<u32>() * self.element.bytes()
    }

    /// Whether `cuTensorMapEncodeTiled` takes the map.
    ///
    /// # Errors
    /// [`TensorMapError`]: the first limit that is broken.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let rank = self.dims();
        if self.rank == 0 || usize::from(self.rank) > MAX_RANK {
            return Err(TensorMapError::Rank(self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err(TensorMapError::Address(self.address));
        }
        for dim in 0..rank {
            let extent = self.extents[dim];
            if extent == 0 || extent > 1 << 32 {
                return Err(TensorMapError::Extent { dim, extent });
            }
        }
        for (dim, stride) in (1..rank).zip(self.strides) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(TensorMapError::Stride { dim, stride });
            }
        }
        for dim in 0..rank {
            let extent = self.box_extents[dim];
            if extent == 0 || extent > 256 {
                return Err(TensorMapError::Box { dim, extent });
            }
        }
        for dim in 0..rank {
            let stride = self.element_strides[dim];
            if stride == 0 || stride > 8 {
                return Err(TensorMapError::ElementStride { dim, stride });
            }
        }
        let bytes = self.box_extents[0] * self.element.bytes();
        if !bytes.is_multiple_of(16) {
            return Err(TensorMapError::InnerBytes { bytes });
        }
        if let Some(span) = self.swizzle.span().filter(|span| bytes > *span) {
            return Err(TensorMapError::Swizzle { bytes, span });
        }
        if self.fill == Fill::Nan && !self.element.is_float() {
            return Err(TensorMapError::Fill);
        }
        Ok(())
    }

    /// The 128 bytes that the emulated driver makes of the map. Hardware has its own, which only the driver knows.
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
        // At most 256 and 8.
        self.box_extents.iter().for_each(|b| put(&b.to_le_bytes()[..2]));
        self.element_strides.iter().for_each(|s| put(&s.to_le_bytes()[..1]));
        bytes
    }

    /// The map of these bytes; `None` if they are not what [`to_bytes`](Self::to_bytes) makes.
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
        Some(map)
    }
}

impl fmt::Display for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.dims();
        write!(f, "{:?} {:?}", self.element, &self.extents[..rank])?;
        write!(f, " in boxes of {:?}, swizzle {:?}", &self.box_extents[..rank], self.swizzle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        let map = TensorMap::tiled(Element::Bf16, 0x1000, &[100, 70], &[208], &[64, 128]);
        TensorMap { swizzle: Swizzle::B128, l2: L2Promotion::B256, fill: Fill::Nan, ..map }
    }

    #[test]
    fn bytes_say_everything() {
        let mut all = map();
        (all.extents, all.strides) = ([1, 2, 3, 4, 1 << 32], [16, 32, 48, (1 << 40) - 16]);
        (all.box_extents, all.element_strides) = ([256, 1, 2, 3, 4], [1, 8, 2, 3, 4]);
        for map in [map(), TensorMap { rank: 5, ..all }] {
            assert_eq!(TensorMap::from_bytes(&map.to_bytes()), Some(map));
        }
        assert_eq!(TensorMap::from_bytes(&[0; BYTES]), None);
        assert_eq!(TensorMap::from_bytes(&map().to_bytes()[..100]), None);
    }

    #[test]
    fn limits_are_the_encoders() {
        use TensorMapError as E;
        assert_eq!(map().check(), Ok(()));
        let broken: [(TensorMap, E); 11] = [
            (TensorMap { rank: 0, ..map() }, E::Rank(0)),
            (TensorMap { rank: 6, ..map() }, E::Rank(6)),
            (TensorMap { address: 8, ..map() }, E::Address(8)),
            (TensorMap { extents: [100, 0, 1, 1, 1], ..map() }, E::Extent { dim: 1, extent: 0 }),
            (TensorMap { extents: [(1 << 32) + 1, 1, 1, 1, 1], ..map() }, E::Extent { dim: 0, extent: (1 << 32) + 1 }),
            (TensorMap { strides: [200, 0, 0, 0], ..map() }, E::Stride { dim: 1, stride: 200 }),
            (TensorMap { strides: [1 << 40, 0, 0, 0], ..map() }, E::Stride { dim: 1, stride: 1 << 40 }),
            (TensorMap { box_extents: [64, 257, 1, 1, 1], ..map() }, E::Box { dim: 1, extent: 257 }),
            (TensorMap { element_strides: [1, 9, 1, 1, 1], ..map() }, E::ElementStride { dim: 1, stride: 9 }),
            (TensorMap { box_extents: [60, 1, 1, 1, 1], ..map() }, E::InnerBytes { bytes: 120 }),
            (TensorMap { box_extents: [72, 1, 1, 1, 1], ..map() }, E::Swizzle { bytes: 144, span: 128 }),
        ];
        for (map, error) in broken {
            assert_eq!(map.check(), Err(error));
        }
        assert_eq!(TensorMap { element: Element::U16, ..map() }.check(), Err(E::Fill));
    }

    #[test]
    fn a_box_has_every_so_manieth_element() {
        let map = TensorMap { element_strides: [1, 3, 1, 1, 1], ..map() };
        assert_eq!((map.tile(0), map.tile(1), map.box_bytes()), (64, 43, 64 * 43 * 2));
    }
}
