//! When a tile is dead: after the last step of its own block that uses it, directly or in a block inside.

use super::{BlockId, Node, Plan, Slot, Step, TileSlot};

/// Fills in `kills` of every step.
pub(super) fn mark_kills(plan: &mut Plan, args: &[Vec<TileSlot>]) {
    let (blocks, tiles) = (&mut plan.blocks, plan.tiles.len());
    for block in (0..blocks.len()).filter(|b| *b != plan.prologue) {
        let mut local = vec![false; tiles];
        let defs = blocks[block].iter().flat_map(|n| &n.defs).chain(&args[block]);
        defs.for_each(|t| local[*t as usize] = true);
        for node in (0..blocks[block].len()).rev() {
            let mut mentioned = blocks[block][node].defs.clone();
            mentions(blocks, &blocks[block][node], &mut mentioned);
            let mut kills = Vec::new();
            for tile in mentioned {
                // The first mention from the end is the last one.
                if std::mem::replace(&mut local[tile as usize], false) {
                    kills.push(tile);
                }
            }
            // What a terminator gives a new value is not dead.
            if let Step::Yield(moves) | Step::Break(_, moves) | Step::Continue(_, moves) = &blocks[block][node].step {
                kills.retain(|tile| moves.iter().all(|(_, to)| *to != Slot::Tile(*tile)));
            }
            blocks[block][node].kills = kills;
        }
    }
}

fn mentions(blocks: &[Vec<Node>], node: &Node, found: &mut Vec<TileSlot>) {
    found.extend(&node.uses);
    for inner in inner_blocks(&node.step) {
        blocks[inner].iter().for_each(|n| mentions(blocks, n, found));
    }
}

/// The blocks inside of a step.
pub(super) fn inner_blocks(step: &Step) -> Vec<BlockId> {
    match step {
        Step::For(f) => vec![f.body],
        Step::Loop { body, .. } => vec![*body],
        Step::If { then, other, .. } => vec![*then, *other],
        Step::ReduceWith { f, .. } | Step::ScanWith { f, .. } => vec![f.block],
        Step::ProgramId { .. } | Step::NumPrograms { .. } | Step::Dim { .. } | Step::Present { .. } | Step::Scalar { .. }
        | Step::Unflatten { .. } | Step::Iota { .. } | Step::Splat { .. } | Step::Elements(_) | Step::Extract { .. } | Step::Restride { .. }
        | Step::Interleave { .. } | Step::Split { .. } | Step::Reduce { .. } | Step::ArgReduce { .. }
        | Step::Scan { .. } | Step::Mma { .. } | Step::Index { .. } | Step::Slice { .. } | Step::Segment { .. }
        | Step::Load { .. } | Step::Store { .. } | Step::Get { .. } | Step::Set { .. } | Step::GatherRows { .. }
        | Step::ScatterRows { .. } | Step::Gather { .. } | Step::Scatter { .. } | Step::Atomic { .. }
        | Step::AtomicTile { .. } | Step::RaggedCount { .. } | Step::RaggedTile { .. } | Step::Print { .. }
        | Step::Assert { .. } | Step::Yield(_) | Step::Break(..) | Step::Continue(..) | Step::Return => Vec::new(),
    }
}
