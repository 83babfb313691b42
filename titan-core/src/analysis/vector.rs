//! How many neighbours along the last axis of a tensor may be accessed at once: what follows from the assumptions on a
//! parameter, from the views of it, and from coordinates that are visibly multiples.

use crate::ir::{BinOp, Def, Kernel, OpKind, Unit, Value};

/// Whether what is assumed of the parameter behind a view holds of the view too: its rows begin on multiples of 16 bytes, and
/// are whole multiples of 16 bytes long. `params` says it of the parameters.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "what is no view keeps no assumption")]
pub fn is_aligned(kernel: &Kernel, tensor: Value, params: &[bool]) -> bool {
    match kernel.value(tensor).def {
        Def::Param(index) => params.get(index) == Some(&true),
        Def::BlockArg(..) => false,
        Def::Result(op, _) => {
            let op = kernel.op(op);
            let Some(of) = op.args.first().copied() else { return false };
            let crate::ir::Ty::Tensor(_, rank) = kernel.ty(of) else { return false };
            let keeps = match op.kind {
                OpKind::Index(axis) | OpKind::Slice(axis) => axis + 1 != rank,
                OpKind::Segment => rank > 1,
                OpKind::Shared => true,
                _ => false,
            };
            keeps && is_aligned(kernel, of, params)
        }
    }
}

/// How many neighbours may be accessed at once if accesses begin at multiples of `step` elements: a power of two. The two
/// elements of a byte are always neighbours.
#[must_use]
pub fn width(bits: u32, aligned: bool, step: u32) -> u32 {
    let even = 1 << step.trailing_zeros().min(7);
    if aligned {
        return (128 / bits).min(even);
    }
    if bits < 8 { 2.min(even) } else { 1 }
}

/// How many neighbours of a tile may be accessed at once: `last` is the extent of its last axis, `coord` its coordinate there.
#[must_use]
pub fn tile_width(kernel: &Kernel, bits: u32, aligned: bool, unit: Unit, (last, coord): (u32, Value)) -> u32 {
    let step = match unit {
        Unit::Tile => last,
        Unit::Elem => divisor(kernel, coord),
    };
    width(bits, aligned, step).min(1 << last.trailing_zeros().min(7))
}

/// A power of two, at most 128, that divides a scalar, as far as its definition shows.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest shows no divisor")]
pub fn divisor(kernel: &Kernel, value: Value) -> u32 {
    if let Some(c) = kernel.int_constant(value) {
        return if c == 0 { 128 } else { 1 << c.trailing_zeros().min(7) };
    }
    let Some(op) = kernel.def_op(value) else { return 1 };
    match op.kind {
        OpKind::Binary(BinOp::Mul) => (divisor(kernel, op.args[0]) * divisor(kernel, op.args[1])).min(128),
        OpKind::Binary(BinOp::Add | BinOp::Sub) => divisor(kernel, op.args[0]).min(divisor(kernel, op.args[1])),
        _ => 1,
    }
}
