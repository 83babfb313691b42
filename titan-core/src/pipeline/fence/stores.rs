//! The commits and waits of bulk stores, before their regions are written again.

use super::asked::Asked;
use super::place::Around;
use crate::analysis::proxy::Overlay;
use crate::ir::{Effect, Kernel, NvOp, OpId, OpKind};

/// Adds the missing commits and waits to the overlay.
pub(super) fn handshake(asked: &Asked<'_>, overlay: &mut Overlay) {
    let kernel = asked.kernel;
    let around = Around::new(kernel);
    // Every round adds a commit, or lowers the count of a wait.
    for _ in 0..kernel.ops.len().saturating_mul(4) {
        let found = asked.find(overlay);
        // The first point at which a bulk store may still read what is written. A store in the open group is never
        // complete, whatever is waited for, so its group is committed first.
        let Some((at, reuses)) = found.reuses.first() else { return };
        let open = reuses.iter().find(|r| r.younger.is_none()).map(|r| last_of_group(kernel, &around, r.store));
        if let Some(store) = open.filter(|s| !overlay.commits.contains(s)) {
            overlay.commits.insert(store);
            continue;
        }
        // Groups complete in order: if at least n younger ones were committed after a store, a wait that leaves n
        // covers it (theorem 9 of docs/protocol.md). The store with the fewest younger groups decides.
        let n = reuses.iter().filter_map(|r| r.younger).min().unwrap_or(0);
        let known = overlay.waits.get(at).copied();
        // A wait that is there and was not enough leaves fewer in the next round. So its count falls until 0, and a
        // wait for all groups that still does not suffice is left to the verifier (rule 66).
        let n = known.map_or(n, |k| n.min(k.saturating_sub(1)));
        if known == Some(n) {
            return;
        }
        overlay.waits.insert(*at, n);
    }
}

/// The last of consecutive bulk stores.
fn last_of_group(kernel: &Kernel, around: &Around, store: OpId) -> OpId {
    let Some(block) = around.block.get(&store) else { return store };
    let ops = &kernel.block(*block).ops;
    // Bulk stores that follow each other get one group, as one wait will be for all of them.
    let rest = ops.iter().skip_while(|id| **id != store);
    let together = rest.take_while(|id| {
        let kind = &kernel.op(**id).kind;
        kind.effect() == Effect::Pure || matches!(kind, OpKind::Nv(NvOp::BulkStore { .. }))
    });
    let is_store = |id: &&OpId| matches!(kernel.op(**id).kind, OpKind::Nv(NvOp::BulkStore { .. }));
    together.filter(is_store).last().copied().unwrap_or(store)
}
