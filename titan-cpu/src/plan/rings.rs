//! Rings of stages, and the steps that fill and read them.
//!
//! A token of the IR is a scalar here: the time of its ring that it is a right to. What was written to a slot of a staging
//! ring is a tile, and is stored from there. MMAs in flight and accumulators are tiles: MMAs are computed at their issue.
//!
//! What a stage holds is a description of what was to be copied: the tensors cannot change during the launch, so the copy may
//! as well be made when the stage is read, or never.
//!
//! Deliberately absent: D slots. A ring is a queue with room for as many stages at least, which holds nobody up who would not
//! wait otherwise.

use super::{Place, Plan, RowIndex, ScalarSlot, Step, TileSlot, ViewSlot};
use titan_core::ir::Fill;

/// Number of a ring.
pub(crate) type RingId = usize;

/// Stages that a ring has room for, if the kernel does not ask for more. A role that runs ahead by so many is worth it: the
/// reader then finds a long product.
const ROOM: usize = 256;

/// A ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlan {
    /// How many roles see each stage. None of a staging ring.
    pub(crate) readers: usize,
    /// How many stages there is room for.
    pub(crate) room: usize,
}

impl RingPlan {
    pub(super) fn new(readers: usize, slots: u32) -> Self {
        RingPlan { readers, room: ROOM.max(usize::try_from(slots).unwrap_or(ROOM)) }
    }
}

/// What a ring sees.
#[derive(Debug)]
pub(crate) enum RingStep {
    /// Takes the next time of the filling side.
    Acquire {
        ring: RingId,
        to: ScalarSlot,
    },
    /// Fills a stage; if the condition does not hold, like this.
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
    // The prologue has no blocks inside, and all others were made before the blocks inside of them.
    for block in (0..plan.blocks.len()).rev() {
        let inside = plan.blocks[block].iter().flat_map(|node| node.step.inner_blocks()).any(|inner| plan.waits[inner]);
        plan.waits[block] |= inside;
    }
}
