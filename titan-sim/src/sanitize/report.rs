//! Findings: the rule, both sides, and their text.
//!
//! Numbers are the client's; [`Names`] supplies names for them. The code words of rules ([`Rule::code`]) are stable:
//! programs may compare them.

use super::mask::{Partition, Unit};
use crate::engine::{Agent, BarrierFault, BarrierId, Class, Place, Proxy, SpaceId, Wait};
use std::fmt::Write as _;

/// The rule that was broken. The table with the source of each is docs/sanitizer.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// An access conflicts with a write that the accessing thread does not see.
    OutstandingWrite,
    /// A write conflicts with reads that the writing thread does not see.
    OutstandingRead,
    /// An access conflicts with an operation of a commit group that was not waited for.
    PendingAccess,
    /// Two asynchronous operations of one partition touch the same bytes, and nothing orders them.
    UnorderedAsync,
    /// An access by another proxy, and no fence since the generic one.
    MissingFence,
    /// The fence does not reach the memory that is accessed.
    NarrowFence,
    /// A barrier orders two accesses to a memory whose operations run out of order, but a fence before or after it is missing.
    MissingSyncFence,
    /// An ordinary access to the bytes of a live barrier.
    BarrierBytes,
    /// A barrier is initialised on the bytes of another live barrier.
    BarrierOverlap,
    /// A barrier is initialised while it is live.
    BarrierReinit,
    /// A barrier is used before it is initialised, or after it is invalidated.
    BarrierNotLive,
    /// A barrier is initialised with an arrival count of 0 or more than 2²⁰ − 1.
    BarrierCount,
    /// More arrivals than the phase has left.
    ArriveUnderflow,
    /// The byte count leaves its range.
    BytesOverflow,
    /// A barrier is invalidated while an agent waits at it.
    InvalidateWaiting,
    /// A barrier is invalidated while an operation is still to signal it.
    InvalidatePending,
    /// A block ends, and no agent in it has waited for an operation on its memory.
    ExitInFlight,
    /// Memory or a barrier of a block that has ended is used.
    ExitedMemory,
    /// All agents that have not ended wait, and no pending operation can release one.
    Deadlock,
    /// An agent that the configuration does not name.
    UnknownAgent,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 20] = [
        Rule::OutstandingWrite,
        Rule::OutstandingRead,
        Rule::PendingAccess,
        Rule::UnorderedAsync,
        Rule::MissingFence,
        Rule::NarrowFence,
        Rule::MissingSyncFence,
        Rule::BarrierBytes,
        Rule::BarrierOverlap,
        Rule::BarrierReinit,
        Rule::BarrierNotLive,
        Rule::BarrierCount,
        Rule::ArriveUnderflow,
        Rule::BytesOverflow,
        Rule::InvalidateWaiting,
        Rule::InvalidatePending,
        Rule::ExitInFlight,
        Rule::ExitedMemory,
        Rule::Deadlock,
        Rule::UnknownAgent,
    ];

    /// The code word of the rule.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Rule::OutstandingWrite => "outstanding-write",
            Rule::OutstandingRead => "outstanding-read",
            Rule::PendingAccess => "pending-access",
            Rule::UnorderedAsync => "unordered-async",
            Rule::MissingFence => "missing-fence",
            Rule::NarrowFence => "narrow-fence",
            Rule::MissingSyncFence => "missing-sync-fence",
            Rule::BarrierBytes => "barrier-bytes",
            Rule::BarrierOverlap => "barrier-overlap",
            Rule::BarrierReinit => "barrier-reinit",
            Rule::BarrierNotLive => "barrier-not-live",
            Rule::BarrierCount => "barrier-count",
            Rule::ArriveUnderflow => "arrive-underflow",
            Rule::BytesOverflow => "bytes-overflow",
            Rule::InvalidateWaiting => "invalidate-waiting",
            Rule::InvalidatePending => "invalidate-pending",
            Rule::ExitInFlight => "exit-in-flight",
            Rule::ExitedMemory => "exited-memory",
            Rule::Deadlock => "deadlock",
            Rule::UnknownAgent => "unknown-agent",
        }
    }

    /// The description of the error, as a clause.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Rule::OutstandingWrite => "a write to these bytes is not ordered before the access",
            Rule::OutstandingRead => "a read of these bytes is not ordered before the write",
            Rule::PendingAccess => "an operation on these bytes is outstanding: its group was not waited for",
            Rule::UnorderedAsync => "two asynchronous operations touch these bytes, and nothing orders them",
            Rule::MissingFence => "no fence lies between a generic access and one by another proxy",
            Rule::NarrowFence => {
                "the fence between a generic access and one by another proxy does not reach this memory"
            }
            Rule::MissingSyncFence => {
                "a fence is missing, without which a barrier does not order accesses to this memory: one before the arrival after the \
                 earlier access, or one after the wait before the later access"
            }
            Rule::BarrierBytes => "an ordinary access to the bytes of a barrier that is in use",
            Rule::BarrierOverlap => "the barrier lies on the bytes of another that is in use",
            Rule::BarrierReinit => "the barrier is initialised again without being invalidated",
            Rule::BarrierNotLive => "the barrier is used before it is initialised or after it is invalidated",
            Rule::BarrierCount => "the arrival count exceeds what a barrier can hold",
            Rule::ArriveUnderflow => "more arrive than the phase of the barrier expects",
            Rule::BytesOverflow => "the byte count of the barrier leaves its range",
            Rule::InvalidateWaiting => "the barrier is invalidated while an agent waits at it",
            Rule::InvalidatePending => "the barrier is invalidated while an operation is still to signal it",
            Rule::ExitInFlight => {
                "the block ends while an operation on its memory may be in flight: no agent has waited for it"
            }
            Rule::ExitedMemory => "this memory belongs to a block that has ended",
            Rule::Deadlock => "every agent that has not ended waits, and no operation in flight can release one",
            Rule::UnknownAgent => "the agent is not declared in the sanitizer's configuration",
        }
    }
}

