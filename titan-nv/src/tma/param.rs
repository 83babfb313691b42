//! The tensor map that a kernel takes as a hidden parameter, for a tensor argument of the launch.
//!
//! Deliberately absent: how a launch passes it (the runtime), and the driver's own encoding of it.

use super::fit::{Request, Tensor, Unfit, fit};
use super::{Element, L2Promotion, Swizzle, TensorMap, TensorMapError as Limit};
use titan_core::ir::{self, Elem};
use titan_core::launch::abi::{GpuArg, MapParam, PartMap};

impl TensorMap {
    /// The tensor map of a tensor argument for a kernel.
    ///
    /// # Errors
    /// [`Unfit`]: the reason why a variant without tensor maps must be taken.
    pub fn of_argument(map: &MapParam, argument: &GpuArg) -> Result<TensorMap, Unfit> {
        let GpuArg::Tensor { address, extents, strides } = argument else { return Err(Unfit::Absent) };
        // Dimensions are in the reverse order of axes.
        let sizes: Vec<u64> = extents.iter().rev().map(|n| u64::try_from(*n).unwrap_or(0)).collect();
        let strides: Vec<i64> = strides.iter().rev().copied().collect();
        let boxes: Vec<u32> = map.extents.iter().rev().copied().collect();
        let most = i64::from(MapParam::MOST_EXTENT);
        if let Some(dim) = sizes.iter().position(|n| *n > most.unsigned_abs()) {
            return Err(Unfit::Coordinates { dim, low: 0, high: i64::try_from(sizes[dim]).unwrap_or(i64::MAX) });
        }
        // Boxes start anywhere up to the end of the largest tensor, and their panels next to each other.
        let starts = vec![i64::from(i32::MIN)..=most + i64::from(u16::MAX); sizes.len()];
        let element = element(map.elem);
        let tensor = Tensor { element, address: Some(*address), extents: &sizes, strides: &strides };
        let swizzle = match map.swizzle {
            ir::Swizzle::None => Swizzle::None,
            ir::Swizzle::B32 => Swizzle::B32,
            ir::Swizzle::B64 => Swizzle::B64,
            ir::Swizzle::B128 => Swizzle::B128,
        };
        let request = Request { boxes: &boxes, element_strides: &[], starts: &starts, swizzle, l2: L2Promotion::B256 };
        let whole = fit(&tensor, &request)?;
        match map.part {
            // The device replaces extents by smaller ones, so that its maps fit too.
            PartMap::Whole | PartMap::Ending { .. } => Ok(whole),
            // An axis that the tensor does not have is no dimension of the map either.
            PartMap::Along(axis) => whole.for_parts(sizes.len().saturating_sub(usize::from(axis) + 1)),
        }
    }
}

impl Unfit {
    /// The reason in the terms of a kernel's author: axes of a tensor of rank `rank`, counted as in its shape, from the outermost.
    #[must_use]
    pub fn of_axes(&self, rank: usize) -> String {
        let axis = |dim: usize| rank.saturating_sub(dim + 1);
        let apart =
            |dim: usize, distance: i64| format!("neighbours along axis {} are {distance} elements apart", axis(dim));
        match *self {
            Unfit::Absent => "the launch leaves it out".to_owned(),
            Unfit::Ranks { extents, boxes, .. } => format!("its rank is {extents}, and that of its boxes {boxes}"),
            Unfit::Empty { dim } => format!("it has no elements along axis {}", axis(dim)),
            Unfit::InnermostStride { stride } => format!("{}, and must be adjacent", apart(0, stride)),
            Unfit::StrideSign { dim, stride } => format!("{}: the distance must be positive", apart(dim, stride)),
            Unfit::StrideSize { dim, stride } => format!("{}, which is 2^40 bytes or more", apart(dim, stride)),
            Unfit::Overlap { dim } => format!("elements along axis {} overlap those along other axes", axis(dim)),
            Unfit::End => "it ends beyond the last address".to_owned(),
            Unfit::Coordinates { dim, low, high } => {
                let most = MapParam::MOST_EXTENT;
                format!("coordinates along axis {} are {low} to {high}: its extent can be at most {most}", axis(dim))
            }
            Unfit::Map(Limit::Address(address)) => {
                format!("it begins at address {address:#x}, which is not a multiple of 16")
            }
            Unfit::Map(Limit::Extent { dim, extent }) => {
                format!("it has {extent} elements along axis {}: 1 to 2^32 are possible", axis(dim))
            }
            Unfit::Map(Limit::Stride { dim, stride }) => format!(
                "neighbours along axis {} are {stride} bytes apart: multiples of 16 below 2^40 are possible",
                axis(dim)
            ),
            Unfit::PartStride { dim, bytes } => format!(
                "neighbours along axis {} are {bytes} bytes apart: of parts along it, less than 2^34 are possible",
                axis(dim)
            ),
            // The compiler chooses the box and the axis of parts, so these reasons do not concern the author.
            Unfit::Rows { .. }
            | Unfit::PartDimension { .. }
            | Unfit::Shared { .. }
            | Unfit::Map(
                Limit::Rank(_)
                | Limit::Box { .. }
                | Limit::ElementStride { .. }
                | Limit::InnermostStride(_)
                | Limit::InnerBytes { .. }
                | Limit::Swizzle { .. }
                | Limit::Fill,
            ) => self.to_string(),
        }
    }
}

/// The type of elements in a tensor map; any type of the right size serves, since copies change no bits.
const fn element(elem: Elem) -> Element {
    match elem {
        Elem::F64 => Element::F64,
        Elem::F32 | Elem::Tf32 => Element::F32,
        Elem::F16 => Element::F16,
        Elem::Bf16 => Element::Bf16,
        Elem::I64 => Element::I64,
        Elem::U64 => Element::U64,
        Elem::I32 => Element::I32,
        Elem::U32 => Element::U32,
        Elem::I16 | Elem::U16 => Element::U16,
        // Two 4-bit elements share a byte; kernels do not copy them by tensor maps.
        Elem::I8 | Elem::U8 | Elem::E4m3 | Elem::E5m2 | Elem::Bool | Elem::I4 | Elem::U4 => Element::U8,
    }
}
