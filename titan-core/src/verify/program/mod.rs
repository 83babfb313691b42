//! Rules of barrier programs that were lowered from rings: the barriers must implement the protocol of the rings.
//!
//! Such a program states, next to its waits and arrivals, their effect on a ring (`ttg.claim.*`). It is correct if
//!
//! 64. the claims obey the rules of rings: all roles terminate, a slot is accessed only by the role that holds it, and
//!     slots and rounds are those of the ring's clock (`crate::verify::coexecution::rings::claims`);
//! 65. the operations at each claim implement it, with barriers, counters, counts and parities of this ring alone
//!     (`realize`, `apart`): then a wait passes exactly when the claim holds (`docs/protocol.md`);
//! 66. the threads of a role, or of a kernel without roles, are ordered by barriers between its warps, and the copies that they
//!     access have been waited for ([`crate::synchronize`]);
//! 67. tiles are laid out over all the warps that execute the operations that use or define them, and over no others;
//! 68. accesses through the async proxy are fenced from earlier generic accesses, as in rule 61;
//! 69. results of MMAs in flight are used once, after a wait that completes them (`products`);
//! 70. bulk copies of tiles are those that tensor maps can describe ([`super::barriers::boxes`]);
//! 71. MMAs of warpgroups exist (`group_mma`); numbers of threads and registers are valid, as in rule 51;
//! 72. the programs of a cluster execute the same claims, and wait for each other before the roles and after them (`cluster`); all of
//!     their roles agree about the tile of each program (`tiles`);
//! 78. no two programs write the same elements of an output (`outputs`).
//!
//! An error here is a defect of the lowering, or of a program that was written by hand: the rings were verified before.
//! Deliberately absent: layouts, which are covered by the checks of lane IR ([`crate::lane::hazard`]); programs without claims, whose
//! protocol is inferred (`crate::verify::coexecution::barriers`).

mod apart;
mod cluster;
mod group_mma;
mod outputs;
mod parity;
mod products;
mod realize;
mod tiles;

use super::Error;
use super::barriers::{boxes, numbers, proxies, strided};
use super::coexecution;
use super::coexecution::rings::find::Claims;
use super::pipes::shape;
use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::{Bit, Kernel, Loc, OpId, OpKind, TtgOp};
use crate::synchronize;

/// Checks rules 64 to 72, and 78.
///
/// # Errors
/// The violations in the first group of rules that has any.
pub(super) fn check(kernel: &Kernel) -> Result<(), Vec<Error>> {
    let mut rings = Vec::new();
    kernel.walk(&mut |_, op| {
        if matches!(&op.kind, OpKind::Ttg(ttg) if ttg.is_of_rings()) {
            rings.push(wrong(
                op.loc,
                "a ring operation in a kernel that is laid out: it must be expanded to barriers first",
            ));
        }
    });
    super::reject_if_any(rings)?;
    let mut claims = Claims::of(kernel);
    let mut errors = realize::check(kernel, &mut claims);
    shape::ends(kernel, &mut errors);
    errors.extend(warps(kernel));
    errors.extend(products::check(kernel));
    errors.extend(boxes::check(kernel));
    errors.extend(strided::check(kernel));
    errors.extend(group_mma::check(kernel));
    errors.extend(outputs::check(kernel));
    numbers::participants(kernel, &mut errors);
    super::reject_if_any(errors)?;
    coexecution::check_claims(kernel, claims)?;
    let error = |id: OpId, title: &str| Error::new(Code::InFlight, kernel.op(id).loc, title);
    let (unordered, in_flight) = synchronize::unordered(kernel);
    let mut errors: Vec<Error> = unordered
        .into_iter()
        .map(|id| error(id, "threads of one role may access the same memory here without a barrier between them"))
        .collect();
    errors.extend(in_flight.into_iter().map(|id| {
        error(id, "a copy that accesses the same bytes may still be in flight here, or is never waited for")
    }));
    errors.extend(proxies::check(kernel));
    super::reject_if_any(errors)
}

/// Checks rule 67.
fn warps(kernel: &Kernel) -> Vec<Error> {
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

/// An error of these rules.
fn wrong(loc: Loc, title: impl Into<String>) -> Error {
    Error::new(Code::NotShown, loc, title)
}
