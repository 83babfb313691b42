//! Completion: the groups of asynchronous operations, and how many of them each wait lets run on.
//!
//! A laid-out kernel says only *what* is waited for. It starts copies, MMAs of warpgroups and bulk stores, and names at later operations
//! what must be complete there:
//!
//! | operation | what must be complete |
//! |---|---|
//! | `ttg.stage.wait_ready %claim` | the copies that fill the stage |
//! | `ttg.compute.wait %mma` | the MMA, whose result becomes a tile |
//! | `ttg.stage.consumed %permission` | the MMAs that read the stage |
//! | `ttg.local.settle %buffer, ..` | the copies to the buffers, and the bulk stores from them |
//! | `ttg.local.settle` | all bulk stores |
//! | what writes registers (operand A) or a buffer that an MMA reads | the MMA |
//!
//! The hardware knows neither stages nor buffers. A thread's operations of one class (`cp.async`, `wgmma`, bulk stores) belong to groups,
//! which complete in the order in which they are committed, and a wait states how many of the youngest groups may still be in flight. So
//! this pass commits groups, and gives each wait the number of groups that are certainly younger than the one it needs: the minimum
//! over the paths to the wait. Groups that are not known to be younger are waited for too: such a wait may be slow, but is not wrong.
//! The pass runs after all passes that choose the order of operations, which therefore may move operations and waits freely.
//!
//! # Example
//!
//! A role of a matrix product on Hopper, which releases each stage one iteration late, and what becomes of it:
//!
//! ```text
//! for .. carry (%acc0, %before0) {                     for .. carry (%acc0, %before0) {
//!     ..                                                   ..
//!     ttg.nv.wgmma.fence                                   ttg.nv.wgmma.fence
//!     %acc = ttg.nv.wgmma.mma_async %a, %b, %acc0          %acc = ttg.nv.wgmma.mma_async %a, %b, %acc0
//!                                                          ttg.nv.wgmma.commit_group
//!                                                          ttg.nv.wgmma.wait_group {n = 1}
//!     %c = ttg.stage.consumed %before0                     %c = ttg.stage.consumed %before0
//!     ttg.stage.release %c                                 ttg.stage.release %c
//!     continue %acc, %now                                  continue %acc, %now
//! }                                                    }
//! %tile = ttg.compute.wait %acc1                       %tile = ttg.nv.wgmma.wait_group %acc1 {n = 0}
//! ```
//!
//! At the head of the loop, the MMA that reads the stage `%before0` is the youngest group: 0 groups are younger than it. After the commit
//! it is 1 group, `%acc`'s. So the wait before `consumed` may leave 1 group in flight.
//!
//! # Why it is right, and terminates
//!
//! The state at a point is, for each thing that may be in flight, a lower bound on the number of younger groups (`state`). A commit adds
//! one to all bounds of its class, which is exact on every path through it. Where paths join, the bound is the lower one, and a thing that
//! is in flight on one path only counts as in flight. Both directions are safe, since `wait n` completes every group that has at least `n`
//! younger ones. The state at the head of a loop is found by iteration: bounds only fall and are at least 0, and things are values of the
//! kernel, so that their number is finite; hence the iteration ends. Loops of a constant, small length are walked iteration by iteration
//! instead, since the bounds in their first iterations would otherwise count for all.
//!
//! A branch that only fills stages commits its group after the branch, on both paths: an iteration without copies commits an empty group.
//! So the counts are the same up to the last iteration, although the last ones copy nothing.
//!
//! That an iteration skips a fill, while a later one of the same ring does not, is not counted right in this way; the verifier of barrier
//! programs then refuses the wait, which it judges by all paths.
//!
//! [`check`] tests the result by execution with concrete numbers. It shares nothing with this pass but what rings are between roles, and of
//! which buffer a tile is a part.
//!
//! Deliberately absent: rings between roles, whose copies arrive at mbarriers ([`crate::expand`]); counters of machines on which
//! single instructions and not groups are counted, which can only be assigned after the selection of instructions.

mod check;
mod insert;
mod registers;
mod state;
mod walk;

pub use check::{Early, check};

use crate::analysis::sides;
use crate::collections::SortedSet;
use crate::ir::{Kernel, OpId};

/// Commits the groups of a laid-out kernel, and replaces what it waits for by counts. `copy_async` says whether the target copies
/// asynchronously to the stages of rings (`cp.async`).
#[must_use]
pub fn complete(kernel: &Kernel, copy_async: bool) -> Kernel {
    let found = walk::find(kernel, &|pipe| copy_async && !sides::joins_roles(kernel, pipe));
    insert::insert(kernel, &found)
}

/// The operations of a laid-out kernel that wait for MMAs because they write registers which these read.
pub(crate) fn waits_for_registers(kernel: &Kernel) -> SortedSet<OpId> {
    walk::find(kernel, &|_| false).for_registers
}
