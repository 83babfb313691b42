//! Rings of stages, and the steps that fill and read them.
//!
//! A token of the IR is a scalar here: the ring time of its stage or slot. The contents of a slot of a staging
//! ring are a tile, and are stored from there. MMAs in flight and accumulators are tiles: MMAs are computed at their issue.
//!
//! A stage contains a description of the copy instead of its elements: the tensors cannot change during the launch, so the copy can
//! be executed when the stage is read, or never.
//!
//! Deliberately absent: the kernel's number of slots. A ring is a queue with room for at least as many stages, so that no role waits
//! here that would not wait with that number.

use super::{Place, Plan, RowIndex, ScalarSlot, Step, TileSlot, ViewSlot};
use titan_core::ir::Fill;

/// The number of a ring.
pub(crate) type RingId = usize;

/// The number of stages for which a ring has room, if the kernel does not need more. A role that runs far ahead improves performance: the
/// reader then finds a long run of adjacent stages, which it multiplies at once.
const ROOM: usize = 256;

/// A ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlan {
    /// The number of roles that read each stage; 0 for a staging ring.
    pub(crate) readers: usize,
    /// The number of stages for which there is room.
    pub(crate) room: usize,
}

impl RingPlan {
    pub(super) fn new(readers: usize, slots: u32) -> Self {
        RingPlan { readers, room: ROOM.max(usize::try_from(slots).unwrap_or(ROOM)) }
    }
}

/// A step on a ring.
#[derive(Debug)]
pub(crate) enum RingStep {
    /// Takes the next time of the filling side.
    Acquire {
        ring: RingId,
        to: ScalarSlot,
    },
    /// Fills a stage; if the condition does not hold, with zeros or poison.
    Produce {
        ring: RingId,
        time: ScalarSlot,
        sources: Vec<Source>,
        unless: Option<(ScalarSlot, Fill)>,
    },
    Fill {
        ring: RingId,
        time: ScalarSlot,
        fill: Fill,
    },
    /// Takes the next time of a reader.
    Ready {
        ring: RingId,
        reader: usize,
        to: ScalarSlot,
    },
    /// Continues when the stage is filled.
    Wait {
        ring: RingId,
        time: ScalarSlot,
    },
    Poisoned {
        to: ScalarSlot,
        ring: RingId,
        time: ScalarSlot,
    },
    View {
        to: TileSlot,
        ring: RingId,
        time: ScalarSlot,
        field: usize,
    },
    Release {
        ring: RingId,
        time: ScalarSlot,
    },
}

/// The source of a copy.
#[derive(Debug)]
pub(crate) enum Source {
    Tile { from: Place, shape: [i32; 4], pad: ScalarSlot },
    Rows { view: ViewSlot, rows: Vec<RowIndex>, count: usize, col: ScalarSlot, pad: ScalarSlot },
}

impl RingStep {
    pub(super) fn for_each_set(&self, f: &mut dyn FnMut(ScalarSlot)) {
        match self {
            RingStep::Acquire { to, .. } | RingStep::Ready { to, .. } | RingStep::Poisoned { to, .. } => f(*to),
            RingStep::Produce { .. }
            | RingStep::Fill { .. }
            | RingStep::Wait { .. }
            | RingStep::View { .. }
            | RingStep::Release { .. } => {}
        }
    }
}

/// Finds the blocks in which a role may have to wait.
pub(super) fn mark_waits(plan: &mut Plan) {
    let own = |block: &Vec<super::Node>| {
        block.iter().any(|node| matches!(node.step, Step::Ring(RingStep::Acquire { .. } | RingStep::Wait { .. })))
    };
    plan.waits = plan.blocks.iter().map(own).collect();
    // The prologue has no blocks inside; every other block has a lower number than the blocks inside of it.
    for block in (0..plan.blocks.len()).rev() {
        let inside = plan.blocks[block].iter().flat_map(|node| node.step.inner_blocks()).any(|inner| plan.waits[inner]);
        plan.waits[block] |= inside;
    }
}
