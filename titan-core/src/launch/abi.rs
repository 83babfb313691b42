//! The parameter block of a GPU kernel: its words and their order. It is a pure function of the signature, so that the compiler and the
//! launch agree without storing it.
//!
//! A tensor consists of its address, its extents and its strides; the address of an optional tensor that is absent is 0. A scalar is one
//! word. The last word is the address of the report, see [`Slot::Report`].
//!
//! | word | width |
//! |---|---|
//! | address | 64 bits |
//! | extent | 32 bits: a launch rejects larger ones |
//! | stride, in elements; 0 along an axis with at most one | 64 bits |
//! | scalar of 8, 16, 32 bits | 32 bits, extended according to the element type; floats as their bits |
//! | scalar of 64 bits | 64 bits |
//!
//! Words follow each other, each aligned to its size.
//!
//! The stride of an axis with at most one element is of no element, so variants assume nothing about it. But code also computes addresses of
//! elements that do not exist, and asynchronous copies of no bytes there must be aligned too; with a stride of 0, they are.
//!
//! Code that copies tiles by tensor maps has these as additional parameters, after the block: see [`MapParam`]. Behind them is the address of each
//! table of maps, see [`PartMap::Ending`].

use crate::ir::place::Swizzle;
use crate::ir::{Const, Elem, ParamKind, Signature};
use crate::num;

/// A word of the parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The address of a tensor's first element.
    Address(u32),
    /// An extent: parameter and axis.
    Extent(u32, u8),
    /// The distance of adjacent elements, in elements: parameter and axis.
    Stride(u32, u8),
    /// A scalar parameter.
    Scalar {
        /// The index of the parameter.
        param: u32,
        /// Whether it has 64 bits.
        wide: bool,
    },
    /// The address of the [report](super::report).
    Report,
}

impl Slot {
    /// The size of the word in bytes, which is also its alignment.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Slot::Address(_) | Slot::Stride(..) | Slot::Report | Slot::Scalar { wide: true, .. } => 8,
            Slot::Extent(..) | Slot::Scalar { wide: false, .. } => 4,
        }
    }
}

/// A tensor map that a launch creates for a tensor argument: the boxes that are copied, and their layout in shared memory. Elements of a
/// box outside of the tensor are zeros.
///
/// # Parts of a tensor
/// A map may be for parts `lo..hi` of the tensor whose bounds only the code knows ([`PartMap`]). Code copies the tile whose first row is `i` of a
/// part with `n = hi - lo` rows by these coordinates, and `titan_nv::tma` proves that it stops at the end of the part. For [`PartMap::Along`],
/// the map has two more dimensions outside of the tensor's own:
///
/// | dimension | coordinate | of a tile that does not exist, or with `i >= n` |
/// |---|---|---|
/// | the axis of the part | `MOST_EXTENT - n + i` | `MOST_EXTENT`, which is outside |
/// | the first of the two | `hi` | any |
/// | the last one | `MOST_EXTENT` | any |
///
/// For [`PartMap::Ending`], the map ends at `hi`:
///
/// | dimension | coordinate | of a tile that does not exist, or with `i >= n` |
/// |---|---|---|
/// | an axis of the part | `lo + i` | `MOST_EXTENT`, which is outside |
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapParam {
    /// The tensor parameter.
    pub param: u32,
    /// The element type.
    pub elem: Elem,
    /// The extents of a box, one for each axis of the tensor, in the order of the axes.
    pub extents: Vec<u32>,
    /// The swizzle of a box in shared memory.
    pub swizzle: Swizzle,
    /// The parts of the tensor of which the boxes are tiles.
    pub part: PartMap,
}

/// The parts of a tensor that a map is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartMap {
    /// The whole tensor.
    #[default]
    Whole,
    /// Parts along an axis, all by the one map that the launch makes, which has two more dimensions.
    Along(u8),
    /// Parts whose ends along these axes only the device knows. The launch makes a map of the whole tensor. A kernel that runs before the variant's makes
    /// of it the entries of a table: maps of [`MapParam::BYTES`] each, in memory of the device. Code copies by the entry of its part.
    Ending {
        /// The number of the table among those of the variant, which distinguishes tables with equal maps.
        table: u32,
        /// The axes, in ascending order.
        axes: Vec<u8>,
        /// The tensor parameter whose number of elements is the number of entries; `None` for one entry. There is always at least one.
        entries: Option<u32>,
    },
}

impl MapParam {
    /// The maximum extent of a tensor with a tensor map. For tiles that do not exist, code uses this coordinate, which is outside of every
    /// such tensor.
    pub const MOST_EXTENT: i32 = 1 << 30;
    /// The size of a map in bytes.
    pub const BYTES: u32 = 128;
    /// The maximum number of entries of a table. A variant is not used for arguments that would need more.
    pub const MOST_ENTRIES: u32 = 1 << 16;

