//! Loops whose body is one step of a matrix product: `acc = mma(load a[.., k], load b[k, ..], acc)`, or the same of stages.
//!
//! If the launch does not write the tensors, such a loop is one product over the whole range of k, without
//! copying tiles; at the edges of the tensors, over the part inside of them. The loop itself is kept for all other cases.

use super::rings::{RingId, RingStep, Source};
use super::{
    FactStep, MemoryStep, Node, Plan, Restride, ScalarSlot, Slot, Step, TileInfo, TileSlot, TileStep, ViewSlot,
};
use titan_core::ir::{Elem, Unit};

/// A loop that is a matrix product.
#[derive(Clone, Debug)]
pub(crate) struct ProductLoop {
    pub(crate) a: Factor,
    pub(crate) b: Factor,
    /// The accumulator: the value that the loop carries.
    pub(crate) acc: TileSlot,
    /// The extents m, n and k of one step.
    pub(crate) step: [i32; 3],
    /// The element types of the factors.
    pub(crate) elems: [Elem; 2],
    /// The rings of which each iteration reads a stage, each with the number of the reader. Empty if the factors are loaded.
    pub(crate) rings: Vec<(RingId, usize)>,
    /// Whether the rows of `a` follow the program's index along the grid's first axis, and `b` is the same for consecutive programs:
    /// then their products can be computed as one.
    pub(crate) by_program: bool,
}

/// An operand of the product.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) origin: Origin,
    /// The extents of the tile.
    pub(crate) shape: [i32; 2],
    /// The axis of the tensor along which the loop advances.
    pub(crate) k_axis: usize,
    /// Whether the factor is the transposed tile.
    pub(crate) is_transposed: bool,
}

/// The origin of a factor's tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// A tensor at tile coordinates, of which the one along the factor's `k_axis` is the loop's index; and the padding
    /// of tiles that extend beyond the tensor.
    Tensor { view: ViewSlot, at: [ScalarSlot; 2], pad: ScalarSlot },
    /// Stages, one in each iteration. Whether they advance along `k_axis` is checked when they are filled.
    Stage { ring: RingId, field: usize },
}

/// The matrix product that a loop computes, if its body does nothing else. `unit`: the loop's step is 1.
pub(super) fn recognize(
    body: &[Node],
    (index, unit): (ScalarSlot, bool),
    carried: &[(Slot, Slot)],
    tiles: &[TileInfo],
) -> Option<ProductLoop> {
    let [(_, Slot::Tile(acc))] = carried else { return None };
    let mut mma = None;
    let mut result = None;
    for node in body {
        if let Step::Tile(TileStep::Mma { to, a, b, c }) = &node.step
            && mma.is_none()
            && c == acc
        {
            mma = Some((*to, *a, *b));
        } else if let Step::Continue(0, moves) = &node.step {
            result = moves.first().copied();
        } else if !matches!(
            node.step,
            Step::Memory(MemoryStep::Load { .. })
                | Step::Tile(TileStep::Restride { .. })
                | Step::Ring(
                    RingStep::Ready { .. } | RingStep::Wait { .. } | RingStep::View { .. } | RingStep::Release { .. }
                )
        ) {
            return None;
        }
    }
    let (to, a, b) = mma?;
    if result != Some((Slot::Tile(to), Slot::Tile(*acc))) {
        return None;
    }
    let (rings, elems) = (stages(body)?, [a, b].map(|tile| tiles[tile as usize].elem));
    let from = if rings.is_empty() { From::Tensors(index) } else { From::Stages };
    if rings.is_empty() && !unit {
        return None;
    }
    let (a, b) = (factor(body, from, a, 1, tiles)?, factor(body, from, b, 0, tiles)?);
    let shape = tiles[to as usize].shape;
    let k = a.shape[a.k_axis];
    // Both factors advance along their axis k, and nothing else uses the accumulator.
    let uses = body.iter().flat_map(|n| &n.uses).filter(|t| **t == *acc).count();
    let step = [shape[2], shape[3], k];
    (uses == 1 && b.shape[b.k_axis] == k).then_some(ProductLoop {
        a,
        b,
        acc: *acc,
        step,
        elems,
        rings,
        by_program: false,
    })
}

