//! Outputs of which the iterations of a loop over tiles write different elements.
//!
//! A bulk store writes its output until it has been waited for, which may be in a later iteration, or when the launch ends. Two stores in
//! flight to the same elements would be a race, so that stores of different iterations must be to different tiles:
//!
//! ```text
//! for %i = 0 to %n step 1 distributed {          every program takes some of the numbers 0 .. n, each at most once
//!     %m, %k = unflatten_grouped %i ..           so tile (m, k) is another one in each iteration
//!     ttg.nv.bulk_group.wait {n = 0, read = true}
//!     ..
//!     ttg.nv.cp_async_bulk_tensor.store          of tile (m, k) of %c
//! }
//! ```
//!
//! That the elements differ is the proof of the output rule ([`crate::analysis::partition`]), which distinguishes the numbers of the
//! iterations. An access of the loop is then one of the current iteration, or of another one, if the loop is executed once and nothing else
//! accesses the output:
//!
//! * the loop is not inside of another one, and it is the only one of its threads in which the output is accessed;
//! * every access to the output is a bulk store, of a tile, in such a loop.
//!
//! Deliberately absent: outputs that are also accessed otherwise, for which different iterations are taken to access the same elements.

use super::regions::output;
use super::role_blocks;
use super::state::Bytes;
use crate::analysis::turns::Turns;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, ForKind, Kernel, NvOp, Op, OpId, OpKind, TtgOp, Ty};

/// For each loop over tiles, the outputs that its iterations write in bulk, each other elements.
pub(super) fn divided(kernel: &Kernel) -> SortedMap<OpId, SortedSet<usize>> {
    let mut found = Found::default();
    let roles = role_blocks(kernel);
    let all = if roles.is_empty() { vec![kernel.body] } else { roles.into_iter().map(|(_, block)| block).collect() };
    for (threads, block) in all.into_iter().enumerate() {
        found.in_loops(kernel, threads, block);
    }
    if found.stores.is_empty() {
        return SortedMap::new();
    }
    kernel.walk(&mut |id, op| found.look(kernel, id, op));
    let turns = Turns::new(kernel);
    let mut divided: SortedMap<OpId, SortedSet<usize>> = SortedMap::new();
    let mut outputs: SortedMap<usize, Vec<Store>> = SortedMap::new();
    for store in found.stores.values() {
        outputs.entry(store.output).or_default().push(*store);
    }
    for (output, stores) in outputs {
        let one_loop = |a: &Store| stores.iter().all(|b| a.threads != b.threads || a.looped == b.looped);
        let known =
            |s: &Store| turns.knows(s.op) && kernel.block(s.body).args.first().is_some_and(|i| turns.is_iteration(*i));
        if !found.otherwise.contains(&output) && stores.iter().all(|s| one_loop(s) && known(s)) && turns.divides(output)
        {
            for store in stores {
                divided.entry(store.looped).or_default().insert(output);
            }
        }
    }
    divided
}

/// A bulk store of a tile in a loop over tiles.
#[derive(Clone, Copy)]
struct Store {
    op: OpId,
    output: usize,
    looped: OpId,
    /// The body of the loop.
    body: Block,
    /// The role that executes the loop, or 0.
    threads: usize,
}

#[derive(Default)]
struct Found {
    stores: SortedMap<OpId, Store>,
    /// The outputs that are also accessed otherwise.
    otherwise: SortedSet<usize>,
}

impl Found {
    /// Finds the stores in the loops over tiles of a role or of the program.
    fn in_loops(&mut self, kernel: &Kernel, threads: usize, block: Block) {
        for looped in &kernel.block(block).ops {
            let op = kernel.op(*looped);
            let (OpKind::For(ForKind::Distributed), [body]) = (&op.kind, &op.regions[..]) else { continue };
            kernel.walk_block(*body, &mut |id, op| {
                if let Some(output) = stored(kernel, op) {
                    self.stores.insert(id, Store { op: id, output, looped: *looped, body: *body, threads });
                }
            });
        }
    }

    /// Looks for other accesses to outputs.
    fn look(&mut self, kernel: &Kernel, id: OpId, op: &Op) {
        // Of the first operand, these name a part or an extent; of offsets, the second operand, they read elements.
        let names = matches!(
            op.kind,
            OpKind::Dim(_)
                | OpKind::Index(_)
                | OpKind::Slice(_)
                | OpKind::Segment
                | OpKind::RaggedCount { .. }
                | OpKind::RaggedTile { .. }
                | OpKind::Ttg(TtgOp::Source(..))
        );
        let accessed = if names { op.args.get(1..).unwrap_or_default() } else { &op.args[..] };
        // Any other access makes the output one whose iterations are not comparable by tiles alone.
        if !self.stores.contains_key(&id) {
            self.otherwise.extend(accessed.iter().filter_map(|arg| match output(kernel, *arg)? {
                Bytes::Tensor(output, _) | Bytes::OtherTiles(output) => Some(output),
                Bytes::Shared { .. } => None,
            }));
        }
    }
}

/// The output of which an operation stores a tile in bulk.
fn stored(kernel: &Kernel, op: &Op) -> Option<usize> {
    let (OpKind::Nv(NvOp::BulkStore { .. }), [to, _]) = (&op.kind, &op.args[..]) else { return None };
    match output(kernel, *to).filter(|_| matches!(kernel.ty(*to), Ty::Source(..)))? {
        Bytes::Tensor(output, _) | Bytes::OtherTiles(output) => Some(output),
        Bytes::Shared { .. } => None,
    }
}
