//! The commits and waits of bulk stores, before their regions are written again.

use super::place::Around;
use crate::analysis::proxy::{Overlay, find};
use crate::ir::{Effect, Kernel, NvOp, OpId, OpKind};

/// Adds the missing commits and waits to the overlay.
pub(super) fn handshake(kernel: &Kernel, overlay: &mut Overlay) {
    let around = Around::new(kernel);
    // Every round adds a commit, or lowers the count of a wait.
    for _ in 0..kernel.ops.len().saturating_mul(4) {
        let found = find(kernel, overlay);
        let Some((at, reuses)) = found.reuses.first() else { return };
        let open = reuses.iter().find(|r| r.younger.is_none()).map(|r| last_of_group(kernel, &around, r.store));
        if let Some(store) = open.filter(|s| !overlay.commits.contains(s)) {
            overlay.commits.insert(store);
            continue;
        }
        let n = reuses.iter().filter_map(|r| r.younger).min().unwrap_or(0);
        let known = overlay.waits.get(at).copied();
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
    let rest = ops.iter().skip_while(|id| **id != store);
    let together = rest.take_while(|id| {
        let kind = &kernel.op(**id).kind;
        kind.effect() == Effect::Pure || matches!(kind, OpKind::Nv(NvOp::BulkStore { .. }))
    });
    let is_store = |id: &&OpId| matches!(kernel.op(**id).kind, OpKind::Nv(NvOp::BulkStore { .. }));
    together.filter(is_store).last().copied().unwrap_or(store)
}
