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
//! | [`Event::Forward`] | a word carries what was released through another |
//! | [`Event::Overwrite`] | a word no longer carries what was released through it |
//! | [`Event::Fence`] | orders accesses of one proxy before those of another |
//! | [`Event::Free`] | bytes have a new owner, for whom nothing has happened to them |
//! | [`Event::SyncFence`] | lets barriers order accesses to a memory whose operations run out of order |
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
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic read-modify-write.
    Atomic,
}

/// The proxy of an access. Accesses through different proxies need a fence between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Ordinary loads and stores, and copies that the PTX ISA assigns to the generic proxy.
    #[default]
    Generic,
    /// Bulk copies, and matrix units that read shared memory by descriptor.
    Async,
    /// Accesses to tensor maps.
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
    /// All memory.
    #[default]
    All,
    /// Shared memory of the blocks.
    Shared,
    /// Device memory.
    Global,
    /// The barriers' words, as written by `mbarrier.init`.
    Inits,
}

/// The side of a synchronization of threads on which a fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncSide {
    /// Before an arrival: what the agent has done is ordered before it.
    Before,
    /// After a wait: what the agent does next is ordered after it.
    After,
}

/// The storage of a barrier's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Storage {
    /// The memory that contains the word.
    pub space: SpaceId,
    /// The address of its first byte.
    pub address: u64,
    /// The length of the word, in bytes.
    pub len: u32,
}

/// Whether unordered accesses of the same strength are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strength {
    /// An ordinary access.
    #[default]
    Weak,
    /// A relaxed, volatile or atomic access: it does not race with other strong accesses.
    Strong,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The agent that performs the access or issued the operation that does.
    pub agent: Agent,
    /// The instruction.
    pub place: Place,
    /// The memory.
    pub space: SpaceId,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub len: u32,
    /// Whether the access reads, writes, or does both.
    pub kind: AccessKind,
    /// The proxy of the access.
    pub proxy: Proxy,
    /// Whether the access races with unordered accesses of its strength.
    pub strength: Strength,
    /// Whether this is a write that leaves the bytes as they were.
    pub unchanged: bool,
    /// The asynchronous operation that performs the access; `None` if the agent performs it itself.
    pub helper: Option<Helper>,
    /// A number of the client that reports repeat, such as a ring time or an iteration; 0 if there is none.
    pub tag: u64,
}

