//! Tiles that are copied in bulk: the boxes of tensors that tensor maps describe, and the reasons why a tile is not a box.
//!
//! A box is a tile of a tensor parameter that is not optional, possibly with some axes fixed. Elements outside of the tensor must be zero,
//! and the encoding in shared memory must be that of a box: rows without padding, and nothing beyond the tile.
//! Source: CUDA driver API, `cuTensorMapEncodeTiled`.
//!
//! The tensor may also be a *part* `lo..hi` of a parameter: a slice, or a segment of a grouped product, whose bounds are known only on the
//! device. Two kinds of maps make copies stop at the end of the part ([`Part`]). If the part is along one axis other than the last one, and the
//! map may have two more dimensions, one map of the whole parameter serves all parts (`titan_nv::tma`, "parts", has the arithmetic, and
//! docs/tma.md an example). Otherwise the device makes a map for each end that a part may have, ahead of the kernel ([`super::ends`]).
//! Neither stops copies at the part's beginning, so tiles of parts are at multiples of their extents.
//!
//! Deliberately absent: what depends on the arguments of a launch, such as addresses and strides (`titan_nv::tma::fit`).

use super::ends::{self, Ends, NoEnd};
use crate::ir::{Const, Def, Elem, Encoding, Kernel, LocalOp, Op, OpKind, ParamKind, TtgOp, Ty, Unit, Value};
use std::fmt;

/// The maximum extent of a box along an axis.
const MOST_EXTENT: u32 = 256;
/// The maximum number of axes of a tensor with a tensor map.
const MOST_AXES: usize = 5;
/// The axes that a tensor map has in addition if it is for parts of a tensor.
const MORE_AXES: usize = 2;

/// The reason why a tile is not copied in bulk; displayed as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoBox {
    /// The rows are selected by indices.
    Gathered,
    /// The copy has a condition.
    Conditional,
    /// The order of axes in shared memory is not that of the tensor.
    Turned,
    /// The encoding in shared memory is larger than the tile; the extents of both.
    Larger([Vec<u32>; 2]),
    /// The rows in shared memory have padding.
    PaddedRows,
    /// The size of the rows in bytes is not suitable.
    Row(u32),
    /// The rows of the tile are not whole panels; the elements of its rows, and of the rows in shared memory.
    Panels([u32; 2]),
    /// Elements outside of the tensor are not zero.
    Padding,
    /// The tile is of a view that fixes the last axis of the tensor.
    Column,
    /// The tile is of a part of the tensor that needs a tensor map of its own, and its end is not known before the kernel runs.
    End(NoEnd),
    /// The tile is of a part of the tensor, and at a coordinate in elements.
    PartAt,
    /// The tile is of a part of the tensor, and is copied to several programs of a cluster.
    PartShared,
    /// The tensor is optional.
    Absent(String),
    /// The rows of the tensor are not known to be aligned.
    Unaligned(String),
    /// The number of axes of the box is not supported.
    Axes(usize),
    /// An extent of the box is too large.
    Extent {
        /// The axis of the tensor.
        axis: usize,
        /// The extent of the box along the axis, in elements.
        extent: u32,
    },
    /// The element type is not supported.
    Elements(Elem),
    /// No box of a tensor with so many axes has so many bytes.
    Bytes {
        /// The bytes.
        bytes: u32,
        /// The number of axes.
        axes: usize,
    },
    /// The source is not a tile of a tensor.
    NoTensor,
}

impl fmt::Display for NoBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |extents: &[u32]| extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
        match self {
            NoBox::Gathered => f.write_str("its rows are gathered by index, and the rows of a box are neighbours"),
            NoBox::Conditional => f.write_str("it is copied only under a condition"),
            NoBox::Turned => f.write_str("its axes have another order in shared memory than in the tensor"),
            NoBox::Larger([tile, held]) => {
                write!(f, "matrix instructions read {} elements, more than its {}", by(held), by(tile))
            }
            NoBox::PaddedRows => f.write_str("its rows are padded in shared memory"),
            NoBox::Row(bytes) => write!(f, "its rows have {bytes} bytes, not a multiple of 16"),
            NoBox::Panels([tile, row]) => {
                write!(f, "its rows of {tile} elements are not whole rows of {row}, the span of the swizzle")
            }
            NoBox::Padding => f.write_str("elements outside of the tensor are not to be +0"),
            NoBox::Column => f.write_str("its view fixes the last axis, so that neighbours are not adjacent in memory"),
            NoBox::End(why) => write!(
                f,
                "its view is a part of the tensor for which the device would make a tensor map ahead of the kernel, but {why}"
            ),
            NoBox::PartAt => f.write_str(
                "its view is a part of the tensor, and a tile at any element could begin before the part, where bulk copies do not stop",
            ),
            NoBox::PartShared => {
                f.write_str("its view is a part of the tensor, and the boxes of parts are not copied to several programs")
            }
            NoBox::Absent(tensor) => write!(f, "the tensor `{tensor}` may be absent"),
            NoBox::Unaligned(tensor) => write!(f, "the rows of `{tensor}` need not be aligned to 16 bytes"),
            NoBox::Axes(n) => write!(f, "its box has {n} axes, more than {MOST_AXES}"),
            NoBox::Extent { axis, extent } => {
                write!(f, "its extent {extent} along axis {axis} exceeds {MOST_EXTENT}, the greatest of a box")
            }
            NoBox::Elements(elem) => write!(f, "tensor maps have no elements `{elem}`"),
            NoBox::Bytes { bytes, axes: 1 } => {
                write!(f, "a box of one axis has at most {MOST_EXTENT} elements in lines of 16 bytes, and not {bytes} bytes")
            }
            NoBox::Bytes { bytes, axes } => {
                write!(f, "no box of {axes} axes has {bytes} bytes: an extent is at most {MOST_EXTENT}, and a row is a multiple of 16 bytes")
            }
            NoBox::NoTensor => f.write_str("it is no tile of a tensor"),
        }
    }
}

