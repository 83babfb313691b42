//! The parts of a machine that executes: what the emulators and the simulator are made of.
//!
//! A customer brings the instructions; the engine brings everything that instructions of any vendor share, so that a
//! race, a deadlock or a read of nothing means the same thing wherever it is found.
//!
//! | module | part |
//! |---|---|
//! | [`agent`] | logical threads of control: ready, blocked and on what, done |
//! | [`space`] | byte-addressed memory: allocations with names and bounds, a poison bit for each byte |
//! | [`phase`] | barriers with a phase, an arrival count and a signed count of bytes (`mbarrier`) |
//! | [`rendezvous`] | barriers at which a number of agents meet (`bar.sync`, `s_barrier`, cluster barriers) |
//! | [`pending`] | asynchronous operations in flight, their commit groups, and when they complete |
//! | [`machine`] | [`Engine`]: all of these together, telling an observer what happens |
//! | [`event`] | what is told: accesses, issues, completions, arrivals, waits; and the [`Observer`] |
//! | [`race`] | an observer that finds unordered accesses, by vector clocks |
//! | [`schedule`] | who runs next: in turn, or by a seed |
//! | [`hash`], [`rng`] | a hash of states that is equal on every machine; a seeded generator |
//!
//! ```text
//! customer ── step(agent) ──▶ Engine ── Event ──▶ Observer (races, sanitizer, trace)
//!    ▲                          │
//!    └── apply the effect ◀── complete(op): as early, as late or as randomly as allowed
//! ```
//!
//! Everything is a pure function of its arguments: no clock, no threads, no order of hashes; what is random comes from
//! a seed. All state is `Clone` and `Hash`, so that a model checker can go back and recognise where it has been.
//!
//! Deliberately absent: instructions, registers and divergence (the customer's), time in cycles (the scheduler's), and
//! any table of what a vendor's instructions mean.

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
    Access, AccessKind, Event, FenceSpace, Helper, Observer, Place, Proxy, Scope, Stop, Storage, Strength,
};
pub use hash::StateHasher;
pub use machine::{Deadlock, Engine, Halt};
pub use pending::{Class, Completion, Op, OpId, Pending, Signal};
pub use phase::{BarrierFault, BarrierId, PhaseBarrier};
pub use rendezvous::{Rendezvous, RendezvousFault, RendezvousId};
pub use rng::Rng;
pub use schedule::{Schedule, Scheduler};
pub use space::{AllocationId, Fault, Space, SpaceId};