/// An asynchronous operation, as a logical thread that acts on behalf of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Helper {
    /// The class of the operation.
    pub class: Class,
    /// The operation.
    pub op: OpId,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An access to memory. The accesses of an asynchronous operation are reported right after its issue: they may happen from then on.
    Access(Access),
    /// An asynchronous operation is issued.
    Issue {
        /// The agent that issues it.
        agent: Agent,
        /// The operation.
        op: OpId,
        /// The class of the operation.
        class: Class,
        /// The instruction that issues it.
        place: Place,
        /// Whether it belongs to the open group of its agent and class; otherwise only its signals report its completion.
        grouped: bool,
        /// The signals of its completion.
        signals: &'a [Signal],
    },
    /// An agent commits its open group of a class.
    Commit {
        /// The agent that commits.
        agent: Agent,
        /// The class of the group.
        class: Class,
        /// The number of groups that the agent has committed, this one included.
        groups: u32,
    },
    /// A wait for groups of an agent passed.
    GroupWait {
        /// The agent that waited.
        agent: Agent,
        /// The class of the groups.
        class: Class,
        /// The number of the agent's groups that are complete.
        complete: u32,
    },
    /// An asynchronous operation has completed and signalled.
    Complete {
        /// The operation.
        op: OpId,
        /// The agent that issued it.
        agent: Agent,
        /// The class of the operation.
        class: Class,
    },
    /// A barrier is initialised.
    Init {
        /// The barrier.
        barrier: BarrierId,
        /// The agent that initialises it.
        agent: Agent,
        /// The arrival count of each phase.
        count: u32,
        /// The storage of its word, if it has one.
        storage: Option<Storage>,
        /// The instruction.
        place: Place,
    },
    /// A barrier is invalidated.
    Invalidate {
        /// The barrier.
        barrier: BarrierId,
        /// The agent that invalidates it.
        agent: Agent,
        /// The instruction.
        place: Place,
    },
    /// The current phase of a barrier expects more arrivals.
    Expect {
        /// The barrier.
        barrier: BarrierId,
        /// The number of additional arrivals.
        count: u32,
    },
    /// An agent, or a completed operation, arrives at a barrier.
    Arrive {
        /// The barrier.
        barrier: BarrierId,
        /// The agent that arrives, or that issued the completed operation.
        agent: Agent,
        /// The completed operation that arrives: its effects and those ordered before it are released, not the agent's own.
        helper: Option<Helper>,
        /// The number of phases completed before this arrival.
        phase: u64,
        /// The number of arrivals; 0 if only the byte count changes.
        count: u32,
        /// The change of the byte count, positive for expected bytes and negative for transferred ones.
        bytes: i64,
        /// Whether the arrival count of later phases is lowered by `count`.
        drops: bool,
        /// For a relaxed arrival, the word that stands for the agent's fences: the arrival is counted, but releases only what was released
        /// through this word before. `None`: it releases all earlier events of the agent.
        relaxed: Option<(SpaceId, u64)>,
    },
    /// A phase completes.
    Flip {
        /// The barrier.
        barrier: BarrierId,
        /// The number of completed phases, this one included.
        phase: u64,
    },
    /// A wait of an agent for a phase passed.
    Observe {
        /// The barrier.
        barrier: BarrierId,
        /// The agent that waited.
        agent: Agent,
        /// A lower bound of the number of completed phases.
        phase: u64,
        /// For a relaxed wait, the word that the agent's next fence acquires: what the phase has released is released through this word.
        /// `None`: the agent acquires it.
        relaxed: Option<(SpaceId, u64)>,
    },
    /// A rendezvous completed, and releases its participants.
    Meet {
        /// The rendezvous.
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
        /// The memory that contains the word.
        space: SpaceId,
        /// The address of the word.
        address: u64,
    },
    /// An agent releases through a word of memory.
    Release {
        /// The agent that releases.
        agent: Agent,
        /// The memory that contains the word.
        space: SpaceId,
        /// The address of the word.
        address: u64,
    },
    /// An agent acquires through a word of memory.
    Acquire {
        /// The agent that acquires.
        agent: Agent,
        /// The memory that contains the word.
        space: SpaceId,
        /// The address of the word.
        address: u64,
    },
    /// What was released through one word is from now on also released through another. With words that belong to an agent, this describes
    /// fences: a write after a fence releases what came before the fence, and a fence acquires what earlier reads have observed.
    Forward {
        /// The memory that contains the word through which it was released, and the address of that word.
        from: (SpaceId, u64),
        /// The same of the other word.
        to: (SpaceId, u64),
    },
    /// A proxy fence: orders earlier accesses through one proxy before later ones through another.
    Fence {
        /// The agent that executes the fence.
        agent: Agent,
        /// The proxy of earlier accesses.
        from: Proxy,
        /// The proxy of later accesses.
        to: Proxy,
        /// The scope of the fence.
        scope: Scope,
        /// The memory that it orders.
        space: FenceSpace,
        /// The instruction.
        place: Place,
    },
    /// Bytes are given up, after all accesses to them: who gets them next is ordered after that by the machine. Accesses of the old owner that
    /// come later are for the client to find.
    Free {
        /// The memory that contains the bytes.
        space: SpaceId,
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        len: u64,
    },
    /// A fence on one side of a synchronization of threads, for memories whose operations run out of order (tensor memory): barriers order
    /// accesses to them only together with such fences.
    SyncFence {
        /// The agent that executes the fence.
        agent: Agent,
        /// The side of the synchronization.
        side: SyncSide,
        /// The instruction.
        place: Place,
    },
    /// An agent starts others: its earlier events are ordered before theirs.
    Fork {
        /// The agent that starts the others.
        agent: Agent,
        /// The agents that are started.
        into: &'a [Agent],
    },
    /// Agents are joined: their events are ordered before the later ones of one agent.
    Join {
        /// The agents that are joined.
        agents: &'a [Agent],
        /// The agent that continues after them.
        into: Agent,
    },
    /// An agent is blocked.
    Wait {
        /// The agent.
        agent: Agent,
        /// The reason why it waits.
        wait: Wait,
    },
    /// The new place of an agent, for reports only.
    At {
        /// The agent.
        agent: Agent,
        /// The instruction that it executes next.
        place: Place,
        /// A number of the client, as in [`Access::tag`].
        tag: u64,
    },
    /// An agent has ended.
    Exit {
        /// The agent.
        agent: Agent,
    },
}

/// The observer's request to end the run.
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

/// The observer that ignores all events.
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
