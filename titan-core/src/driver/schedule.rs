//! The schedule: the decisions of compiling a kernel for a target, as plain data.
//!
//! A rule chooses it (`super::rule`); a search could do so as well. The driver applies it and decides nothing itself.
//!
//! Worked example, an MMA of 128×128×64 for 99 KiB of shared memory, whose stage takes 32 KiB:
//!
//! ```text
//! access aligned, 101376 bytes of shared memory, 4 warps
//! loop 0: loads 3, 5 in 3 slots, copied 2 iterations ahead
//! body 1: operations 0 1 2 4 5 6 3 7 ..
//! ```
//!
//! Deliberately absent: layouts and matrix instructions, which follow from the kernel and the number of warps
//! ([`crate::plan`]).

use std::fmt;

/// The decisions about one variant of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Whether arguments are assumed to be aligned, so that accesses are wide and copies asynchronous.
    pub aligned: bool,
    /// The maximum shared memory of a program, in bytes.
    pub shared_bytes: u32,
    /// Warps of a program without roles, a power of two; `None`: as in the plan. Roles state their numbers themselves.
    pub warps: Option<u32>,
    /// The treatment of the kernel's roles.
    pub roles: Roles,
    /// D of each ring that the kernel declares, in the order of their declarations.
    pub slots: Vec<u32>,
    /// The loops over `pipelined(..)` that become rings.
    pub loops: Vec<Ahead>,
    /// Whether the first iteration of loops over accumulators is peeled, so that each stage is released one iteration late.
    pub peeled: bool,
    /// Whether the second of two MMAs of a loop is issued one iteration late, beside what the first one feeds.
    pub shifted: bool,
    /// Whether the programs of a kernel with roles walk over its grid.
    pub persistent: bool,
    /// Whether the programs of the grid are numbered in groups of rows, along one axis.
    pub grouped: bool,
    /// Whether the iterations of loops over MMAs in which masks hold for every element have a loop of their own, without masks.
    pub unmasked: bool,
    /// The instances of roles, which take tiles in turn: as many as a role declares, or this many of the one that computes if the kernel
    /// was split. `None`: one.
    pub instances: Option<u32>,
    /// The cluster of programs that share copies.
    pub cluster: Option<Cluster>,
    /// The bodies of loops, of the kernel as it is laid out and its tiles dealt to clusters, whose operations change their order.
    pub bodies: Vec<Body>,
}

/// Programs that run at the same time, and copy tiles for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// How many: 2, 4 or 8.
    pub size: u32,
    /// In which of the last two coordinates their tiles are neighbours: 0 or 1.
    pub axis: usize,
}

/// The treatment of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Roles {
    /// They stay as declared; also for a kernel without roles.
    #[default]
    Kept,
    /// A kernel without roles is split: one role copies the stages of the pipelined loops, another one computes.
    Split {
        /// The warps of the role that computes.
        warps: u32,
    },
    /// A role that copies and a role that computes are fused: all warps do both.
    Fused {
        /// P: how many iterations the copies run ahead.
        distance: u32,
        /// As [`Ahead::carried`], of every ring.
        carried: bool,
    },
}

/// A loop whose loads run ahead of the iteration that uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Which loop over `pipelined(..)`, in the order of the kernel's text.
    pub number: usize,
    /// Its loads, as positions in the body of the loop.
    pub loads: Vec<usize>,
    /// D, the slots of the ring.
    pub slots: u32,
    /// P, how many iterations the copies run ahead; at least 1, and less than D.
    pub distance: u32,
    /// Whether the loop waits for the stage of the next iteration and carries it, so that its first loads can be early.
    pub carried: bool,
}

/// A new order of the operations of a loop's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Which loop, in the order of the laid-out kernel's text.
    pub number: usize,
    /// Loads that are moved one iteration earlier, by position. Their address computations are duplicated, in front of the loop
    /// and, with the loads, at the end of the body.
    pub ahead: Vec<usize>,
    /// The new order of the operations, by position.
    pub order: Vec<usize>,
}

