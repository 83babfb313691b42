//! Which proxy fences count for all threads of a warp.
//!
//! The sanitizer takes the threads of a warp as one, so that a fence by one of them would cover the reads of all. But a fence
//! orders what its own thread did, and what other threads released to it before. So a fence counts for reads only when it
//! covers every thread of the warp that has read shared memory since its last release:
//!
//! | step | fence of thread 0 |
//! |---|---|
//! | all threads of a warp read | |
//! | thread 0 executes the fence | counts for writes only: threads 1 to 31 have released nothing |
//! | `bar.sync` | releases the reads of all threads |
//! | thread 0 executes the fence | counts |
//!
//! If all threads of the warp execute the fence, that of the last one counts. What threads have *written* needs no such rule: [`proxy`]
//! keeps the view of each thread on the bytes themselves.
//!
//! Strong reads are those of counters and flags, to which no copy goes, and are not recorded.
//!
//! Deliberately absent: which bytes a thread has read, so that the fence of one thread does not count for reads if others of its warp have read
//! anything; a fence that some threads execute in a wider form counts only if the thread that executes the narrower one is the last; to whom
//! a thread has released. A release to a third thread counts too; whether the fence's thread has acquired from it is seen by the race detector.
//!
//! Source: PTX ISA, "Causality order", proxy-preserved base causality order.
//!
//! [`proxy`]: super::proxy

use std::collections::BTreeMap;
use titan_sim::engine::{AccessKind, Agent, Event, FenceSpace, Proxy, Scope, Strength};

/// The memory and the scope of a fence.
type Fence = (FenceSpace, Scope);

/// Whether a fence orders all that another one orders.
fn covers((space, scope): Fence, (of, least): Fence) -> bool {
    (space == FenceSpace::All || space == of) && scope >= least
}

/// The threads that have read shared memory since their last release, each with the fences that it has executed since its last read.
#[derive(Debug)]
pub(crate) struct Fences {
    /// The number of threads of a block.
    threads: usize,
    readers: BTreeMap<Agent, Vec<Fence>>,
}

impl Fences {
    pub(crate) const fn new(threads: usize) -> Fences {
        Fences { threads, readers: BTreeMap::new() }
    }

    pub(crate) fn restart(&mut self) {
        self.readers.clear();
    }

    /// Records an event. Returns whether the sanitizer is to receive it as it is; otherwise it is a fence that counts for writes only.
    pub(crate) fn passes(&mut self, event: &Event<'_>) -> bool {
        match *event {
            Event::Access(ref access) => {
                let reads = match access.kind {
                    AccessKind::Read | AccessKind::Atomic => true,
                    AccessKind::Write => false,
                };
                let plain = access.strength == Strength::Weak && access.helper.is_none();
                if reads && plain && access.proxy == Proxy::Generic {
                    self.readers.insert(access.agent, Vec::new());
                }
                true
            }
            Event::Fence { agent, from: Proxy::Generic, scope, space, .. } => self.fence(agent, (space, scope)),
            Event::Arrive { agent, helper: None, relaxed: None, count: 1.., .. }
            | Event::Release { agent, .. }
            | Event::Exit { agent } => {
                self.readers.remove(&agent);
                true
            }
            Event::Meet { waited, passed, .. } => {
                for agent in waited.iter().chain(passed) {
                    self.readers.remove(agent);
                }
                true
            }
            Event::Fence { from: Proxy::Async | Proxy::TensorMap, .. }
            | Event::Arrive { .. }
            | Event::SyncFence { .. }
            | Event::Free { .. }
            | Event::Issue { .. }
            | Event::Commit { .. }
            | Event::GroupWait { .. }
            | Event::Complete { .. }
            | Event::Init { .. }
            | Event::Invalidate { .. }
            | Event::Expect { .. }
            | Event::Flip { .. }
            | Event::Observe { .. }
            | Event::Overwrite { .. }
            | Event::Acquire { .. }
            | Event::Forward { .. }
            | Event::Fork { .. }
            | Event::Join { .. }
            | Event::Wait { .. }
            | Event::At { .. } => true,
        }
    }

    /// Whether this fence completes one of all readers of the warp.
    fn fence(&mut self, agent: Agent, fence: Fence) -> bool {
        if let Some(fences) = self.readers.get_mut(&agent)
            && !fences.contains(&fence)
        {
            fences.push(fence);
        }
        let block = agent.index() / self.threads * self.threads;
        let first = block + (agent.index() - block) / 32 * 32;
        let after = (first + 32).min(block + self.threads);
        self.readers
            .range(Agent::new(first)..Agent::new(after))
            .all(|(_, fences)| fences.iter().any(|own| covers(*own, fence)))
    }
}