/// The rings of which the body reads one stage completely, or `None` if it does anything else to a ring.
fn stages(body: &[Node]) -> Option<Vec<(RingId, usize)>> {
    let mut open: Vec<(RingId, usize, ScalarSlot, u8)> = Vec::new();
    for node in body {
        let Step::Ring(step) = &node.step else { continue };
        if let RingStep::Ready { ring, reader, to } = step {
            if open.iter().any(|(known, ..)| known == ring) {
                return None;
            }
            open.push((*ring, *reader, *to, 0));
            continue;
        }
        let (found, time) = match step {
            RingStep::Wait { ring, time } | RingStep::View { ring, time, .. } | RingStep::Release { ring, time } => {
                (*ring, *time)
            }
            RingStep::Acquire { .. }
            | RingStep::Produce { .. }
            | RingStep::Fill { .. }
            | RingStep::Ready { .. }
            | RingStep::Poisoned { .. } => return None,
        };
        // State 0: `ready` was executed; 1: waited for; 2: released.
        let state = open.iter_mut().find(|(ring, _, at, _)| *ring == found && *at == time).map(|(.., state)| state)?;
        match (step, *state) {
            (RingStep::Wait { .. }, 0) => *state = 1,
            (RingStep::Release { .. }, 1) => *state = 2,
            (RingStep::View { .. }, 1) => {}
            _ => return None,
        }
    }
    let all = open.iter().all(|(.., state)| *state == 2);
    all.then(|| open.iter().map(|(ring, reader, ..)| (*ring, *reader)).collect())
}

/// The kind of origin in which factors are searched: tensors at the loop's index, or stages.
#[derive(Clone, Copy)]
enum From {
    Tensors(ScalarSlot),
    Stages,
}

/// The load or the stage that defines an operand of the MMA whose axis `k` of two is the one that is summed over.
fn factor(body: &[Node], from: From, tile: TileSlot, k: usize, tiles: &[TileInfo]) -> Option<Factor> {
    let def = |tile: TileSlot| body.iter().find(|n| n.defs.contains(&tile));
    let mut node = def(tile)?;
    let mut k_axis = k;
    if let Step::Tile(TileStep::Restride { from, how: Restride::Permute([0, 1, 3, 2]), .. }) = &node.step {
        k_axis = 1 - k;
        node = def(*from)?;
    }
    let (to, origin) = match (&node.step, from) {
        (Step::Memory(MemoryStep::Load { to, from, pad }), From::Tensors(index)) => {
            let at: [ScalarSlot; 2] = from.at.as_slice().try_into().ok()?;
            let only_k = at[k_axis] == index && at[1 - k_axis] != index;
            let origin = Origin::Tensor { view: from.view, at, pad: *pad };
            (only_k && from.unit == Unit::Tile).then_some((*to, origin))?
        }
        (Step::Ring(RingStep::View { to, ring, field, .. }), From::Stages) => {
            (*to, Origin::Stage { ring: *ring, field: *field })
        }
        (_, From::Tensors(_) | From::Stages) => return None,
    };
    let info = &tiles[to as usize];
    let shape = [info.shape[2], info.shape[3]];
    (info.rank == 2).then_some(Factor { origin, shape, k_axis, is_transposed: k_axis != k })
}

/// Finds the loops in the outermost block and in those of roles whose factors depend on the program's index along the first
/// axis of the grid.
pub(super) fn mark_by_program(plan: &mut Plan) {
    let is_x = |node: &Node| {
        if let Step::Fact(FactStep::ProgramId { to, axis: 0 }) = node.step { Some(to) } else { None }
    };
    let body = &plan.blocks[plan.body];
    let x: Vec<ScalarSlot> = body.iter().filter_map(is_x).collect();
    let role_blocks =
        body.iter().flat_map(|node| if let Step::Roles(blocks) = &node.step { blocks.clone() } else { Vec::new() });
    let blocks: Vec<usize> = role_blocks.chain([plan.body]).collect();
    for block in blocks {
        for node in 0..plan.blocks[block].len() {
            let Step::For(f) = &plan.blocks[block][node].step else { continue };
            let Some(product) = &f.product else { continue };
            let other = |factor: &Factor| coordinate(plan, factor).is_some_and(|at| x.contains(&at));
            let by_program = other(&product.a) && !other(&product.b);
            if let Step::For(f) = &mut plan.blocks[block][node].step
                && let Some(product) = &mut f.product
            {
                product.by_program = by_program;
            }
        }
    }
}

/// The coordinate of a factor's tiles that is the same in all iterations, if it is found.
fn coordinate(plan: &Plan, factor: &Factor) -> Option<ScalarSlot> {
    let at = match factor.origin {
        Origin::Tensor { at, .. } => at,
        Origin::Stage { ring, field } => {
            let copied = |node: &Node| {
                let Step::Ring(RingStep::Produce { ring: to, sources, .. }) = &node.step else { return None };
                match sources.get(field).filter(|_| *to == ring)? {
                    Source::Tile { from, .. } => from.at.as_slice().try_into().ok(),
                    Source::Rows { .. } => None,
                }
            };
            plan.blocks.iter().flatten().find_map(copied)?
        }
    };
    Some(at[1 - factor.k_axis])
}
