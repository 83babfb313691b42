//! Vector widths: how many adjacent elements along the last axis of a tensor may be accessed at once, given the assumptions about the
//! parameter, the views of it, and the known divisors of coordinates.

use crate::ir::{BinOp, Def, Kernel, OpKind, Ty, Unit, Value};

/// Whether the alignment assumption on a parameter (`params`) also holds for a view of it: rows are aligned to 16 bytes and a multiple
/// of 16 bytes long.
#[must_use]
pub fn is_aligned(kernel: &Kernel, tensor: Value, params: &[bool]) -> bool {
    match kernel.value(tensor).def {
        Def::Param(index) => params.get(index) == Some(&true),
        Def::BlockArg(..) => false,
        Def::Result(op, _) => {
            let op = kernel.op(op);
            let Some(of) = op.args.first().copied() else { return false };
            let Ty::Tensor(_, rank) = kernel.ty(of) else { return false };
            let other_axis = matches!(op.kind, OpKind::Index(axis) | OpKind::Slice(axis) if axis + 1 != rank);
            let rows = op.kind == OpKind::Segment && rank > 1;
            (other_axis || rows || op.kind == OpKind::Shared) && is_aligned(kernel, of, params)
        }
    }
}

/// How the 4-bit elements of a view share bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// An even index of the view's last axis shares a byte with the next odd index. Elements of whole bytes do not share any.
    Pairs,
    /// Adjacent elements along the last axis share bytes. The first or the last element may be half of a byte whose other half is not part
    /// of the view.
    Neighbours,
    /// The elements share no bytes: the packed axis is fixed, and the other half of each byte is not part of the view.
    Apart,
}

/// How the elements of a tensor or view share bytes.
#[must_use]
pub fn packing(kernel: &Kernel, tensor: Value) -> Packing {
    let Some(op) = kernel.def_op(tensor) else { return Packing::Pairs };
    let (Some(of), bits) = (op.args.first().copied(), kernel.ty(tensor).elem().bits()) else { return Packing::Pairs };
    let Ty::Tensor(_, rank) = kernel.ty(of) else { return Packing::Pairs };
    let whole = packing(kernel, of);
    if bits >= 8 {
        return whole;
    }
    if matches!(op.kind, OpKind::Index(axis) if axis + 1 == rank) {
        return Packing::Apart;
    }
    // Clipping to the tensor leaves even ends even, because the packed axis of the tensor has an even extent.
    let cut = matches!(op.kind, OpKind::Slice(axis) if axis + 1 == rank)
        && divisor(kernel, op.args[1]).min(divisor(kernel, op.args[2])) < 2;
    let odd = cut || op.kind == OpKind::Segment && rank == 1;
    if odd && whole == Packing::Pairs { Packing::Neighbours } else { whole }
}

/// The number of adjacent elements that may be accessed at once, a power of two, if accesses begin at multiples of `step` elements. The
/// `kind` of a view is the bits of an element, whether [`is_aligned`] holds, and how elements share bytes.
#[must_use]
pub fn width((bits, aligned, packing): (u32, bool, Packing), step: u32) -> u32 {
    let even = 1 << step.trailing_zeros().min(7);
    match (aligned, bits < 8, packing) {
        (true, _, _) => (128 / bits).min(even),
        (false, true, Packing::Pairs) => 2.min(even),
        (false, true, Packing::Neighbours | Packing::Apart) | (false, false, _) => 1,
    }
}

/// The number of adjacent elements of a tile that may be accessed at once; `last` is the extent of its last axis, `coord` the coordinate.
#[must_use]
pub fn tile_width(kernel: &Kernel, kind: (u32, bool, Packing), unit: Unit, (last, coord): (u32, Value)) -> u32 {
    let step = match unit {
        Unit::Tile => last,
        Unit::Elem => divisor(kernel, coord),
    };
    width(kind, step).min(1 << last.trailing_zeros().min(7))
}

/// A power of two, at most 128, that divides a scalar, as far as its definition shows.
#[must_use]
pub fn divisor(kernel: &Kernel, value: Value) -> u32 {
    if let Some(c) = kernel.int_constant(value) {
        return if c == 0 { 128 } else { 1 << c.trailing_zeros().min(7) };
    }
    let Some(op) = kernel.def_op(value) else { return 1 };
    let OpKind::Binary(bin) = op.kind else { return 1 };
    match bin {
        BinOp::Shl => match kernel.int_constant(op.args[1]) {
            Some(by @ 0..=7) => (divisor(kernel, op.args[0]) << by).min(128),
            Some(_) | None => divisor(kernel, op.args[0]),
        },
        BinOp::Mul => (divisor(kernel, op.args[0]) * divisor(kernel, op.args[1])).min(128),
        BinOp::Add | BinOp::Sub => divisor(kernel, op.args[0]).min(divisor(kernel, op.args[1])),
        BinOp::Div
        | BinOp::Rem
        | BinOp::And
        | BinOp::Or
        | BinOp::Xor
        | BinOp::Shr
        | BinOp::Min
        | BinOp::Max
        | BinOp::MulHi
        | BinOp::Powf => 1,
    }
}