/// The action of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Reads memory.
    Read,
    /// Writes memory.
    Write,
    /// Reads and writes memory atomically.
    Atomic,
    /// Initialises a barrier.
    Init,
    /// Invalidates a barrier.
    Invalidate,
    /// Arrives at a barrier.
    Arrive,
    /// Waits at a barrier or a rendezvous.
    Wait,
    /// Will signal a barrier when it completes.
    Signal,
    /// Ends the thread.
    Exit,
}

impl Deed {
    /// Whether the action changes memory.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Deed::Write | Deed::Atomic | Deed::Init | Deed::Invalidate)
    }

    const fn says(self) -> &'static str {
        match self {
            Deed::Read => "reads",
            Deed::Write => "writes",
            Deed::Atomic => "atomically updates",
            Deed::Init => "initialises",
            Deed::Invalidate => "invalidates",
            Deed::Arrive => "arrives at",
            Deed::Wait => "waits at",
            Deed::Signal => "is to signal",
            Deed::Exit => "ends",
        }
    }
}

/// One side of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// The agent, or the issuer of the operation.
    pub agent: Agent,
    /// The agent's partition.
    pub partition: Partition,
    /// The logical thread of the partition that acts: the agents, or a unit.
    pub unit: Unit,
    /// The class of the asynchronous operation; `None` for an action of the agent itself.
    pub class: Option<Class>,
    /// The action of this side.
    pub deed: Deed,
    /// The proxy of its access.
    pub proxy: Proxy,
    /// The instruction, if events reported it.
    pub place: Place,
    /// The client's number from [`Access::tag`](crate::engine::Access::tag).
    pub tag: u64,
    /// The bytes, if any: space, address, length.
    pub bytes: Option<(SpaceId, u64, u64)>,
    /// The barrier that it uses, if any.
    pub barrier: Option<BarrierId>,
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The rule that was broken.
    pub rule: Rule,
    /// The bytes that both sides have in common: space, address, length.
    pub bytes: Option<(SpaceId, u64, u64)>,
    /// The side that breaks it; for a deadlock, the first that waits.
    pub now: Side,
    /// The earlier sides; for a deadlock, the others that wait.
    pub others: Vec<Side>,
    /// For a deadlock, the reason why each side waits, in the order `now`, `others`.
    pub waits: Vec<Wait>,
    /// The misuse of the barrier, with its numbers.
    pub fault: Option<BarrierFault>,
    /// The name of the class of asynchronous work that is outstanding.
    pub pending: Option<&'static str>,
}

