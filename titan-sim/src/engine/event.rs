//! The events of a machine, as reported to observers.
//!
//! | event | meaning for an observer of ordering |
//! |---|---|
//! | [`Event::Access`] | is checked against accesses that are not ordered before it |
//! | [`Event::Issue`], [`Event::Commit`] | accesses of the operation belong to the agent's helper thread, not to the agent |
//! | [`Event::GroupWait`], [`Event::Complete`] | the helper's work so far is ordered before the agent's next events |
//! | [`Event::Arrive`] | releases the agent's events, and those ordered before it, at a barrier |
//! | [`Event::Observe`] | acquires what a complete phase released |
//! | [`Event::Meet`] | a barrier: everything of the participants before it is ordered before everything after it |
//! | [`Event::Release`], [`Event::Acquire`] | the same through a word of memory |
//! | [`Event::Overwrite`] | a word no longer carries what was released through it |
//! | [`Event::Fence`] | orders accesses of one proxy before those of another |
//! | [`Event::Fork`], [`Event::Join`] | one agent's events are ordered before those of others; those of others before one agent's |
//! | [`Event::Init`], [`Event::Invalidate`], [`Event::Expect`] | the life of a barrier, and the counts of its phases |
//! | [`Event::Wait`], [`Event::Exit`] | agents that are blocked or have ended, for detecting deadlocks |
//! | [`Event::At`] | the place of an agent, for events without a place |
//!
//! Uses of barriers are reported before they take effect: a faulty one is reported, and then the engine halts.
//!
//! An observer ends the run by returning [`Stop`]; it keeps the reason itself.

use super::agent::{Agent, Wait};
use super::pending::{Class, OpId, Signal};
use super::phase::BarrierId;
use super::rendezvous::RendezvousId;
use super::space::SpaceId;

titan_core::entity! {
    /// A place in the program: an index of the client (an operation, a line).
    Place, "at"
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes, indivisibly.
    Atomic,
}

/// The proxy of an access. Accesses through different proxies need a fence between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Ordinary loads and stores, and copies that count as such.
    #[default]
    Generic,
    /// Bulk copies and matrix units that read shared memory by descriptor.
    Async,
    /// Descriptors of tensors.
    TensorMap,
}

/// The scope of a fence. Wider ones include narrower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Shared memory of the agent's own block.
    #[default]
    Cta,
    /// Shared memory of all blocks of the cluster.
    Cluster,
    /// All memory of the device.
    Device,
}

/// The memory that a fence orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceSpace {
    /// All of it.
    #[default]
    All,
    /// Shared memory of blocks.
    Shared,
    /// Device memory.
    Global,
    /// The words of initialised barriers.
    Inits,
}

/// The storage of a barrier's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Storage {
    /// The memory.
    pub space: SpaceId,
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub len: u32,
}

/// Whether unordered accesses of the same kind are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strength {
    /// An ordinary access.
    #[default]
    Weak,
    /// A relaxed, volatile or atomic one: with others like it, unordered is allowed.
    Strong,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The agent.
    pub agent: Agent,
    /// The instruction.
    pub place: Place,
    /// The memory.
    pub space: SpaceId,
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub len: u32,
    /// Its kind.
    pub kind: AccessKind,
    /// Its proxy.
    pub proxy: Proxy,
    /// Whether it may be unordered with others of its kind.
    pub strength: Strength,
    /// Whether it is a write that does not change the bytes.
    pub unchanged: bool,
    /// The asynchronous operation whose access this is; `None` is the agent's own.
    pub helper: Option<Helper>,
    /// A number of the client that reports repeat: a time, an iteration; 0 if there is none.
    pub tag: u64,
}