impl Schedule {
    /// Simpler schedules, which are easier to verify, the better one first: two slots without roles, and no copies ahead.
    #[must_use]
    pub fn simpler(&self) -> Vec<Schedule> {
        let two = |ahead: &Ahead| Ahead { slots: 2, distance: 1, carried: false, ..ahead.clone() };
        let less = Schedule {
            // A kernel with rings of its own has roles.
            roles: if self.slots.is_empty() { Roles::Kept } else { Roles::Fused { distance: 0, carried: false } },
            slots: self.slots.iter().map(|slots| (*slots).min(2)).collect(),
            loops: self.loops.iter().map(two).collect(),
            persistent: false,
            grouped: false,
            unmasked: false,
            instances: None,
            cluster: None,
            bodies: Vec::new(),
            peeled: false,
            shifted: false,
            warps: self.warps.filter(|_| self.slots.is_empty()),
            ..self.clone()
        };
        let least = Schedule { loops: Vec::new(), ..less.clone() };
        // Operations are numbered in the kernel with its cluster.
        let alone = Schedule { cluster: None, bodies: Vec::new(), ..self.clone() };
        let mut all = vec![alone, less, least];
        if self.cluster.is_none() {
            all.remove(0);
        }
        all.dedup();
        all.retain(|simpler| simpler != self);
        all
    }

    /// Whether another schedule differs only in its maximum shared memory.
    #[must_use]
    pub fn is_but_for_memory(&self, other: &Schedule) -> bool {
        *self == Schedule { shared_bytes: self.shared_bytes, ..other.clone() }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.aligned { "aligned" } else { "any" };
        write!(f, "access {access}, {} bytes of shared memory", self.shared_bytes)?;
        if let Some(warps) = self.warps {
            write!(f, ", {warps} warps")?;
        }
        writeln!(f)?;
        if self.peeled {
            writeln!(f, "the first MMA of accumulators apart, stages released one iteration late")?;
        }
        if self.shifted {
            writeln!(f, "the second MMA of loops one iteration late")?;
        }
        if let Roles::Split { warps } = self.roles {
            writeln!(f, "split into a role that copies, and one of {warps} warps that computes")?;
        }
        let early = |carried: bool| if carried { ", waited for one iteration early" } else { "" };
        if let Roles::Fused { distance, carried } = self.roles {
            writeln!(f, "roles fused, copied {distance} iterations ahead{}", early(carried))?;
        }
        for (i, slots) in self.slots.iter().enumerate() {
            writeln!(f, "ring {i}: {slots} slots")?;
        }
        for Ahead { number, loads, slots, distance, carried } in &self.loops {
            let loads: Vec<String> = loads.iter().map(ToString::to_string).collect();
            let loads = loads.join(", ");
            let next = early(*carried);
            writeln!(f, "loop {number}: loads {loads} in {slots} slots, copied {distance} iterations ahead{next}")?;
        }
        if self.persistent {
            writeln!(f, "programs walk over the grid")?;
        }
        if self.unmasked {
            writeln!(f, "iterations without masks in a loop of their own")?;
        }
        if self.grouped {
            writeln!(f, "programs of the grid in groups of rows")?;
        }
        if let Some(instances) = self.instances {
            writeln!(f, "{instances} instances of the role that computes take tiles in turn")?;
        }
        if let Some(Cluster { size, axis }) = self.cluster {
            writeln!(f, "clusters of {size} programs, whose tiles are neighbours along axis {axis}")?;
        }
        for Body { number, ahead, order } in &self.bodies {
            let [ahead, order] = [ahead, order].map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
            let early = if ahead.is_empty() { String::new() } else { format!("loads {} early, ", ahead.join(", ")) };
            writeln!(f, "body {number}: {early}operations {}", order.join(" "))?;
        }
        Ok(())
    }
}
