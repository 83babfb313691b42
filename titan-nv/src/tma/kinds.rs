//! The choices of a tensor map, with the driver's numbers: type of the elements, swizzle, promotion, fill.
//!
//! Source: CUDA driver API, "Data types used by CUDA driver", `CUtensorMapDataType`, `CUtensorMapSwizzle`,
//! `CUtensorMapL2promotion`, `CUtensorMapFloatOOBfill`; PTX ISA, "Swizzling Modes".
//!
//! Deliberately absent: types that flush or round when they are copied, sub-byte types, and swizzles of units of 32 and 64 bytes.

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
    pub(super) const ALL: [Element; 10] = [
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

    /// The type with this number of the driver's; `None` for types that TITAN does not support.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Element> {
        Element::ALL.get(usize::try_from(number).ok()?).copied()
    }

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
    /// No permutation.
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
    pub(super) const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// The swizzle with this number of the driver's; `None` for swizzles that TITAN does not support.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Swizzle> {
        Swizzle::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The largest number of bytes of the inner dimension of a box; `None` if there is no such limit.
    #[must_use]
    pub const fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }

    /// The address of the byte that the plain layout has at `address`: the exclusive or of the bits above.
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

    /// The alignment in shared memory at which the pattern repeats, in bytes.
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

/// The unit in which the copy engine loads data into the L2 cache (`CUtensorMapL2promotion`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum L2Promotion {
    /// Only the requested bytes.
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
    pub(super) const ALL: [L2Promotion; 4] =
        [L2Promotion::None, L2Promotion::B64, L2Promotion::B128, L2Promotion::B256];

    /// The promotion with this number of the driver's.
    #[must_use]
    pub fn from_number(number: u32) -> Option<L2Promotion> {
        L2Promotion::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// The value that a load writes where the box exceeds the tensor (`CUtensorMapFloatOOBfill`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// The value zero.
    #[default]
    Zero = 0,
    /// A NaN; only for floating-point elements.
    Nan = 1,
}

impl Fill {
    pub(super) const ALL: [Fill; 2] = [Fill::Zero, Fill::Nan];

    /// The fill with this number of the driver's.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Fill> {
        Fill::ALL.get(usize::try_from(number).ok()?).copied()
    }
}