/// A box of a tensor parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxed {
    /// The index of the parameter.
    pub param: usize,
    /// The element type.
    pub elem: Elem,
    /// The extents of the box, one for each axis of the tensor.
    pub extents: Vec<u32>,
    /// The part of the tensor that the tile is of.
    pub part: Part,
}

/// The part of a tensor parameter that a view is of, and the tensor map by which copies stop at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole tensor.
    Whole,
    /// A part along this axis, by one map for all parts along it.
    Along(u8),
    /// A part for whose end the device makes a map.
    Ending(Ends),
}

/// What a view is of: a tensor parameter, or a part of one.
struct Viewed {
    param: usize,
    /// The axes of the parameter along which the view is of a part: once for each part of a part.
    cuts: Vec<u8>,
}

/// The box of the tile that an operation loads or names as a source, for an encoding in shared memory. `aligned` is, for each parameter,
/// whether its rows are aligned.
///
/// # Errors
/// The reason why the tile is not a box.
pub fn of_op(k: &Kernel, op: &Op, encoding: &Encoding, aligned: &[bool]) -> Result<Boxed, NoBox> {
    let (OpKind::Ttg(TtgOp::Source(unit, shape)) | OpKind::Load(unit, shape)) = &op.kind else {
        let gathers = matches!(op.kind, OpKind::Ttg(TtgOp::SourceRows { .. }) | OpKind::GatherRows { .. });
        let guards = matches!(op.kind, OpKind::Local(LocalOp::Guard));
        return Err(match (gathers, guards) {
            (true, _) => NoBox::Gathered,
            (false, true) => NoBox::Conditional,
            (false, false) => NoBox::NoTensor,
        });
    };
    let tile: Vec<u32> = (*shape).into();
    in_memory(&tile, encoding)?;
    if !op.args.last().and_then(|pad| k.constant(*pad)).is_some_and(is_zero) {
        return Err(NoBox::Padding);
    }
    let mut extents = tile;
    *extents.last_mut().ok_or(NoBox::NoTensor)? = encoding.row;
    let (param, part, elem) = parameter(k, *op.args.first().ok_or(NoBox::NoTensor)?, &mut extents)?;
    if part != Part::Whole && *unit != Unit::Tile {
        return Err(NoBox::PartAt);
    }
    if elem.bits() != encoding.bits {
        return Err(NoBox::Elements(elem));
    }
    if let Some((axis, extent)) = extents.iter().copied().enumerate().find(|(_, n)| *n > MOST_EXTENT) {
        return Err(NoBox::Extent { axis, extent });
    }
    if aligned.get(param) != Some(&true) {
        return Err(NoBox::Unaligned(k.display_name(k.param(param))));
    }
    Ok(Boxed { param, elem, extents, part })
}

/// The parameter that a tensor or view is of, and the part of it.
///
/// # Errors
/// The reason why no tile of it is a box.
pub(crate) fn of_view(k: &Kernel, view: Value) -> Result<(usize, Part), NoBox> {
    let rank = if let Ty::Tensor(_, rank) = k.ty(view) { usize::from(rank) } else { return Err(NoBox::NoTensor) };
    let (param, part, _) = parameter(k, view, &mut vec![1; rank])?;
    Ok((param, part))
}

/// The reason why no box at a coordinate in elements is a tile of a tensor or view; `None` if that depends on the box.
#[must_use]
pub fn never(k: &Kernel, view: Value) -> Option<NoBox> {
    match of_view(k, view) {
        Ok((_, Part::Whole)) => None,
        Ok((_, Part::Along(_) | Part::Ending(_))) => Some(NoBox::PartAt),
        Err(why) => Some(why),
    }
}

