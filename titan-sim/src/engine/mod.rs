//! The execution engine: the common parts of the emulators and the simulator.
//!
//! A client provides the instructions; the engine provides everything that instructions of any vendor share, so that a
//! race, a deadlock or a read of undefined memory means the same thing wherever it is found.
//!
//! | module | part |
//! |---|---|
//! | [`agent`] | logical threads of control: ready, blocked and on what, done |
//! | [`space`] | byte-addressed memory: allocations with names and bounds, a poison bit for each byte |
//! | [`phase`] | barriers with a phase, an arrival count and a signed count of bytes (`mbarrier`) |
//! | [`rendezvous`] | barriers of a number of agents (`bar.sync`, `s_barrier`, cluster barriers) |
//! | [`pending`] | asynchronous operations in flight, their commit groups, and when they complete |
//! | [`machine`] | [`Engine`]: all of these together, reporting events to an observer |
//! | [`event`] | the events: accesses, issues, completions, arrivals, waits; and the [`Observer`] |
//! | [`race`] | an observer that finds unordered accesses, by vector clocks |
//! | [`schedule`] | the scheduling of agents: in turn, or by a seed |
//! | [`hash`], [`rng`] | a hash of states that is equal on every machine; a seeded generator |
//!
//! ```text
//! client ──── step(agent) ──▶ Engine ── Event ──▶ Observer (races, sanitizer, trace)
//!    ▲                          │
//!    └── apply the effect ◀── complete(op): as early, as late or as randomly as allowed
//! ```
//!
//! Everything is a pure function of its arguments: no clock, no threads, no hash order; all randomness comes from
//! a seed. All state is `Clone` and `Hash`, so that a model checker can backtrack and identify visited states.
//!
//! Deliberately absent: instructions, registers and divergence (the client's), time in cycles (the scheduler's), and
//! any table of a vendor's instructions.

pub mod agent;
pub mod event;
pub mod hash;
pub mod machine;
pub mod pending;
pub mod phase;
pub mod race;
pub mod rendezvous;
pub mod rng;
pub mod schedule;
pub mod space;

pub use agent::{Agent, AgentSet, Agents, State, Wait};
pub use event::{
    Access, AccessKind, Event, FenceSpace, Helper, Observer, Place, Proxy, Scope, Stop, Storage, Strength, SyncSide,
};
pub use hash::StateHasher;
pub use machine::{Deadlock, Engine, Halt};
pub use pending::{Class, Completion, Op, OpId, Pending, Signal};
pub use phase::{BarrierFault, BarrierId, PhaseBarrier};
pub use rendezvous::{Rendezvous, RendezvousFault, RendezvousId};
pub use rng::Rng;
pub use schedule::{Schedule, Scheduler};
pub use space::{AllocationId, Fault, Space, SpaceId};
