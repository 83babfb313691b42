//! The schedule: the decisions of compiling a kernel for a target, as plain data.
//!
//! A rule chooses it (`super::rule`); a search could do so as well. The driver only applies it.
//!
//! Worked example, an MMA of 128×128×64 for 99 KiB of shared memory, whose stage takes 32 KiB:
//!
//! ```text
//! access aligned, 101376 bytes of shared memory, 4 warps
//! loop 0: loads 3, 5 in 3 slots, copied 2 iterations ahead
//! body 1: operations 0 1 2 4 5 6 3 7 ..                        their places in the new order
//! ```
//!
//! Deliberately absent: layouts and matrix instructions, which follow from the kernel and the number of warps
//! ([`crate::plan`]).

use crate::diag::counted;
use crate::ir::{Pipe, Planned};
use crate::pipeline::walk::{Cluster, Tiles, Walk};
use crate::target::Target;
use std::fmt;

/// The arguments that a variant is for, those with the most assumptions first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arguments {
    /// Rows of tensors are aligned to 16 bytes, and a multiple of 16 bytes long, which allows wide accesses and asynchronous copies.
    Aligned,
    /// Those of inputs with several axes are, and those of outputs and of other inputs need not be: products whose number of columns is odd.
    AlignedInputs,
    /// Any arguments.
    #[default]
    Any,
}

impl Arguments {
    /// All of them, in the order in which launches try the variants.
    pub const ALL: [Arguments; 3] = [Arguments::Aligned, Arguments::AlignedInputs, Arguments::Any];

    /// The name, as the configuration of a variant states it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Arguments::Aligned => "aligned",
            Arguments::AlignedInputs => "aligned-inputs",
            Arguments::Any => "any",
        }
    }

    /// Whether operands of MMAs are assumed to be aligned.
    #[must_use]
    pub const fn aligned(self) -> bool {
        match self {
            Arguments::Aligned | Arguments::AlignedInputs => true,
            Arguments::Any => false,
        }
    }
}

impl From<bool> for Arguments {
    /// Whether arguments are aligned.
    fn from(aligned: bool) -> Arguments {
        if aligned { Arguments::Aligned } else { Arguments::Any }
    }
}

/// The decisions about one variant of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The arguments that it is for.
    pub arguments: Arguments,
    /// The maximum shared memory of a program, in bytes.
    pub shared_bytes: u32,
    /// The number of warps of a program without roles, a power of two; `None`: as in the plan. Roles state their numbers themselves.
    pub warps: Option<u32>,
    /// The treatment of the kernel's roles.
    pub roles: Roles,
    /// The number of slots, D, of each ring that the kernel declares, in the order of their declarations.
    pub slots: Vec<u32>,
    /// The loops over `pipelined(..)` that become rings.
    pub loops: Vec<Ahead>,
    /// Whether the first iteration of loops over accumulators is peeled, so that each stage is released one iteration late.
    pub peeled: bool,
    /// Whether the second of two MMAs of a loop is issued one iteration late, so that it overlaps with the use of the first one's result.
    pub shifted: bool,
    /// Which tiles programs compute, and in which order.
    pub walk: Walk,
    /// Whether the iterations of all loops over MMAs that need no masks have a separate loop without masks.
    pub unmasked: bool,
    /// Whether roles wait until the bulk stores of a tile are complete, before they compute the next tile. The buffers of the stores may then
    /// share bytes with other regions of the role.
    pub stores_waited: bool,
    /// The schedules of loop bodies in which the order of operations changes, by number in the laid-out kernel after its tiles were distributed to
    /// clusters.
    pub bodies: Vec<Body>,
}

