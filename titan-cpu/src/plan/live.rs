//! Liveness of tiles: a tile is dead after the last step of its own block that uses it, directly or in a block inside.

use super::{Node, Plan, Slot, Step, TileSlot};

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
                // The steps are visited backwards, so the first use that is found is the last one.
                if std::mem::replace(&mut local[tile as usize], false) {
                    kills.push(tile);
                }
            }
            // A slot to which a terminator assigns a new value is not dead.
            if let Step::Yield(moves) | Step::Break(_, moves) | Step::Continue(_, moves) = &blocks[block][node].step {
                kills.retain(|tile| moves.iter().all(|(_, to)| *to != Slot::Tile(*tile)));
            }
            blocks[block][node].kills = kills;
        }
    }
}

fn mentions(blocks: &[Vec<Node>], node: &Node, found: &mut Vec<TileSlot>) {
    found.extend(&node.uses);
    for inner in node.step.inner_blocks() {
        blocks[inner].iter().for_each(|n| mentions(blocks, n, found));
    }
}
