//! The log of decisions: what was not chosen for a kernel, and why.
//!
//! What is chosen is the [`Schedule`]. Whoever rejects an alternative adds it here with the reason, as data, where it is rejected; nothing is
//! tried again to explain it. [`super::notes`] prints both for the user.
//!
//! ```text
//! pipelined: `at`, `bt` in 3 slots, copied by a role of its own           the schedule
//! no more slots for `at`, `bt`: it needs 262168 bytes of shared memory    the log
//! not persistent: programs differ in how much they do                     the log
//! ```
//!
//! Deliberately absent: the decisions themselves; reasons that depend on the arguments of a launch, which the launch reports.

use super::FALLBACK;
use super::cluster::NoCluster;
use super::crowded::Crowded;
use super::rings::at_line;
use crate::analysis::boxes::NoBox;
use crate::diag::counted;
use crate::ir::Loc;
use crate::pipeline::walk::NoWalk;
use crate::plan::{LowerError, NoGroup};
use std::fmt;

/// What was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alternative {
    /// What only this machine has; the reason is a whole sentence.
    OwnCode,
    /// MMAs of warpgroups for the value with this name.
    Group(String),
    /// A role that copies what loops over `pipelined(..)` load.
    Split,
    /// Own warps for each of the roles that the kernel declares.
    Apart,
    /// A bulk copy of the tile with this name.
    Bulk(String),
    /// So many slots for these tiles.
    Slots(u32, String),
    Ahead(String, Loc),
    /// Loads of the tiles of the next iteration, which wait in registers.
    Fetched,
    Unmasked,
    /// The second of two MMAs of a loop one iteration late.
    Overlap,
    /// Programs numbered in groups of rows.
    Grouped,
    Walk,
    /// Several instances of the role that computes.
    Instances,
    /// The instances that roles declare, on the machine with this name.
    Declared(&'static str),
    Cluster,
    /// Tiles in registers alone, and warpgroups that share no rows.
    Registers,
    /// The modulo scheduler's places for all loops of a kernel: it placed so many of so many.
    Swing {
        placed: usize,
        of: usize,
    },
    /// The schedule that was chosen first, before a simpler one.
    First,
    /// Devices that allow a program less shared memory than so many bytes.
    Devices(u32),
}

/// Why something was not chosen; displayed as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Elements,
    NoMma,
    NoLoop,
    NoBulk,
    NoGroup(NoGroup),
    NoBox(NoBox),
    Read,
    InRegisters,
    /// Copies cannot run ahead of the rest in a role of their own.
    Depends,
    Changing,
    /// Instances hold more stages than rings have slots.
    FewSlots,
    /// No iteration of a loop has masks that others need not have.
    NoMasks,
    /// The tiles of the slots alone exceed the shared memory.
    SlotsAlone,
    /// A multiprocessor runs only so many programs.
    Programs(u32),
    /// Threads write operands that MMAs in flight still read.
    Written,
    /// Roles would have neither bulk copies nor MMAs of warpgroups.
    NoGain,
    Fused,
    /// No tile of a ring can be loaded to registers before it is stored to a stage.
    NotFetched,
    NoWalk(NoWalk),
    /// The two MMAs of a loop overlap, which is combined with nothing else.
    Overlapped,
    /// Without MMAs of warpgroups, the scheduler of the machine alternates between the warps of one instance.
    NoWarpgroups,
    /// The role has so many warps, and not one warpgroup.
    Warps(u32),
    NoCluster(NoCluster),
    Crowded(Crowded),
    NothingFits,
    /// It does not fit, or is not supported, or was not proved.
    Refused(LowerError),
    /// A program takes so many bytes of shared memory.
    Takes(u32),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Elements => "it accesses single elements only: no tile of a tensor is loaded or stored",
            Why::NoMma => "it has no MMA, and of its loops only tiles of MMAs of warpgroups are copied in bulk",
            Why::NoLoop => "it has no loop over `pipelined(..)`, whose copies could run ahead",
            Why::NoBulk => "no tile is copied in bulk",
            Why::Read => "it is read in registers, not only by MMAs in shared memory",
            Why::InRegisters => "threads need them in registers, or where they lie is not known ahead",
            Why::Depends => {
                "what is copied depends on what is computed, or on an exit from a loop or from the middle of a branch"
            }
            Why::Changing => "the indices of its rows change in the loop",
            Why::FewSlots => "several would need more slots than stages that each holds",
            Why::NoMasks => "no masks hold for every element",
            Why::SlotsAlone => "they alone take more than the shared memory",
            Why::Written => "threads write operands that MMAs in flight still read",
            Why::NoGain => "it would have neither bulk copies nor MMAs of warpgroups",
            Why::NotFetched => {
                "threads cannot hold them in registers: they are rows that indices select, copied under a condition, or smaller than what MMAs read"
            }
            Why::Fused => "all warps copy and compute",
            Why::Overlapped => "the MMAs of a tile overlap instead",
            Why::NoWarpgroups => "its MMAs are not those of warpgroups",
            Why::NothingFits => "for the others it has nothing that fits, and schedule(rule) places them",
            Why::Refused(error) => &error.message,
            Why::NoGroup(why) => return why.fmt(f),
            Why::NoBox(why) => return why.fmt(f),
            Why::NoWalk(why) => return why.fmt(f),
            Why::NoCluster(why) => return why.fmt(f),
            Why::Crowded(crowded) => return crowded.fmt(f),
            Why::Programs(programs) => {
                return write!(f, "a multiprocessor would run {} at once", counted(*programs, "program"));
            }
            Why::Warps(warps) => {
                return write!(f, "a tile takes {}, and an instance has one warpgroup", counted(*warps, "warp"));
            }
            Why::Takes(bytes) => return write!(f, "a program needs {bytes} bytes of shared memory"),
        })
    }
}