/// The treatment of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Roles {
    /// Roles stay as declared; also for a kernel without roles.
    #[default]
    Kept,
    /// A kernel without roles is split: one role copies the stages of the pipelined loops, and another one computes.
    Split {
        /// The number of warps of the role that computes.
        warps: u32,
    },
    /// A role that copies and a role that computes are fused: all warps do both.
    Fused {
        /// The prefetch distance P: the number of iterations by which copies are issued in advance.
        distance: u32,
        /// Whether the loop waits for the next stage early, for every ring, as [`Ahead::carried`].
        carried: bool,
    },
}

/// A loop whose loads are prefetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The number of the loop among those over `pipelined(..)`, in program order.
    pub number: usize,
    /// Its prefetched loads, by their positions in the body of the loop.
    pub loads: Vec<usize>,
    /// The number of slots of the ring, D.
    pub slots: u32,
    /// The prefetch distance P: the number of iterations by which copies are issued in advance; at least 1, and less than D,
    /// or D if copies are behind the wait that shows that their slot was read.
    pub distance: u32,
    /// Whether the loop waits for the stage of the next iteration and carries it, so that its first loads can be moved one iteration
    /// earlier.
    pub carried: bool,
}

/// A ring whose stages are filled ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefetched {
    pub(super) pipe: Pipe,
    /// The number of iterations by which copies are issued in advance.
    pub(super) distance: u32,
    /// Whether the next stage is waited for one iteration early.
    pub(super) carried: bool,
}

/// The schedule of a loop's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The number of the loop, in the program order of the laid-out kernel.
    pub number: usize,
    /// The stage and the place of each operation of the body, without its terminator ([`crate::pipeline::modulo`]).
    pub places: Vec<Planned>,
    /// Whether the first and the last iteration of the loop stand apart.
    pub peeled: bool,
    /// Whether iterations without masks get a loop of their own, if [`Schedule::unmasked`] does not say that all such loops are split.
    pub unmasked: bool,
}

impl Schedule {
    /// The rings whose stages are filled ahead.
    pub(super) fn prefetched(&self) -> Vec<Prefetched> {
        let mut all = self.ahead();
        all.retain(|prefetched| prefetched.distance > 0);
        all
    }

    /// How far ahead the stages of rings are filled that one role fills and reads.
    pub(super) fn ahead(&self) -> Vec<Prefetched> {
        let ahead = |(at, ahead): (usize, &Ahead)| Prefetched {
            pipe: Pipe::new(self.slots.len() + at),
            distance: ahead.distance,
            carried: ahead.carried,
        };
        let mut all = Vec::new();
        if let Roles::Fused { distance, carried } = self.roles {
            all.extend((0..self.slots.len()).map(|at| Prefetched { pipe: Pipe::new(at), distance, carried }));
        }
        all.extend(self.loops.iter().enumerate().map(ahead));
        all
    }

    /// Simpler schedules, which are easier to verify, the best first: without clusters, with stores that are waited for, two slots without
    /// separate roles, then no prefetching.
    #[must_use]
    pub fn simpler(&self) -> Vec<Schedule> {
        let two = |ahead: &Ahead| Ahead { slots: 2, distance: 1, carried: false, ..ahead.clone() };
        let less = Schedule {
            // Only kernels with roles declare rings.
            roles: if self.slots.is_empty() { Roles::Kept } else { Roles::Fused { distance: 0, carried: false } },
            slots: self.slots.iter().map(|slots| (*slots).min(2)).collect(),
            loops: self.loops.iter().map(two).collect(),
            walk: Walk::default(),
            unmasked: false,
            bodies: Vec::new(),
            peeled: false,
            shifted: false,
            warps: self.warps.filter(|_| self.slots.is_empty()),
            ..self.clone()
        };
        let least = Schedule { loops: Vec::new(), ..less.clone() };
        // The numbers of operations refer to the kernel with its cluster, so the orders are dropped with it.
        let walk = Walk { cluster: None, ..self.walk };
        let alone = Schedule { walk, bodies: Vec::new(), ..self.clone() };
        let waited = Schedule { stores_waited: true, ..alone.clone() };
        let mut all = vec![alone, waited, less, least];
        if self.walk.cluster.is_none() {
            all.remove(0);
        }
        if self.roles == Roles::Kept && self.slots.is_empty() {
            // Only roles have stores in flight while they compute the next tile.
            all.retain(|simpler| simpler.stores_waited == self.stores_waited);
        }
        all.dedup();
        all.retain(|simpler| simpler != self);
        all
    }

