//! Loops in which a ring begins anew: it is empty wherever an iteration begins.
//!
//! ```text
//! for out in work {                 the ring begins anew: all that was copied for the tile before was read
//!     for t in 0..steps { .. }      it does not: copies run ahead of the iteration that reads them
//! }
//! ```
//!
//! Between such iterations its memory is free for others. All roles would have to be at the loop at once for that, so it is
//! asked only of kernels without roles.

use crate::ir::{Block, Kernel, OpId, Pipe, Ty};
use std::collections::BTreeSet;

/// Of each ring: how many loops, from the outermost one inwards, stand around everything that is done to it, the last of which
/// it begins anew in; 0 if there is none. `occupied` is what joint runs have found at the heads of loops.
pub(super) fn loops(kernel: &Kernel, occupied: &BTreeSet<(OpId, Pipe)>) -> Vec<usize> {
    let of = |i| {
        let mut around = None;
        if kernel.roles.is_empty() {
            surround(kernel, kernel.body, Pipe::new(i), &mut Vec::new(), &mut around);
        }
        let around = around.unwrap_or_default();
        (0..around.len()).rev().find(|n| !occupied.contains(&(around[*n], Pipe::new(i)))).map_or(0, |n| n + 1)
    };
    (0..kernel.pipes.len()).map(of).collect()
}

/// Finds the loops around all operations that concern a ring. Products in flight and accumulators may hold stages of any.
fn surround(kernel: &Kernel, block: Block, pipe: Pipe, open: &mut Vec<OpId>, found: &mut Option<Vec<OpId>>) {
    for id in &kernel.block(block).ops {
        let op = kernel.op(*id);
        let concerns = op.args.iter().chain(&op.results).any(|v| match kernel.ty(*v) {
            Ty::Token(_, of) => of == pipe,
            Ty::Compute(..) | Ty::Acc(..) => true,
            Ty::Scalar(_) | Ty::Tile(..) | Ty::Tensor(..) | Ty::Source(..) | Ty::Smem(..) | Ty::Barrier(_) => false,
        });
        if concerns {
            let common = found.get_or_insert_with(|| open.clone());
            let alike = common.iter().zip(open.iter()).take_while(|(a, b)| a == b).count();
            common.truncate(alike);
        }
        if op.kind.is_loop() {
            open.push(*id);
        }
        op.regions.iter().for_each(|region| surround(kernel, *region, pipe, open, found));
        if op.kind.is_loop() {
            open.pop();
        }
    }
}