/// The client's names for its numbers. Each has a default that shows the number.
pub trait Names {
    /// The name of an agent.
    fn agent(&self, agent: Agent) -> String {
        agent.to_string()
    }
    /// The name of a place with a tag.
    fn place(&self, place: Place, tag: u64) -> String {
        format!("{place} (tag {tag})")
    }
    /// The name of a range of bytes of a memory.
    fn bytes(&self, space: SpaceId, address: u64, len: u64) -> String {
        format!("bytes {address:#x}..{:#x} of {space}", address + len)
    }
    /// The name of a barrier.
    fn barrier(&self, barrier: BarrierId) -> String {
        barrier.to_string()
    }
    /// The name of a class of asynchronous operations.
    fn class(&self, class: Class) -> String {
        format!("an operation of class {}", class.0)
    }
    /// The name of the event that an agent waits for.
    fn wait(&self, wait: Wait) -> String {
        match wait {
            Wait::Phase { barrier, parity } => {
                format!("the phase of parity {} of {}", u8::from(parity), self.barrier(barrier))
            }
            Wait::Meeting { rendezvous } => rendezvous.to_string(),
            Wait::Groups { class, at_most } => format!("at most {at_most} outstanding groups of {}", self.class(class)),
            Wait::Other(n) => format!("reason {n}"),
        }
    }
}

/// The default names, which show the numbers.
impl Names for () {}

impl Side {
    /// A description of this side.
    #[must_use]
    pub fn explain(&self, names: &dyn Names) -> String {
        let mut out = match self.class {
            None => names.agent(self.agent),
            Some(class) => format!("{} of {}", names.class(class), names.agent(self.agent)),
        };
        let what = match (self.barrier, self.bytes) {
            (Some(b), _) => format!(" {}", names.barrier(b)),
            (None, Some((space, address, len))) => format!(" {}", names.bytes(space, address, len)),
            (None, None) => String::new(),
        };
        // Writing to a string does not fail.
        let _ = write!(out, " {}{what}, {}", self.deed.says(), names.place(self.place, self.tag));
        out
    }
}

impl Finding {
    /// The rule and the bytes, as text.
    #[must_use]
    pub fn headline(&self, names: &dyn Names) -> String {
        let pending = self.pending.map_or_else(String::new, |p| format!(" ({p})"));
        let says = self.fault.map_or_else(|| self.rule.says().to_owned(), |f| f.to_string());
        match (self.now.barrier, self.bytes) {
            _ if !self.waits.is_empty() => says,
            (Some(barrier), _) => format!("{}: {says}{pending}", names.barrier(barrier)),
            (None, Some((space, address, len))) => format!("{}: {says}{pending}", names.bytes(space, address, len)),
            (None, None) => format!("{says}{pending}"),
        }
    }

    /// The complete text: the headline and both sides.
    #[must_use]
    pub fn explain(&self, names: &dyn Names) -> String {
        let mut out = format!("[{}] {}", self.rule.code(), self.headline(names));
        let sides = std::iter::once(&self.now).chain(&self.others);
        for (i, side) in sides.enumerate() {
            let lead = match (i, self.waits.is_empty()) {
                (0, true) => "now",
                (_, true) => "before",
                (_, false) => "waiting",
            };
            let _ = write!(out, "\n  {lead}: {}", side.explain(names));
            if let Some(wait) = self.waits.get(i) {
                let _ = write!(out, ", for {}", names.wait(*wait));
            }
        }
        out
    }
}
