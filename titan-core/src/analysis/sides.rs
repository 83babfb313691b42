//! The sides of a ring: the roles that fill it, and those that read it.
//!
//! Deliberately absent: what the sides do, and whether that is right (`crate::verify`).

use crate::collections::SortedSet;
use crate::ir::{Kernel, OpKind, Pipe, TtgOp};

/// Whether a ring is between roles: one role fills it and others read it.
pub(crate) fn joins_roles(kernel: &Kernel, pipe: Pipe) -> bool {
    let [fill, read] = of(kernel, pipe);
    !read.is_empty() && fill != read
}

/// The roles that fill a ring, and those that read it.
pub(crate) fn of(kernel: &Kernel, pipe: Pipe) -> [SortedSet<usize>; 2] {
    let mut found = [SortedSet::new(), SortedSet::new()];
    kernel.walk(&mut |_, op| {
        if op.kind != OpKind::Ttg(TtgOp::Roles) {
            return;
        }
        for (role, region) in op.regions.iter().enumerate() {
            kernel.walk_block(*region, &mut |_, op| {
                if let OpKind::Ttg(TtgOp::Acquire(p) | TtgOp::Ready(p)) = op.kind
                    && p == pipe
                {
                    let reads = matches!(op.kind, OpKind::Ttg(TtgOp::Ready(_)));
                    found[usize::from(reads)].insert(role);
                }
            });
        }
    });
    found
}