    /// The number of dimensions of the map, which is the number of coordinates of a copy by it.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.extents.len() + if let PartMap::Along(_) = self.part { 2 } else { 0 }
    }

    /// The extents of a box for display: `128 × 64`, or `128 × 64 of parts along axis 0`.
    #[must_use]
    pub fn boxes(&self) -> String {
        let extents = self.extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
        match &self.part {
            PartMap::Whole => extents,
            PartMap::Along(axis) => format!("{extents} of parts along axis {axis}"),
            PartMap::Ending { axes, .. } => {
                let axes: Vec<String> = axes.iter().map(|axis| format!("axis {axis}")).collect();
                format!("{extents} of parts along {}, made on the device", axes.join(" and "))
            }
        }
    }

    /// The number of entries of the table that is made of the map for a launch with these arguments; `None` without a table.
    #[must_use]
    pub fn entries(&self, args: &[GpuArg]) -> Option<u32> {
        let PartMap::Ending { entries, .. } = &self.part else { return None };
        let Some(of) = entries else { return Some(1) };
        let elements = match args.get(*of as usize) {
            Some(GpuArg::Tensor { extents, .. }) => extents.first().copied().unwrap_or(0),
            Some(GpuArg::Absent | GpuArg::Scalar(_)) | None => 0,
        };
        Some(u32::try_from(elements).unwrap_or(0).max(1))
    }
}

/// The words of a signature's parameter block, in order.
#[must_use]
pub fn slots(sig: &Signature) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (index, param) in (0u32..).zip(&sig.params) {
        match &param.kind {
            ParamKind::Tensor { shape, .. } => {
                slots.push(Slot::Address(index));
                slots.extend((0u8..).zip(shape).map(|(axis, _)| Slot::Extent(index, axis)));
                slots.extend((0u8..).zip(shape).map(|(axis, _)| Slot::Stride(index, axis)));
            }
            ParamKind::Scalar(elem) => slots.push(Slot::Scalar { param: index, wide: elem.bits() == 64 }),
        }
    }
    slots.push(Slot::Report);
    slots
}

/// The offset of each word in bytes, and the size of the whole block.
#[must_use]
pub fn offsets(slots: &[Slot]) -> (Vec<usize>, usize) {
    let mut end = 0usize;
    let at = slots
        .iter()
        .map(|slot| {
            let start = end.next_multiple_of(slot.bytes());
            end = start + slot.bytes();
            start
        })
        .collect();
    (at, end)
}

/// An argument in the form in which it is passed to a GPU.
#[derive(Clone, Debug, PartialEq)]
pub enum GpuArg {
    /// A tensor: the address of its first element, extents, strides in elements.
    Tensor {
        /// The address in bytes.
        address: u64,
        /// The extents, one for each axis.
        extents: Vec<i32>,
        /// The strides in elements, one for each axis.
        strides: Vec<i64>,
    },
    /// An optional tensor that is absent.
    Absent,
    /// A scalar.
    Scalar(Const),
}

/// The bytes of a parameter block; `args` are the arguments in the order of the signature.
#[must_use]
pub fn pack(slots: &[Slot], args: &[GpuArg], report: u64) -> Vec<u8> {
    let (at, size) = offsets(slots);
    let mut bytes = vec![0; size];
    for (slot, at) in slots.iter().zip(at) {
        let word = word(*slot, args, report).to_le_bytes();
        if let Some(place) = bytes.get_mut(at..at + slot.bytes()) {
            place.copy_from_slice(&word[..slot.bytes()]);
        }
    }
    bytes
}

/// The bits of a word; 0 for the words of an absent tensor.
fn word(slot: Slot, args: &[GpuArg], report: u64) -> u64 {
    let arg = |param: u32| args.get(param as usize);
    match slot {
        Slot::Report => report,
        Slot::Address(param) => match arg(param) {
            Some(GpuArg::Tensor { address, .. }) => *address,
            _ => 0,
        },
        Slot::Extent(param, axis) => match arg(param) {
            Some(GpuArg::Tensor { extents, .. }) => {
                extents.get(usize::from(axis)).map_or(0, |n| u64::from(n.cast_unsigned()))
            }
            _ => 0,
        },
        Slot::Stride(param, axis) => match arg(param) {
            Some(GpuArg::Tensor { extents, strides, .. }) => {
                let axis = usize::from(axis);
                let several = extents.get(axis).is_some_and(|n| *n > 1);
                strides.get(axis).filter(|_| several).map_or(0, |n| n.cast_unsigned())
            }
            _ => 0,
        },
        Slot::Scalar { param, .. } => match arg(param) {
            Some(GpuArg::Scalar(value)) => scalar_bits(*value),
            _ => 0,
        },
    }
}

/// The bits of a scalar in its register: integers are extended, floats are rounded once to their type.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "`as` rounds to nearest even")]
pub fn scalar_bits(value: Const) -> u64 {
    match value {
        Const::Int(_, v) => v.cast_unsigned(),
        Const::Float(Elem::F64, v) => v.to_bits(),
        Const::Float(Elem::F16, v) => num::f16_from_f64(v).into(),
        Const::Float(Elem::Bf16, v) => num::bf16_from_f64(v).into(),
        Const::Float(Elem::E4m3, v) => num::e4m3_from_f64(v).into(),
        Const::Float(Elem::E5m2, v) => num::e5m2_from_f64(v).into(),
        Const::Float(Elem::Tf32, v) => num::tf32_from_f64(v).to_bits().into(),
        Const::Float(_, v) => (v as f32).to_bits().into(),
    }
}
