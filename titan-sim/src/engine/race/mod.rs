//! An observer that finds races: unordered conflicting accesses.
//!
//! The algorithm is FastTrack's (Flanagan, Freund, PLDI 2009): a vector clock for each agent, the last write and the
//! last reads of each byte as epochs, so that an ordered access costs a comparison. Each agent has a *helper* thread
//! for each class of its asynchronous operations: the accesses of a copy are ordered after its agent's events before
//! the issue, and before events after a wait for it, but not otherwise, not even for the agent
//! itself. A race is therefore found in every run in which the two accesses occur, in whichever order.
//!
//! Two accesses conflict if they have a common byte, one of them writes, and they are not both [`Strength::Strong`]. Two
//! writes of equal bytes do not: compilers store replicated results from every thread that has them. A read conflicts
//! with the last of such writes.
//!
//! Limits: the watched memories have equal sizes, as the shared memories of a cluster's blocks do. A wait for one operation of a helper
//! also counts as a wait for the helper's earlier operations. That is exact for prefix classes (`cp.async`); for copies that complete
//! out of order, some races are not found.

mod clock;
mod shadow;

use super::agent::Agent;
use super::event::{Access, AccessKind, Event, FenceSpace, Observer, Place, Stop, Strength};
use super::pending::Class;
use super::space::SpaceId;
use clock::{Clocks, component};
use shadow::{Epoch, Shadow, Touch};

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The agent, or the agent of the operation.
    pub agent: Agent,
    /// The class of the asynchronous operation whose access it is.
    pub helper: Option<Class>,
    /// The instruction of the access.
    pub place: Place,
    /// The kind of the access.
    pub kind: AccessKind,
}

/// A data race: two conflicting accesses that happens-before does not order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The memory that both access.
    pub space: SpaceId,
    /// The first byte that both access.
    pub address: u64,
    /// The access that occurred first in the run.
    pub first: Side,
    /// The access that occurred second.
    pub second: Side,
}

/// A moment in the run of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    component: u32,
    clock: u32,
}

/// Watches one region of a memory, or the same region of several.
#[derive(Clone, Debug)]
pub struct Races {
    spaces: Vec<SpaceId>,
    base: u64,
    len: usize,
    clocks: Clocks,
    shadow: Shadow,
    found: Option<Race>,
}

impl Races {
    /// Watches `len` bytes from `base` on, accessed by this number of agents.
    #[must_use]
    pub fn new(agents: usize, space: SpaceId, base: u64, len: usize) -> Races {
        Races::over(agents, vec![space], base, len)
    }

    /// Watches `len` bytes from `base` on of each of these memories.
    #[must_use]
    pub fn over(agents: usize, spaces: Vec<SpaceId>, base: u64, len: usize) -> Races {
        let shadow = Shadow::new(len * spaces.len());
        Races { spaces, base, len, clocks: Clocks::new(agents), shadow, found: None }
    }

    /// The race because of which [`Stop`] was returned.
    #[must_use]
    pub const fn found(&self) -> Option<&Race> {
        self.found.as_ref()
    }

    /// The present moment of an agent.
    #[must_use]
    pub fn now(&self, agent: Agent) -> Moment {
        let component = component(agent.index());
        Moment { component, clock: self.clocks.own(component) }
    }

    /// Whether a moment is ordered before what an agent does next.
    #[must_use]
    pub fn is_after(&self, agent: Agent, moment: Moment) -> bool {
        self.clocks.known(agent).covers(moment.component, moment.clock)
    }

    /// Orders all earlier events before all later ones: another block starts on the same memory.
    pub fn restart(&mut self) {
        self.clocks.join_all();
    }

    /// Records that agents `first + i`, for the bits `i` of `lanes`, read the same bytes by one instruction. Returns false if nothing was
    /// recorded, and each of the reads must be reported by itself.
    pub fn read_together(&mut self, (first, lanes): (Agent, u32), read: &Access) -> bool {
        let Some(number) = self.spaces.iter().position(|s| *s == read.space) else { return true };
        let offset = usize::try_from(read.address.wrapping_sub(self.base)).unwrap_or(usize::MAX);
        let len = read.len as usize;
        if lanes == 0 || read.kind != AccessKind::Read || offset.checked_add(len).is_none_or(|end| end > self.len) {
            return false;
        }
        let first = first.index() + lanes.trailing_zeros() as usize;
        let lanes = lanes >> lanes.trailing_zeros();
        let Some((vector, clock)) = self.clocks.together(first, lanes) else { return false };
        let now = Epoch {
            component: component(first),
            lanes,
            clock,
            place: u32::try_from(read.place.index()).unwrap_or(u32::MAX),
            strong: read.strength == Strength::Strong,
        };
        self.shadow.read_together(number * self.len + offset, len, now, vector)
    }

