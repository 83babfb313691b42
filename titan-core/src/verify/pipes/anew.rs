//! Loops in which a ring restarts: it is empty at the start of every iteration.
//!
//! ```text
//! for out in work {                 the ring restarts: every copy for the previous tile was read
//!     for t in 0..steps { .. }      it does not restart: copies run ahead of the iteration that reads them
//! }
//! ```
//!
//! Between such iterations its shared memory may be reused. With roles, all of them would have to be at the loop at the same time,
//! so this is computed only for kernels without roles.

use crate::collections::SortedSet;
use crate::ir::{Block, Kernel, OpId, Pipe, Ty};

/// For each ring: the number of loops, from the outermost inwards, that enclose all its operations, the last of which is one in which
/// it restarts; 0 if there is none. `occupied`: the rings that co-execution found non-empty at the heads of loops.
pub(in crate::verify) fn loops(kernel: &Kernel, occupied: &SortedSet<(OpId, Pipe)>) -> Vec<usize> {
    let of = |i| {
        let around = if kernel.roles.is_empty() { around(kernel, Pipe::new(i)) } else { Vec::new() };
        (0..around.len()).rev().find(|n| !occupied.contains(&(around[*n], Pipe::new(i)))).map_or(0, |n| n + 1)
    };
    (0..kernel.pipes.len()).map(of).collect()
}

/// The loops that enclose all operations on a ring, from the outermost inwards.
pub(in crate::verify) fn around(kernel: &Kernel, pipe: Pipe) -> Vec<OpId> {
    let mut around = None;
    surround(kernel, kernel.body, pipe, &mut Vec::new(), &mut around);
    around.unwrap_or_default()
}

/// Finds the loops around all operations on a ring. MMAs in flight and accumulators may hold stages of any ring.
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
