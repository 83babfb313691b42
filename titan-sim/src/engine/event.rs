//! What happens on a machine, as an observer is told.
//!
//! | event | what an observer of order makes of it |
//! |---|---|
//! | [`Event::Access`] | to check against accesses that are not ordered before it |
//! | [`Event::Issue`], [`Event::Commit`] | accesses of the operation belong to the agent's helper, not to the agent |
//! | [`Event::GroupWait`], [`Event::Complete`] | the helper's work up to here is ordered before what the agent does next |
//! | [`Event::Arrive`] | publishes on a barrier what the agent has done and seen |
//! | [`Event::Observe`] | takes over what a complete phase published |
//! | [`Event::Meet`] | everything of the participants before is ordered before everything after |
//! | [`Event::Release`], [`Event::Acquire`] | the same through a word of memory |
//! | [`Event::Overwrite`] | what was published through a word is no longer to be had there |
//! | [`Event::Fence`] | orders accesses of one proxy before those of another |
//! | [`Event::Fork`], [`Event::Join`] | one agent's knowledge goes to others; that of others goes to one |
//! | [`Event::Init`], [`Event::Invalidate`], [`Event::Expect`] | the life of a barrier, and what its phases count |
//! | [`Event::Wait`], [`Event::Exit`] | who cannot go on, and who is over: what a deadlock is made of |
//! | [`Event::At`] | where an agent is, for what it does in events without a place |
//!
//! Uses of barriers are told before they take effect: one that is a fault is told, and then the engine halts.
//!
//! An observer that has seen enough returns [`Stop`]; why is the observer's to tell.

use super::agent::{Agent, Wait};
use super::pending::{Class, OpId, Signal};
use super::phase::BarrierId;
use super::rendezvous::RendezvousId;
use super::space::SpaceId;

titan_core::entity! {
    /// Where in the program something happens: an index of the customer's (an operation, a line).
    Place, "at"
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes, indivisibly.
    Atomic,
}

/// The path on which memory is reached. Accesses through different ones need a fence between them.
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

/// How far a fence reaches: to memory of whom. Wider ones include narrower ones.
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

/// Which memory a fence is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceSpace {
    /// All of it.
    #[default]
    All,
    /// Shared memory of blocks.
    Shared,
    /// Device memory.
    Global,
    /// The words of barriers, as they were initialised.
    Inits,
}

/// Where the word of a barrier lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Storage {
    /// In which memory.
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
    /// Who.
    pub agent: Agent,
    /// In which instruction.
    pub place: Place,
    /// Which memory.
    pub space: SpaceId,
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub len: u32,
    /// What it does.
    pub kind: AccessKind,
    /// By which path.
    pub proxy: Proxy,
    /// Whether it may be unordered with its like.
    pub strength: Strength,
    /// A write of the very bytes that are there.
    pub unchanged: bool,
    /// The asynchronous operation whose access this is; `None` is the agent's own.
    pub helper: Option<Helper>,
    /// A number of the customer's own that reports repeat: a time, an iteration; 0 if there is none.
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

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Memory is accessed. Those of an asynchronous operation are told right after its issue: from then on they may happen.
    Access(Access),
    /// An asynchronous operation begins.
    Issue {
        /// Whose.
        agent: Agent,
        /// Which.
        op: OpId,
        /// Of what kind.
        class: Class,
        /// Where.
        place: Place,
        /// Whether it belongs to the open group of its agent and class, and not only its signals tell of it.
        grouped: bool,
        /// What its completion will signal.
        signals: &'a [Signal],
    },
    /// An agent's operations of a class since the last commit become a group.
    Commit {
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
        /// How many groups the agent has committed, this one included.
        groups: u32,
    },
    /// An agent knows its first groups complete.
    GroupWait {
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
        /// How many of the agent's groups are known to be complete.
        complete: u32,
    },
    /// An asynchronous operation has had its effect and has signalled.
    Complete {
        /// Which.
        op: OpId,
        /// Whose.
        agent: Agent,
        /// Of what kind.
        class: Class,
    },
    /// A barrier comes to life.
    Init {
        /// Which.
        barrier: BarrierId,
        /// By whom.
        agent: Agent,
        /// How many arrivals each phase expects.
        count: u32,
        /// Where its word lies, if it has one.
        storage: Option<Storage>,
        /// Where.
        place: Place,
    },
    /// A barrier dies.
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
    /// Somebody arrives at a barrier, or a completed operation does.
    Arrive {
        /// Where.
        barrier: BarrierId,
        /// Who, or whose operation.
        agent: Agent,
        /// The operation that arrives: what it and those it waited for did is published, not the agent's own work.
        helper: Option<Helper>,
        /// Completed phases before this arrival.
        phase: u64,
        /// How many arrivals; 0 for bytes.
        count: u32,
        /// The change of the byte count.
        bytes: i64,
        /// Whether later phases expect so many arrivals less.
        drops: bool,
        /// Whether it only counts and publishes nothing.
        relaxed: bool,
    },
    /// A phase ends.
    Flip {
        /// Of which barrier.
        barrier: BarrierId,
        /// Completed phases, this one included.
        phase: u64,
    },
    /// An agent knows that a phase has ended.
    Observe {
        /// Of which barrier.
        barrier: BarrierId,
        /// Who.
        agent: Agent,
        /// Completed phases, at least.
        phase: u64,
    },
    /// Agents have met.
    Meet {
        /// Where.
        rendezvous: RendezvousId,
        /// Those who waited: before and after are ordered.
        waited: &'a [Agent],
        /// Those who only arrived: what they did before is ordered before what those who waited do after.
        passed: &'a [Agent],
    },
    /// A word of memory gets a value that does not come from the one before: who reads it learns nothing of what was published
    /// through the word until then. (PTX ISA, "Memory Consistency Model": observation order goes on through atomic
    /// read-modify-writes, and not through stores.)
    Overwrite {
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// An agent publishes through a word of memory.
    Release {
        /// Who.
        agent: Agent,
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// An agent takes over what was published through a word.
    Acquire {
        /// Who.
        agent: Agent,
        /// Which memory.
        space: SpaceId,
        /// The word.
        address: u64,
    },
    /// An agent orders what it did by one path before what is done by another.
    Fence {
        /// Who.
        agent: Agent,
        /// The earlier path.
        from: Proxy,
        /// The later path.
        to: Proxy,
        /// For memory of whom.
        scope: Scope,
        /// For which memory.
        space: FenceSpace,
        /// Where.
        place: Place,
    },
    /// An agent lets others begin: they know all that it did and knows.
    Fork {
        /// Who.
        agent: Agent,
        /// The others.
        into: &'a [Agent],
    },
    /// Others have come to an end of what an agent let them do: it knows all that they did and know.
    Join {
        /// The others.
        agents: &'a [Agent],
        /// Who.
        into: Agent,
    },
    /// An agent cannot go on, until what it waits for has happened.
    Wait {
        /// Who.
        agent: Agent,
        /// For what.
        wait: Wait,
    },
    /// Where an agent is from now on. Only reports need it.
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

/// The observer wants the run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// Is told what happens.
pub trait Observer {
    /// Something happened.
    ///
    /// # Errors
    /// [`Stop`], if the run should end; the observer knows why.
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop>;
}

/// Nobody looks.
impl Observer for () {
    fn event(&mut self, _: &Event<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// Both look, and both are told even if the first has seen enough.
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