    /// A machine with as many dies as the walk distributes programs to.
    pub(super) fn on_dies(&self, target: &Target) -> Target {
        Target { dies: self.walk.dies.unwrap_or(1), ..target.clone() }
    }

    /// Whether another schedule differs only in its maximum shared memory.
    #[must_use]
    pub fn is_but_for_memory(&self, other: &Schedule) -> bool {
        *self == Schedule { shared_bytes: self.shared_bytes, ..other.clone() }
    }
}

impl Schedule {
    /// The walk, but for persistent programs.
    fn fmt_walk(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self.walk.tiles, Tiles::Grouped(_)) {
            writeln!(f, "programs of the grid in groups of rows")?;
        }
        if let Some(dies) = self.walk.dies {
            writeln!(f, "adjacent tiles on each of {dies} dies")?;
        }
        if let Some(instances) = self.walk.instances {
            writeln!(f, "{instances} instances of the role that computes take tiles in turn")?;
        }
        if let Some(Cluster { size, axis }) = self.walk.cluster {
            writeln!(f, "clusters of {size} programs, whose tiles are neighbours along axis {axis}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "access {}, {} bytes of shared memory", self.arguments.name(), self.shared_bytes)?;
        if let Some(warps) = self.warps {
            write!(f, ", {}", counted(warps, "warp"))?;
        }
        writeln!(f)?;
        if self.peeled {
            writeln!(f, "the first MMA of accumulators apart, stages released one iteration late")?;
        }
        if self.shifted {
            writeln!(f, "the second MMA of loops one iteration late")?;
        }
        if let Roles::Split { warps } = self.roles {
            writeln!(f, "split into a role that copies, and one of {} that computes", counted(warps, "warp"))?;
        }
        let early = |carried: bool| if carried { ", waited for one iteration early" } else { "" };
        if let Roles::Fused { distance, carried } = self.roles {
            writeln!(f, "roles fused, copied {} ahead{}", counted(distance, "iteration"), early(carried))?;
        }
        for (i, slots) in self.slots.iter().enumerate() {
            writeln!(f, "ring {i}: {}", counted(*slots, "slot"))?;
        }
        for Ahead { number, loads, slots, distance, carried } in &self.loops {
            let loads: Vec<String> = loads.iter().map(ToString::to_string).collect();
            let loads = loads.join(", ");
            let next = early(*carried);
            let (slots, distance) = (counted(*slots, "slot"), counted(*distance, "iteration"));
            writeln!(f, "loop {number}: loads {loads} in {slots}, copied {distance} ahead{next}")?;
        }
        if self.walk.is_persistent() {
            writeln!(f, "programs walk over the grid")?;
        }
        if self.unmasked {
            writeln!(f, "iterations without masks in a loop of their own")?;
        }
        if self.stores_waited {
            writeln!(f, "stores of a tile complete before the next tile begins")?;
        }
        self.fmt_walk(f)?;
        for Body { number, places, peeled, unmasked } in &self.bodies {
            // The stage is stated where it is not that of the operation before.
            let mut stage = 0;
            let peeled = if *peeled { ", first and last iteration apart" } else { "" };
            let unmasked = if *unmasked { ", iterations without masks apart" } else { "" };
            write!(f, "body {number}{peeled}{unmasked}: operations")?;
            for Planned { stage: own, order } in places {
                if *own == stage {
                    write!(f, " {order}")?;
                } else {
                    write!(f, " {own}/{order}")?;
                }
                stage = *own;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