    fn access(&mut self, a: &Access) -> Result<(), Stop> {
        let Some(number) = self.spaces.iter().position(|s| *s == a.space) else { return Ok(()) };
        let offset = usize::try_from(a.address.wrapping_sub(self.base)).unwrap_or(usize::MAX);
        if offset >= self.len {
            return Ok(());
        }
        let len = (a.len as usize).min(self.len - offset);
        let who = match a.helper {
            None => component(a.agent.index()),
            Some(h) => self.clocks.of_helper(a.agent, h.class),
        };
        let epoch = Epoch {
            component: who,
            lanes: 1,
            clock: self.clocks.own(who),
            place: u32::try_from(a.place.index()).unwrap_or(u32::MAX),
            strong: a.strength == Strength::Strong,
        };
        let known = self.clocks.known(a.agent);
        let start = number * self.len + offset;
        let Some((at, other, other_writes)) = self.shadow.access(start, len, epoch, kind_of(a), known) else {
            return Ok(());
        };
        let kind = |writes| if writes { AccessKind::Write } else { AccessKind::Read };
        let (agent, helper) = self.clocks.owner(other.component);
        let first = Side { agent, helper, place: Place::new(other.place as usize), kind: kind(other_writes) };
        let second = Side { agent: a.agent, helper: a.helper.map(|h| h.class), place: a.place, kind: a.kind };
        let address = self.base + (at - number * self.len) as u64;
        self.found = Some(Race { space: a.space, address, first, second });
        Err(Stop)
    }
}

fn kind_of(a: &Access) -> Touch {
    match a.kind {
        AccessKind::Read => Touch::Read,
        AccessKind::Write if a.unchanged => Touch::WriteSame,
        AccessKind::Write | AccessKind::Atomic => Touch::Write,
    }
}

impl Observer for Races {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let clocks = &mut self.clocks;
        match *event {
            Event::Access(ref access) => return self.access(access),
            Event::Issue { agent, op, class, .. } => clocks.issue(agent, class, op),
            Event::Commit { agent, class, .. } => clocks.commit(agent, class),
            Event::GroupWait { agent, class, complete } => clocks.group_wait(agent, class, complete),
            // Setting expected bytes alone releases nothing.
            Event::Arrive { helper: None, count: 0, .. } => {}
            Event::Arrive { barrier, agent, helper: None, relaxed: None, .. } => clocks.arrive(agent, barrier),
            Event::Arrive { barrier, agent, helper: None, relaxed: Some(fences), .. } => {
                clocks.arrive_relaxed(agent, fences, barrier);
            }
            Event::Arrive { barrier, agent, helper: Some(helper), .. } => {
                clocks.helper_arrives(agent, helper, barrier);
            }
            Event::Flip { barrier, .. } => clocks.flip(barrier),
            Event::Observe { barrier, agent, relaxed: None, .. } => clocks.observe(agent, barrier),
            Event::Observe { barrier, relaxed: Some(observed), .. } => clocks.observe_relaxed(observed, barrier),
            Event::Meet { waited, passed, .. } => clocks.meet(waited, passed),
            Event::Overwrite { space, address } => clocks.overwrite((space, address)),
            Event::Release { agent, space, address } => clocks.release(agent, (space, address)),
            Event::Acquire { agent, space, address } => clocks.acquire(agent, (space, address)),
            Event::Forward { from, to } => clocks.forward(from, to),
            Event::Complete { op, .. } => clocks.forget(op),
            // A reinitialised barrier has released nothing yet.
            Event::Init { barrier, .. } | Event::Invalidate { barrier, .. } => clocks.reset(barrier),
            Event::Fork { agent, into } => clocks.fork(agent, into),
            Event::Join { agents, into } => clocks.join_into(agents, into),
            Event::Fence { agent, space: FenceSpace::Inits, .. } => clocks.fence_inits(agent),
            // Vector clocks do not know memories whose operations run out of order.
            Event::SyncFence { .. }
            | Event::Free { .. }
            | Event::Fence { .. }
            | Event::Expect { .. }
            | Event::Wait { .. }
            | Event::At { .. }
            | Event::Exit { .. } => {}
        }
        Ok(())
    }
}