/// The parameter that a tensor is a view of, the part of it, and its element type. Adds the axes that the views fix to the extents of the box.
fn parameter(k: &Kernel, view: Value, extents: &mut Vec<u32>) -> Result<(usize, Part, Elem), NoBox> {
    let Viewed { param, cuts } = tensor(k, view, extents)?;
    let Some(ParamKind::Tensor { elem, optional, .. }) = k.sig.params.get(param).map(|p| &p.kind) else {
        return Err(NoBox::NoTensor);
    };
    if *optional {
        return Err(NoBox::Absent(k.display_name(k.param(param))));
    }
    if elem.bits() < 8 {
        return Err(NoBox::Elements(*elem));
    }
    if extents.len() > MOST_AXES {
        return Err(NoBox::Axes(extents.len()));
    }
    let rank = extents.len();
    let part = match cuts[..] {
        [] => Part::Whole,
        [axis] if usize::from(axis) + 1 < rank && rank + MORE_AXES <= MOST_AXES => Part::Along(axis),
        _ => Part::Ending(ends::of_view(k, view).map_err(NoBox::End)?),
    };
    Ok((param, part, *elem))
}

/// Checks that the encoding of a tile in shared memory is that of a box.
fn in_memory(tile: &[u32], encoding: &Encoding) -> Result<(), NoBox> {
    let last = tile.last().copied().unwrap_or(0);
    if !encoding.order.iter().copied().eq(0..tile.len()) {
        return Err(NoBox::Turned);
    }
    if encoding.extents != tile {
        return Err(NoBox::Larger([tile.to_vec(), encoding.extents.clone()]));
    }
    if !(encoding.row * encoding.bits).is_multiple_of(128) {
        return Err(NoBox::Row(last * encoding.bits / 8));
    }
    if encoding.pitch * 8 != encoding.row * encoding.bits {
        return Err(NoBox::PaddedRows);
    }
    if !last.is_multiple_of(encoding.row) {
        return Err(NoBox::Panels([last, encoding.row]));
    }
    Ok(())
}

/// The extents that a box may have of which a program states the number of bytes alone: each extent is at most 256, and the last one
/// is a multiple of 16 bytes. None if no tensor map describes such a box, or if it has no whole elements.
#[must_use]
pub fn extents_of(bytes: u32, elem: Elem, rank: usize) -> Vec<Vec<u32>> {
    let (bits, all) = (u64::from(elem.bits()), u64::from(bytes) * 8);
    if bits == 0 || !all.is_multiple_of(bits) || rank == 0 || rank > MOST_AXES {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), all / bits)];
    // The last axis comes first.
    while let Some((extents, rest)) = open.pop() {
        if extents.len() == rank {
            found.extend((rest == 1).then(|| extents.iter().rev().copied().collect::<Vec<u32>>()));
            continue;
        }
        let left = u32::try_from(rank - extents.len()).unwrap_or(1);
        for extent in (1..=MOST_EXTENT).filter(|n| rest.is_multiple_of(u64::from(*n))) {
            let rest = rest / u64::from(extent);
            let row = !extents.is_empty() || (u64::from(extent) * bits).is_multiple_of(128);
            if row && rest <= u64::from(MOST_EXTENT).pow(left - 1) {
                open.push(([&extents[..], &[extent]].concat(), rest));
            }
        }
    }
    found.sort_unstable();
    found
}

/// What a tensor is a view of. Adds the axes that the views fix to the extents of the box.
fn tensor(k: &Kernel, view: Value, extents: &mut Vec<u32>) -> Result<Viewed, NoBox> {
    let (mut tensor, mut cuts) = (view, Vec::new());
    loop {
        let view = match k.value(tensor).def {
            Def::Param(param) => return Ok(Viewed { param, cuts }),
            Def::Result(op, _) => k.op(op),
            Def::BlockArg(..) => return Err(NoBox::NoTensor),
        };
        if let OpKind::Index(axis) = view.kind {
            // Adjacent elements of a row stay adjacent in memory.
            extents.insert(usize::from(axis), 1);
            if usize::from(axis) + 1 == extents.len() {
                return Err(NoBox::Column);
            }
            cuts.iter_mut().filter(|of| axis <= **of).for_each(|of| *of += 1);
        } else if let Some(axis) = cut(view) {
            cuts.push(axis);
        } else if view.kind != OpKind::Shared {
            // A view by `Shared` is the whole tensor, exempt from the output rule.
            return Err(NoBox::NoTensor);
        }
        tensor = *view.args.first().ok_or(NoBox::NoTensor)?;
    }
}

/// The axis along which a view is a part of its tensor; `None` if it is no such view.
pub(crate) fn cut(view: &Op) -> Option<u8> {
    if let OpKind::Slice(axis) = view.kind { Some(axis) } else { (view.kind == OpKind::Segment).then_some(0) }
}

fn is_zero(pad: Const) -> bool {
    match pad {
        Const::Int(_, v) => v == 0,
        Const::Float(_, v) => v.to_bits() == 0,
    }
}
