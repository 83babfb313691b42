//! Placement of fences. Every choice is checked by the analysis before it is made.

use super::asked::Asked;
use crate::analysis::proxy::{Found, Hazard, Overlay, fence_of, join};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{Order, traffic};
use crate::ir::{Block, Effect, FenceSpace, Kernel, NvOp, OpId, OpKind, Scope};

/// The nesting of operations.
pub(super) struct Around {
    /// The block that contains each operation.
    pub(super) block: SortedMap<OpId, Block>,
    /// The operation that owns each block.
    owner: SortedMap<Block, OpId>,
    /// The operations in program order.
    pub(super) order: Vec<OpId>,
}

impl Around {
    pub(super) fn new(kernel: &Kernel) -> Around {
        let mut around = Around { block: SortedMap::new(), owner: SortedMap::new(), order: Vec::new() };
        around.add(kernel, kernel.body);
        around
    }

    fn add(&mut self, kernel: &Kernel, block: Block) {
        for id in &kernel.block(block).ops {
            self.block.insert(*id, block);
            self.order.push(*id);
            for region in &kernel.op(*id).regions {
                self.owner.insert(*region, *id);
                self.add(kernel, *region);
            }
        }
    }

    /// The operation whose region contains an operation.
    fn outside(&self, id: OpId) -> Option<OpId> {
        self.owner.get(self.block.get(&id)?).copied()
    }
}

/// Whether every execution of a block needs a fence there, assuming that loops execute at least one iteration.
fn needs(kernel: &Kernel, block: Block, found: &Found) -> bool {
    kernel.block(block).ops.iter().any(|id| {
        let op = kernel.op(*id);
        let own = found.at(*id).is_some_and(|h| !h.pairs.is_empty());
        // Blocks are nested finitely deep, so this ends.
        let arms = op.kind == OpKind::If && op.regions.iter().all(|arm| needs(kernel, *arm, found));
        own || arms || op.kind.is_loop() && op.regions.iter().any(|body| needs(kernel, *body, found))
    })
}

/// The barrier of the lanes of a warp, or of the warps of a role, immediately before an arrival. Before it, each thread fences its own
/// accesses; after it, not every thread takes part in the arrival.
fn joined_before(kernel: &Kernel, around: &Around, arrival: OpId) -> Option<OpId> {
    if traffic(&kernel.op(arrival).kind).order != Order::Releases {
        return None;
    }
    let ops = &kernel.block(*around.block.get(&arrival)?).ops;
    let before = &ops[..ops.iter().position(|id| *id == arrival)?];
    // Between the barrier and the arrival, only computations: an access there would not be before the barrier, and a
    // fence before the barrier would not order it.
    let pure = |id: &&OpId| kernel.op(**id).kind.effect() == Effect::Pure;
    let last = before.iter().rev().find(|id| !pure(id))?;
    matches!(kernel.op(*last).kind, OpKind::Nv(NvOp::WarpSync | NvOp::BarrierSync { .. })).then_some(*last)
}

/// The operations before which a fence for this one may be placed, the outermost first.
fn positions(kernel: &Kernel, around: &Around, at: OpId, found: &Found) -> Vec<OpId> {
    let first = joined_before(kernel, around, at).unwrap_or(at);
    let mut positions = if first == at { vec![at] } else { vec![at, first] };
    let mut inner = at;
    // Each round goes one level outwards. A branch stops it unless all arms need the fence: hoisting out of an arm
    // would make every other execution pay for it. A loop may be left in any case: at worst the fence is executed for
    // zero iterations.
    while let Some(outer) = around.outside(inner) {
        let op = kernel.op(outer);
        let allowed =
            op.kind.is_loop() || op.kind == OpKind::If && op.regions.iter().all(|arm| needs(kernel, *arm, found));
        if !allowed {
            break;
        }
        positions.push(outer);
        inner = outer;
    }
    positions.reverse();
    positions
}

/// Adds the missing fences of a kernel to the overlay.
pub(super) fn fences(asked: &Asked<'_>, overlay: &mut Overlay) {
    let kernel = asked.kernel;
    let around = Around::new(kernel);
    let mut role_of: SortedMap<OpId, usize> = SortedMap::new();
    // Where no fence helps. It is reported with all others that are left.
    let mut given_up: SortedSet<OpId> = SortedSet::new();
    // Every round removes at least one pair, or gives up an operation, so that their numbers limit the number of rounds.
    for _ in 0..kernel.ops.len().saturating_mul(4) {
        let found = asked.find(overlay);
        // The first one in the order of the program: a fence that is placed for it may cover later ones, which are not
        // found any more then.
        let open = |h: &&Hazard| !h.pairs.is_empty() && !given_up.contains(&h.at);
        let Some(hazard) = found.hazards.iter().find(open).cloned() else { break };
        let before = overlay.clone();
        // A wider fence that exists already is preferred to a second one.
        let at = hazard.fence().and_then(|fence| {
            widen(asked, overlay, &hazard, fence, &role_of)
                .or_else(|| insert(asked, &around, overlay, &hazard, fence, &found))
        });
        match at {
            Some(at) => drop(role_of.insert(at, hazard.role)),
            None => {
                // No position covers the pair. The overlay is left as it was, and the next round looks at the others:
                // a fence for them may be possible, and what needs none must not be reported.
                *overlay = before;
                given_up.insert(hazard.at);
            }
        }
    }
    thin(asked, overlay, &around);
}