/// What was not chosen for a kernel, with the reasons, in the order in which that was decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    all: Vec<(Alternative, Why)>,
}

impl Log {
    pub(super) fn add(&mut self, what: Alternative, why: Why) {
        let entry = (what, why);
        if !self.all.contains(&entry) {
            self.all.push(entry);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the modulo scheduler says what it has placed.
    pub(super) fn is_by_swing(&self) -> bool {
        self.all.iter().any(|(what, _)| matches!(what, Alternative::Swing { .. }))
    }

    pub(super) fn extend(&mut self, more: Log) {
        more.all.into_iter().for_each(|(what, why)| self.add(what, why));
    }

    /// The sentences about what was not chosen. A reason for several tiles is told once, with all of them.
    pub(super) fn told(&self) -> Vec<String> {
        self.sentences(&|_| true)
    }

    /// Those about code for a machine with bulk copies: why it is not as that of the machine's own features should be.
    pub(super) fn without_bulk(&self) -> Vec<String> {
        use Alternative::{Apart, Bulk, Group, OwnCode, Split};
        self.sentences(&|what| matches!(what, OwnCode | Group(_) | Split | Apart | Bulk(_)))
    }

    fn sentences(&self, wanted: &dyn Fn(&Alternative) -> bool) -> Vec<String> {
        let mut told = Vec::new();
        for (at, (what, why)) in self.all.iter().enumerate().filter(|(_, (what, _))| wanted(what)) {
            let alike = |entries: &[(Alternative, Why)]| -> Vec<String> {
                let tile = |(what, other): &(Alternative, Why)| {
                    if let Alternative::Bulk(tile) = what
                        && other == why
                    {
                        Some(tile.clone())
                    } else {
                        None
                    }
                };
                entries.iter().filter_map(tile).collect()
            };
            let is_tile = matches!(what, Alternative::Bulk(_));
            if !is_tile || alike(&self.all[..at]).is_empty() {
                told.push(sentence(what, why, &alike(&self.all[at..])));
            }
        }
        told
    }
}

/// What was not chosen and why, for the user; `tiles` are those that are not copied in bulk for this reason.
fn sentence(what: &Alternative, why: &Why, tiles: &[String]) -> String {
    match what {
        Alternative::OwnCode | Alternative::Registers => why.to_string(),
        Alternative::Group(value) => format!("the MMA that gives {value} is not one of warpgroups: {why}"),
        Alternative::Split => format!("no role of its own copies the tiles of the loop over `pipelined(..)`: {why}"),
        Alternative::Apart => format!("the same warps execute both roles: {why}"),
        Alternative::Bulk(_) => match tiles {
            [first @ .., last] if !first.is_empty() => {
                format!("{} and {last} are not copied in bulk: {why}", first.join(", "))
            }
            one => format!("{} is not copied in bulk: {why}", one.concat()),
        },
        Alternative::Slots(slots, tiles) => format!("not {} for {tiles}: {why}", counted(*slots, "slot")),
        Alternative::Ahead(tile, loc) => format!("{tile} is not copied ahead: {why}{}", at_line(*loc)),
        Alternative::Fetched => format!("nothing is loaded for the next iteration of loops: {why}"),
        Alternative::Unmasked => format!("no loop of its own for iterations without masks: {why}"),
        Alternative::Overlap => format!("the MMAs of a loop do not overlap: {why}"),
        Alternative::Grouped => format!("programs are not numbered in groups of rows: {why}"),
        Alternative::Walk => format!("not persistent: {why}"),
        Alternative::Instances => format!("one instance: {why}"),
        Alternative::Declared(target) => format!("roles have one instance each on {target}: {why}"),
        Alternative::Cluster => format!("no cluster: {why}"),
        Alternative::Swing { placed, of } => {
            let rest = if placed == of { String::new() } else { format!("; {why}") };
            format!("schedule(swing): {placed} of {of} loops are placed by the modulo scheduler{rest}")
        }
        Alternative::First => format!("{FALLBACK}: {why}"),
        Alternative::Devices(bytes) => {
            format!("{why}: no device runs it that allows less than {} KiB", bytes / 1024)
        }
    }
}
