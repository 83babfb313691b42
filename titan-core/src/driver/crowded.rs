//! What is said about tiles that take more registers than a thread has, and about rows that warpgroups share.
//!
//! What does not fit in registers the assembler keeps in local memory, and it says so in its own output at most. Accumulators that cannot
//! fit are an error ([`super::accumulators`]). Here all tiles count that are live at an operation that nothing is moved across: an MMA, a
//! wait for MMAs, a reduction across lanes. Exempt are tiles that are computed from scalars alone, such as masks, broadcasts, and fragments
//! that are loaded from shared memory: the assembler makes these where they are used. This is an estimate, and the note says so.
//!
//! Worked example, attention with MMAs of warpgroups, where [`OTHER_REGISTERS`] are needed besides tiles, and [`COPYING`] more without roles.
//! The spilled bytes are those that `ptxas` 12.9 reports:
//!
//! | queries × head × keys | tiles | others | registers | spilled |
//! |---|---|---|---|---|
//! | 128 × 256 × 64 | 180: output 128, probabilities 16, scores 32 | 40 | 232 | 0 |
//! | 320 × 64 × 64 | 200: output 80, scores 80, four of rows with 10 each | 40 | 232 | 588 |
//! | 128 × 96 × 64, no roles | 200: output 96, probabilities 32, scores 64 | 48 | 255 | 0 |
//! | 256 × 64 × 128, no roles | 208: output 64, scores 128, four of rows with 4 each | 48 | 255 | 216 |
//!
//! Attention of 192 × 64 × 128 needs 168 + 40 of 232 and spills 348 bytes nevertheless. There, two warpgroups share rows, since 192 rows are
//! not a multiple of two times 64; this has a note of its own.
//!
//! Deliberately absent: scalars and addresses, which are not counted one by one; tiles that the assembler could compute later but does not, so
//! that it may spill where there is no note (128 × 256 × 128, causal: 664 bytes); errors.

use super::log::{Alternative, Log, Why};
use super::registers::Held;
use super::rings::at_line;
use super::schedule::{Roles, Schedule};
use super::table::OTHER_REGISTERS;
use crate::ir::{Kernel, Loc, LocalOp, OpKind};
use crate::lane::GroupMma;
use crate::plan::{Method, Plan};
use std::fmt;

/// The registers for the addresses of copies that the threads of a program without roles start besides their computation.
const COPYING: u32 = 8;

/// What probably makes a program slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Crowded {
    /// The tiles of a thread and the others take more registers than it has.
    Tiles {
        /// The role that it executes, if the kernel declares it.
        role: Option<String>,
        /// The number of registers of a thread.
        each: u32,
        tiles: u32,
        others: u32,
        loc: Loc,
    },
    /// Warpgroups share rows that are reduced.
    Rows {
        groups: u32,
        rows: u32,
        /// The rows of one warpgroup.
        each: u32,
    },
}

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Crowded::Tiles { role, each, tiles, others, loc } => {
                let who = role.as_ref().map_or_else(|| "a thread".to_owned(), |role| format!("a thread of `{role}`"));
                let at = at_line(*loc);
                write!(
                    f,
                    "{who} has {each} registers, and tiles take {tiles} of them, besides about {others} for addresses and counters: probably \
                     some lie in local memory, which is slow, and smaller tiles are faster{at}"
                )
            }
            Crowded::Rows { groups, rows, each } => write!(
                f,
                "{groups} warpgroups share rows of MMAs, and reduce these through shared memory: {rows} rows are not a multiple of {}, \
                 {each} for each warpgroup",
                each * groups
            ),
        }
    }
}

/// Adds to the log what is crowded in a program, of which this is held in registers.
pub(super) fn say(log: &mut Log, (schedule, plan): (&Schedule, &Plan), [laid_out, program]: [&Kernel; 2], held: &Held) {
    for (of, tiles) in held.of_roles.iter().filter_map(|of| Some((of, of.tiles?))) {
        let others = if of.role.is_some() { OTHER_REGISTERS } else { OTHER_REGISTERS + COPYING };
        if tiles.registers.saturating_add(others) > of.each {
            let role = of.role.filter(|_| schedule.roles == Roles::Kept).and_then(|role| program.roles.get(role));
            let (role, loc) = (role.map(|role| role.name.clone()), program.op(tiles.at).loc);
            let crowded = Crowded::Tiles { role, each: of.each, tiles: tiles.registers, others, loc };
            log.add(Alternative::Registers, Why::Crowded(crowded));
        }
    }
    let mut across = false;
    laid_out.walk(&mut |_, op| {
        across |= matches!(op.kind, OpKind::Local(LocalOp::Fold { parts, .. }) if parts > 1);
    });
    for mma in plan.mmas.values().filter(|_| across) {
        let Method::Group(atom) = mma.method else { continue };
        let groups = (1 << mma.acc.warp_bits().len()) / GroupMma::WARPS;
        let ([rows, ..], each) = (mma.extents, atom.m);
        if !rows.is_multiple_of(each * groups) {
            log.add(Alternative::Registers, Why::Crowded(Crowded::Rows { groups, rows, each }));
        }
    }
}
