//! Loops whose body is one step of a matrix product: `acc = mma(load a[.., k], load b[k, ..], acc)`.
//!
//! Where the tensors are such that the launch does not write, such a loop is one product over the whole range of k, without
//! copying tiles; at the edges of the tensors, of what is inside of them. The loop itself is kept for where this is not so.

use super::{FactStep, MemoryStep, Restride, ScalarSlot, Slot, Step, TileSlot, TileStep, ViewSlot};
use titan_core::ir::Unit;

/// A loop that is a matrix product.
#[derive(Clone, Debug)]
pub(crate) struct ProductLoop {
    pub(crate) a: Factor,
    pub(crate) b: Factor,
    /// The accumulator: the loop's carried value.
    pub(crate) acc: TileSlot,
    /// m, n and k of one step.
    pub(crate) step: [i32; 3],
    /// The rows of `a` are the program's own along the grid's first axis, and `b` is the same for programs next to each
    /// other there: their products can be one.
    pub(crate) by_program: bool,
}

/// An operand of the product.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) view: ViewSlot,
    /// Tile coordinates; the one of `k_axis` is the loop's index.
    pub(crate) at: [ScalarSlot; 2],
    /// Extents of the loaded tile.
    pub(crate) shape: [i32; 2],
    /// The axis of the tensor along which the loop goes.
    pub(crate) k_axis: usize,
    /// What the tile has outside of the tensor.
    pub(crate) pad: ScalarSlot,
    /// The product takes the transposed tile.
    pub(crate) is_transposed: bool,
}

/// The product that a loop is, if its body is nothing else.
pub(super) fn recognize(body: &[super::Node], index: ScalarSlot, carried: &[(Slot, Slot)], tiles: &[super::TileInfo]) -> Option<ProductLoop> {
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
        } else if !matches!(node.step, Step::Memory(MemoryStep::Load { .. }) | Step::Tile(TileStep::Restride { .. })) {
            return None;
        }
    }
    let (to, a, b) = mma?;
    if result != Some((Slot::Tile(to), Slot::Tile(*acc))) {
        return None;
    }
    let (a, b) = (factor(body, index, a, 1, tiles)?, factor(body, index, b, 0, tiles)?);
    let shape = tiles[to as usize].shape;
    let k = a.shape[a.k_axis];
    // Both factors go along their axis of the product, and the accumulator is used by nothing else.
    let uses = body.iter().flat_map(|n| &n.uses).filter(|t| **t == *acc).count();
    let step = [shape[2], shape[3], k];
    (uses == 1 && b.shape[b.k_axis] == k).then_some(ProductLoop { a, b, acc: *acc, step, by_program: false })
}

/// The load behind an operand of the product whose axis `k` of two is the one that is summed over.
fn factor(body: &[super::Node], index: ScalarSlot, tile: TileSlot, k: usize, tiles: &[super::TileInfo]) -> Option<Factor> {
    let def = |tile: TileSlot| body.iter().find(|n| n.defs.contains(&tile));
    let mut node = def(tile)?;
    let mut k_axis = k;
    if let Step::Tile(TileStep::Restride { from, how: Restride::Permute([0, 1, 3, 2]), .. }) = &node.step {
        k_axis = 1 - k;
        node = def(*from)?;
    }
    let Step::Memory(MemoryStep::Load { to, from, pad }) = &node.step else { return None };
    let info = &tiles[*to as usize];
    let at: [ScalarSlot; 2] = from.at.as_slice().try_into().ok()?;
    let only_k = at[k_axis] == index && at[1 - k_axis] != index;
    let shape = [info.shape[2], info.shape[3]];
    (only_k && from.unit == Unit::Tile && info.rank == 2).then_some(Factor { view: from.view, at, shape, k_axis, pad: *pad, is_transposed: k_axis != k })
}

/// Finds the loops in the outermost block whose factors go with the program's index along the first axis of the grid.
pub(super) fn mark_by_program(plan: &mut super::Plan) {
    let is_x = |node: &super::Node| {
        if let Step::Fact(FactStep::ProgramId { to, axis: 0 }) = node.step { Some(to) } else { None }
    };
    let body = &mut plan.blocks[plan.body];
    let x: Vec<ScalarSlot> = body.iter().filter_map(is_x).collect();
    for node in body {
        if let Step::For(f) = &mut node.step
            && let Some(product) = &mut f.product
        {
            let other = |factor: &Factor| x.contains(&factor.at[1 - factor.k_axis]);
            product.by_program = other(&product.a) && !other(&product.b);
        }
    }
}
