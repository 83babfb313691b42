//! The methods of rings, of their tokens and of MMAs in flight.

use titan_core::ir::{Fill, Unit};

/// The kind of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeKind {
    Ring,
    Slot,
    Filling,
    Ready,
    Stage,
    Part,
    Source,
    View,
    Compute,
    Acc,
    Staging,
    StagingSlot,
    Written,
    Store,
    Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeMethod {
    Acquire,
    Produce,
    Ready,
    Consume,
    /// `copy`; for the conditional ones, the contents if the condition does not hold.
    Copy(Option<Fill>),
    Fill(Fill),
    Commit,
    Wait,
    WaitFilled,
    Release,
    Split,
    /// `a()` to `d()` by number
    View(u8),
    /// `get()`
    OnlyView,
    Load,
    Transpose,
    ComputeWait,
    AccMma,
    AccMmaReg,
    AccFinish,
    StagingAcquire,
    Write,
    Store(Unit),
    StoreWait,
    Indices,
    WorkTiles,
}

/// The method of this name for this receiver.
pub(crate) fn lookup(kind: PipeKind, name: &str) -> Option<PipeMethod> {
    use PipeKind as K;
    use PipeMethod as M;
    Some(match (kind, name) {
        (K::Ring, "acquire") => M::Acquire,
        (K::Ring, "produce") => M::Produce,
        (K::Ring, "ready") => M::Ready,
        (K::Ring, "consume") => M::Consume,
        (K::Slot, "copy") => M::Copy(None),
        (K::Slot, "copy_if") => M::Copy(Some(Fill::Zero)),
        (K::Slot, "copy_or_poison") => M::Copy(Some(Fill::Poison)),
        (K::Slot, "zero") => M::Fill(Fill::Zero),
        (K::Slot, "poison") => M::Fill(Fill::Poison),
        (K::Filling, "commit") => M::Commit,
        (K::Ready, "wait") => M::Wait,
        (K::Ready, "wait_filled") => M::WaitFilled,
        (K::Stage, "release") => M::Release,
        (K::Stage, "split") => M::Split,
        (K::Stage | K::Part, "a") => M::View(0),
        (K::Stage | K::Part, "b") => M::View(1),
        (K::Stage | K::Part, "c") => M::View(2),
        (K::Stage | K::Part, "d") => M::View(3),
        (K::Stage | K::Part, "get") => M::OnlyView,
        (K::View, "load") => M::Load,
        (K::View, "t") => M::Transpose,
        (K::Compute, "wait") => M::ComputeWait,
        (K::Acc, "mma") => M::AccMma,
        (K::Acc, "mma_reg") => M::AccMmaReg,
        (K::Acc, "finish") => M::AccFinish,
        (K::Staging, "acquire") => M::StagingAcquire,
        (K::StagingSlot, "write") => M::Write,
        (K::Written, "store") => M::Store(Unit::Tile),
        (K::Written, "store_at") => M::Store(Unit::Elem),
        (K::Store, "wait") => M::StoreWait,
        (K::Work, "indices") => M::Indices,
        (K::Work, "tiles") => M::WorkTiles,
        _ => return None,
    })
}