fn covered(asked: &Asked<'_>, overlay: &Overlay, at: OpId) -> bool {
    asked.find(overlay).at(at).is_none_or(|h| h.pairs.is_empty())
}

/// Widens an already placed fence if that suffices.
fn widen(
    asked: &Asked<'_>,
    overlay: &mut Overlay,
    hazard: &Hazard,
    fence: (Scope, FenceSpace),
    roles: &SortedMap<OpId, usize>,
) -> Option<OpId> {
    for (at, (scope, space)) in overlay.fences.clone() {
        let wider = (scope.max(fence.0), join(space, fence.1));
        // A fence orders accesses of the threads that execute it, so only one of the same role can help. One that is
        // wide enough already does not cover the pair, or there would be no hazard.
        if wider == (scope, space) || roles.get(&at) != Some(&hazard.role) {
            continue;
        }
        overlay.fences.insert(at, wider);
        // Whether other pairs need more is found in the next round.
        if covered(asked, overlay, hazard.at) {
            return Some(at);
        }
        overlay.fences.insert(at, (scope, space));
    }
    None
}

fn insert(
    asked: &Asked<'_>,
    around: &Around,
    overlay: &mut Overlay,
    hazard: &Hazard,
    fence: (Scope, FenceSpace),
    found: &Found,
) -> Option<OpId> {
    // From the outside inwards: a fence before a loop is executed once. Whether it still covers the hazard, which it does not if the loop
    // itself makes the access that needs it, is asked of the analysis and not guessed.
    // Example: a store to shared memory, then a loop with a bulk store from there. Before the loop, the fence covers
    // all iterations and is executed once. If the loop stores to the region again, the pair of that store with the bulk
    // store of the next iteration stays uncovered there, and the position inside of the loop is tried next.
    for at in positions(asked.kernel, around, hazard.at, found) {
        let known = overlay.fences.get(&at).copied();
        let wider = known.map_or(fence, |(scope, space)| (scope.max(fence.0), join(space, fence.1)));
        overlay.fences.insert(at, wider);
        if covered(asked, overlay, hazard.at) {
            return Some(at);
        }
        match known {
            Some(known) => overlay.fences.insert(at, known),
            None => overlay.fences.remove(&at),
        };
    }
    None
}

/// Removes placed fences that later ones have made redundant, and narrows the others where possible.
fn thin(asked: &Asked<'_>, overlay: &mut Overlay, around: &Around) {
    // The measure of each attempt is the set of pairs that no fence covers (normally empty): a change is right if it stays the same. From
    // the last fence to the first one, since an earlier fence tends to cover what a later one was placed for.
    let pairs = asked.find(overlay).pairs();
    let placed: Vec<OpId> = around.order.iter().rev().copied().filter(|id| overlay.fences.contains_key(id)).collect();
    for at in placed {
        let Some(fence) = overlay.fences.remove(&at) else { continue };
        // Nothing is uncovered without it: it stays removed. Each fence is looked at once, so this ends; in the end,
        // none can be removed alone.
        if asked.find(overlay).pairs() == pairs {
            continue;
        }
        let scopes = [Scope::Cta, fence.0];
        let spaces = [FenceSpace::Shared, FenceSpace::Global, fence.1];
        let narrower = scopes.iter().flat_map(|scope| spaces.iter().map(move |space| (*scope, *space)));
        // From the narrowest one on. The last one tried is the fence as it was, which covers what it covered, so that
        // one of them always does.
        for tried in narrower {
            overlay.fences.insert(at, tried);
            if asked.find(overlay).pairs() == pairs {
                break;
            }
        }
    }
}

/// The fences of the kernel that can all be removed together without a new hazard.
pub(super) fn unneeded(asked: &Asked<'_>, overlay: &Overlay) -> Vec<OpId> {
    let pairs = asked.find(overlay).pairs();
    let mut trial = overlay.clone();
    let mut unneeded = Vec::new();
    for at in Around::new(asked.kernel).order.into_iter().rev() {
        if fence_of(&asked.kernel.op(at).kind).is_none() {
            continue;
        }
        // Together, not each for itself: of two equal fences in a row each is redundant if the other stays, but not
        // both.
        trial.gone.insert(at);
        if asked.find(&trial).pairs() == pairs {
            unneeded.push(at);
        } else {
            trial.gone.remove(&at);
        }
    }
    unneeded.reverse();
    unneeded
}
