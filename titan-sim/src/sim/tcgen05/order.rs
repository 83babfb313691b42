//! The classes of operations on tensor memory, and the pairs that are executed in order.
//!
//! Of the operations that one thread starts, only these are executed in the order in which they were started: MMAs with the same
//! accumulator, kind and shape; a copy or a shift, and an MMA after it; an MMA, and a shift after it. Each kind of MMA in this sense is a
//! class of the engine, so that the order of two operations follows from their classes.
//!
//! Source: PTX ISA, "Pipelined tcgen05 Instructions".
//!
//! A copy, an MMA after it and a shift after that are in order, though a copy and a shift are no such pair. The sanitizer, which knows pairs
//! alone, follows this only on columns that the MMA writes.
//!
//! Deliberately absent: a copy of the shape `4x256b` after a shift, since copies state no shape.

use crate::engine::Class;
use crate::sim::plan::{TENSOR_COPY, TENSOR_LOAD, TENSOR_MMA, TENSOR_SHIFT, TENSOR_STORE};
use titan_core::ir::{Kernel, Mma, MmaKind, NvOp, Op, OpKind, Tcgen05Op, Value};

/// What MMAs that are executed in order have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) struct MmaUnit {
    accumulator: Value,
    kind: MmaKind,
    shape: [u32; 3],
    stationary: bool,
}

/// An operation whose completion a commit signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracked {
    Mma(u8),
    Copy,
    Shift,
}

fn unit(op: &Op, mma: &Mma) -> Option<MmaUnit> {
    let accumulator = *op.args.first()?;
    Some(MmaUnit { accumulator, kind: mma.kind, shape: mma.shape, stationary: mma.stationary })
}

/// The units of a kernel's MMAs; their classes are numbered like them.
pub(in crate::sim) fn units(kernel: &Kernel) -> Vec<MmaUnit> {
    let mut units = Vec::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Mma(mma))) = &op.kind
            && let Some(unit) = unit(op, mma).filter(|unit| !units.contains(unit))
        {
            units.push(unit);
        }
    });
    units
}

/// The class of an operation that accesses columns asynchronously.
pub(super) fn class_of(units: &[MmaUnit], op: &Op, what: &Tcgen05Op) -> Option<Class> {
    match what {
        Tcgen05Op::Mma(mma) => {
            let own = unit(op, mma)?;
            let number = units.iter().position(|unit| *unit == own)?;
            Some(Class(TENSOR_MMA.0.checked_add(u8::try_from(number).ok()?)?))
        }
        Tcgen05Op::Copy { .. } => Some(TENSOR_COPY),
        Tcgen05Op::Shift { .. } => Some(TENSOR_SHIFT),
        Tcgen05Op::Load { .. } => Some(TENSOR_LOAD),
        Tcgen05Op::Store { .. } => Some(TENSOR_STORE),
        Tcgen05Op::Alloc { .. }
        | Tcgen05Op::Dealloc { .. }
        | Tcgen05Op::Relinquish { .. }
        | Tcgen05Op::Commit { .. }
        | Tcgen05Op::WaitLoad
        | Tcgen05Op::WaitStore
        | Tcgen05Op::FenceBefore
        | Tcgen05Op::FenceAfter => None,
    }
}

fn of(class: Class) -> Option<Tracked> {
    match class {
        TENSOR_COPY => Some(Tracked::Copy),
        TENSOR_SHIFT => Some(Tracked::Shift),
        Class(n) => n.checked_sub(TENSOR_MMA.0).map(Tracked::Mma),
    }
}

/// Whether a commit signals the completion of operations of a class.
pub(in crate::sim) fn is_tracked(class: Class) -> bool {
    of(class).is_some()
}

/// Whether operations of two classes that one thread starts in this order are executed in this order.
pub(super) fn in_order(before: Class, after: Class) -> bool {
    match (of(before), of(after)) {
        (Some(Tracked::Mma(a)), Some(Tracked::Mma(b))) => a == b,
        (Some(Tracked::Copy | Tracked::Shift), Some(Tracked::Mma(_)))
        | (Some(Tracked::Mma(_)), Some(Tracked::Shift)) => true,
        (Some(Tracked::Mma(_) | Tracked::Copy | Tracked::Shift), Some(Tracked::Copy))
        | (Some(Tracked::Copy | Tracked::Shift), Some(Tracked::Shift))
        | (None, _)
        | (_, None) => false,
    }
}

/// The classes of which a commit signals the completion, in a kernel with this number of units.
pub(in crate::sim) fn tracked(units: usize) -> Vec<Class> {
    let mmas = (TENSOR_MMA.0..=u8::MAX).take(units).map(Class);
    [TENSOR_COPY, TENSOR_SHIFT].into_iter().chain(mmas).collect()
}

/// The pairs of these classes that are executed in order.
pub(in crate::sim) fn pipelined(classes: &[Class]) -> Vec<(Class, Class)> {
    let pairs = classes.iter().flat_map(|before| classes.iter().map(move |after| (*before, *after)));
    pairs.filter(|(before, after)| in_order(*before, *after)).collect()
}
