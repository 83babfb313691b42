//! Rule 67: tiles are laid out over all the warps that execute the operations that use or define them, and over no others.
//!
//! Deliberately absent: which elements a thread holds ([`crate::lane::hazard`]).

use super::wrong;
use crate::collections::SortedMap;
use crate::ir::{Bit, Kernel, OpId, OpKind, TtgOp};
use crate::verify::Error;

/// Violations of rule 67.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let Some(laid) = kernel.laid_out.as_deref() else { return Vec::new() };
    let mut role_of: SortedMap<OpId, usize> = SortedMap::new();
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            for (role, block) in op.regions.iter().enumerate() {
                kernel.walk_block(*block, &mut |id, _| role_of.extend([(id, role)]));
            }
        }
    });
    let mut errors = Vec::new();
    kernel.walk(&mut |id, op| {
        let role = role_of.get(&id).map(|role| kernel.roles.get(*role).map_or(0, |r| r.warps));
        let (there, who) = (role.unwrap_or(laid.warps), if role.is_some() { "its role" } else { "the program" });
        for value in op.args.iter().chain(&op.results) {
            let Some(layout) = kernel.layout(*value) else { continue };
            let bits = layout.warp_bits();
            let over = 1u32 << bits.len().min(31);
            let holding = bits.iter().rposition(|bit| *bit != Bit::Copy).map_or(1, |last| 2u32 << last.min(30));
            // Each element has a warp that holds it, and no warp has a number beyond the bits.
            if holding > there || over < there || over >= there.saturating_mul(2) {
                let name = kernel.display_name(*value);
                let s = if over == 1 { "" } else { "s" };
                errors.push(wrong(op.loc, format!("`{name}` is laid out over {over} warp{s}, but {who} has {there}")));
            }
        }
    });
    errors
}