/// An asynchronous operation that acts for its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Helper {
    /// Of what kind.
    pub class: Class,
    /// Which.
    pub op: OpId,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An access to memory. Those of an asynchronous operation are reported right after its issue: they may happen from then on.
    Access(Access),
    /// An asynchronous operation is issued.
    Issue {
        /// Whose.
        agent: Agent,
        /// Which.
        op: OpId,
        /// Of what kind.
        class: Class,
        /// Where.
        place: Place,
        /// Whether it belongs to the open group of its agent and class; otherwise only its signals report its completion.
        grouped: bool,
        /// The signals of its completion.
        signals: &'a [Signal],
    },
    /// An agent commits its open group of a class.
    Commit {
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
        /// How many groups the agent has committed, this one included.
        groups: u32,
    },
    /// A wait for groups of an agent passed.
    GroupWait {
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
        /// How many of the agent's groups are complete.
        complete: u32,
    },
    /// An asynchronous operation has completed and signalled.
    Complete {
        /// Which.
        op: OpId,
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
    },
    /// A barrier is initialised.
    Init {
        /// Which.
        barrier: BarrierId,
        /// By whom.
        agent: Agent,
        /// The arrival count of each phase.
        count: u32,
        /// The storage of its word, if it has one.
        storage: Option<Storage>,
        /// Where.
        place: Place,
    },
    /// A barrier is invalidated.
    Invalidate {
        /// Which.
        barrier: BarrierId,
        /// By whom.
        agent: Agent,
        /// Where.
        place: Place,
    },
    /// The current phase of a barrier expects more arrivals.
    Expect {
        /// Which.
        barrier: BarrierId,
        /// How many more.
        count: u32,
    },
    /// An agent, or a completed operation, arrives at a barrier.
    Arrive {
        /// The barrier.
        barrier: BarrierId,
        /// The agent, or the agent of the operation.
        agent: Agent,
        /// The operation that arrives: its effects and those ordered before it are released, not the agent's own.
        helper: Option<Helper>,
        /// Completed phases before this arrival.
        phase: u64,
        /// How many arrivals; 0 for bytes.
        count: u32,
        /// The change of the byte count.
        bytes: i64,
        /// Whether the arrival count of later phases is lowered by as much.
        drops: bool,
        /// Whether it only counts and publishes nothing.
        relaxed: bool,
    },
    /// A phase completes.
    Flip {
        /// Of which barrier.
        barrier: BarrierId,
        /// Completed phases, this one included.
        phase: u64,
    },
    /// A wait of an agent for a phase passed.
    Observe {
        /// Of which barrier.
        barrier: BarrierId,
        /// Who.
        agent: Agent,
        /// Completed phases, at least.
        phase: u64,
    },
    /// A rendezvous completed.
    Meet {
        /// Which.
        rendezvous: RendezvousId,
        /// The agents that waited: their earlier events are ordered before their later ones.
        waited: &'a [Agent],
        /// The agents that only arrived: their earlier events are ordered before the later ones of the waiting agents.
        passed: &'a [Agent],
    },
    /// A word of memory is overwritten by a value that does not depend on the previous one: a read of it acquires nothing that was
    /// released through the word before. (PTX ISA, "Memory Consistency Model": observation order continues through atomic
    /// read-modify-writes, but not through stores.)
    Overwrite {
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// An agent releases through a word of memory.
    Release {
        /// Who.
        agent: Agent,
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// An agent acquires through a word of memory.
    Acquire {
        /// Who.
        agent: Agent,
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// A proxy fence: orders earlier accesses through one proxy before later ones through another.
    Fence {
        /// Who.
        agent: Agent,
        /// The proxy of earlier accesses.
        from: Proxy,
        /// The proxy of later accesses.
        to: Proxy,
        /// Its scope.
        scope: Scope,
        /// The memory that it orders.
        space: FenceSpace,
        /// Where.
        place: Place,
    },
    /// An agent starts others: its earlier events are ordered before theirs.
    Fork {
        /// Who.
        agent: Agent,
        /// The others.
        into: &'a [Agent],
    },
    /// Agents are joined: their events are ordered before the later ones of one agent.
    Join {
        /// The others.
        agents: &'a [Agent],
        /// Who.
        into: Agent,
    },
    /// An agent is blocked.
    Wait {
        /// Who.
        agent: Agent,
        /// Its reason.
        wait: Wait,
    },
    /// The new place of an agent, for reports only.
    At {
        /// Who.
        agent: Agent,
        /// Where.
        place: Place,
        /// As [`Access::tag`].
        tag: u64,
    },
    /// An agent has ended.
    Exit {
        /// Who.
        agent: Agent,
    },
}

/// The observer ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// An observer of events.
pub trait Observer {
    /// Receives an event.
    ///
    /// # Errors
    /// [`Stop`], if the run should end; the observer keeps the reason.
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop>;
}

/// No observer.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// Two observers; the second gets every event even if the first stops.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let first = self.0.event(event);
        self.1.event(event).and(first)
    }
}

impl<O: Observer> Observer for Option<O> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        self.as_mut().map_or(Ok(()), |o| o.event(event))
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        (**self).event(event)
    }
}
