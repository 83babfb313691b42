//! Columns of tensor memory: which are allocated, by which value they are named, and who waits for some.
//!
//! An allocation takes the first columns that are free, or waits for others to be freed. Operations of two programs (`cta_group = 2`) are
//! executed by a warp of each: the first one waits for the other, and both get the same columns. Neither orders any other access: this takes
//! fences and barriers.
//!
//! Source: PTX ISA, "tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit", "Issue Granularity".
//!
//! Deliberately absent: other programs on the same multiprocessor, for whose columns an allocation may wait.

use super::memory::{COLUMN, touch};
use super::order::is_tracked;
use crate::engine::{Agent, Event, State, Wait};
use crate::sim::finding::{Found, Kind};
use crate::sim::machine::{Machine, Obs};
use crate::sim::state::Moved;
use crate::sim::value::Val;
use crate::sim::work::{Res, Span, Touch};
use std::collections::BTreeMap;
use titan_core::ir::{Op, OpId, TENSOR_COLUMNS, Value};

/// The reason for which an agent waits for columns, or for the other program of its pair.
pub(in crate::sim) const COLUMNS: u32 = 4;
/// The minimum of columns that is allocated; also their alignment.
const FEWEST: u32 = 32;

/// Columns that were allocated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim) struct Columns {
    pub(super) first: u32,
    pub(super) n: u32,
    /// The number of the allocation in its program.
    id: u32,
}

impl Columns {
    /// The access of their release, in a program.
    pub(in crate::sim) const fn touch(self, cta: usize) -> Touch {
        touch(cta, self.first, self.first + self.n, true)
    }
}

/// An operation of a pair of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Together {
    Alloc(u32),
    Free(u32),
    Relinquish,
}

/// An agent that has begun an operation of a pair of programs.
#[derive(Clone, Copy, Debug, Hash)]
struct Meeting {
    agent: usize,
    op: OpId,
    what: Together,
    /// Whether the other program has come too, so that the agent may go on.
    over: bool,
}

/// The allocations of a program.
#[derive(Clone, Debug, Default, Hash)]
pub(in crate::sim) struct Allocations {
    /// What is allocated, by number, with the value that names it.
    live: BTreeMap<u32, (Columns, Option<Value>)>,
    made: u32,
    relinquished: bool,
    /// The number of programs of all operations.
    pub(super) group: Option<u32>,
    meeting: Option<Meeting>,
}

impl Allocations {
    pub(super) fn is_live(&self, columns: Columns) -> bool {
        self.live.get(&columns.id).is_some_and(|(live, _)| *live == columns)
    }

    /// Whether these columns are free.
    fn are_free(&self, first: u32, n: u32) -> bool {
        !self.live.values().any(|(c, _)| first < c.first + c.n && c.first < first + n)
    }

    fn make(&mut self, first: u32, n: u32) {
        self.live.insert(self.made, (Columns { first, n, id: self.made }, None));
        self.made += 1;
    }

    /// The value that names the columns in which this range begins.
    pub(in crate::sim) fn name(&self, lo: u32) -> Option<Value> {
        self.live.values().find(|(c, _)| (c.first..c.first + c.n).contains(&lo)).and_then(|(_, value)| *value)
    }
}

impl Machine<'_> {
    pub(super) fn allocate(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (n, group): (u32, u32),
        obs: Obs<'_, '_>,
    ) -> Res<Moved> {
        let wrong =
            |m: &Self, text: String| Err(Found::new(Kind::TensorMemory, text).side(m.side(agent, id, None, None)));
        if !n.is_power_of_two() || !(FEWEST..=TENSOR_COLUMNS).contains(&n) {
            return wrong(self, format!("{n} columns: the number is a power of two from {FEWEST} to {TENSOR_COLUMNS}"));
        }
        let cta = self.cta(agent);
        if self.ctas.get(cta).is_some_and(|c| c.tensor.relinquished) {
            return wrong(self, "columns are allocated after the program has given that up".to_owned());
        }
        if group == 2 {
            if !self.together(agent, id, Together::Alloc(n), obs)? {
                return Ok(Moved::Blocked);
            }
        } else if !self.take_columns(&[cta], n) {
            return Ok(self.wait_for_columns(agent));
        }
        let Some(tensor) = self.cta_mut(agent).map(|c| &mut c.tensor) else { return Ok(Moved::On) };
        let made = tensor.made.wrapping_sub(1);
        let Some((columns, value)) = tensor.live.get_mut(&made) else { return Ok(Moved::On) };
        *value = op.results.first().copied();
        let columns = *columns;
        self.set(agent, &op.results, [Val::Columns(columns)])?;
        Ok(Moved::On)
    }

    pub(super) fn free(&mut self, agent: usize, id: OpId, op: &Op, group: u32, obs: Obs<'_, '_>) -> Res<Moved> {
        let cta = self.cta(agent);
        let waits = self.ctas.get(cta).and_then(|c| c.tensor.meeting).is_some_and(|m| m.agent == agent);
        let columns = if waits {
            let Val::Columns(columns) = self.arg(agent, op, 0) else { return Ok(Moved::On) };
            columns
        } else {
            let columns = self.columns(agent, op, 0)?;
            self.touch(agent, id, None, columns.touch(cta), obs)?;
            columns
        };
        if group == 2 {
            return Ok(if self.together(agent, id, Together::Free(columns.id), obs)? {
                Moved::On
            } else {
                Moved::Blocked
            });
        }
        self.free_columns(&[cta], columns.id, obs)?;
        Ok(Moved::On)
    }

    pub(super) fn relinquish(&mut self, agent: usize, id: OpId, group: u32, obs: Obs<'_, '_>) -> Res<Moved> {
        if group == 2 {
            return Ok(if self.together(agent, id, Together::Relinquish, obs)? { Moved::On } else { Moved::Blocked });
        }
        if let Some(cta) = self.cta_mut(agent) {
            cta.tensor.relinquished = true;
        }
        Ok(Moved::On)
    }

    fn wait_for_columns(&mut self, agent: usize) -> Moved {
        self.engine.agents_mut().set(Agent::new(agent), State::Blocked(Wait::Other(COLUMNS)));
        Moved::Blocked
    }

    fn wake_for_columns(&mut self) {
        self.engine.agents_mut().wake(|w| w == Wait::Other(COLUMNS));
    }

    /// Takes the first columns that are free in these programs; returns whether there are so many.
    fn take_columns(&mut self, programs: &[usize], n: u32) -> bool {
        let fits =
            |first: &u32| programs.iter().filter_map(|cta| self.ctas.get(*cta)).all(|c| c.tensor.are_free(*first, n));
        let last = TENSOR_COLUMNS - n;
        let Some(first) = (0..=last).step_by(FEWEST as usize).find(fits) else { return false };
        for cta in programs {
            if let Some(cta) = self.ctas.get_mut(*cta) {
                cta.tensor.make(first, n);
            }
        }
        true
    }

    /// Frees an allocation in these programs.
    fn free_columns(&mut self, programs: &[usize], id: u32, obs: Obs<'_, '_>) -> Res<()> {
        for cta in programs {
            let Some((columns, _)) = self.ctas.get_mut(*cta).and_then(|c| c.tensor.live.remove(&id)) else { continue };
            let (lo, n) = (u64::from(columns.first), u64::from(columns.n));
            if let Some(holding) = self.store.columns.get_mut(*cta) {
                holding.remove(lo, lo + n);
            }
            if let Some(space) = self.store.tensor.get(*cta).copied() {
                self.tell(obs, &Event::Free { space, address: lo * COLUMN, len: n * COLUMN })?;
            }
        }
        self.wake_for_columns();
        Ok(())
    }

    /// Whether an agent waits in an operation of a pair of programs to which the other one has come: that one may have ended since.
    pub(super) fn has_met(&self, agent: usize) -> bool {
        let meeting = self.ctas.get(self.cta(agent)).and_then(|c| c.tensor.meeting);
        meeting.is_some_and(|m| m.agent == agent && m.over)
    }

    /// An operation that both programs of a pair execute: returns whether both have come, or else blocks the agent.
    fn together(&mut self, agent: usize, op: OpId, what: Together, obs: Obs<'_, '_>) -> Res<bool> {
        let (cta, peer) = (self.cta(agent), self.cta(agent) ^ 1);
        let there = self.ctas.get(peer).and_then(|c| c.tensor.meeting).filter(|m| !m.over);
        let Some(own) = self.ctas.get_mut(cta).map(|c| &mut c.tensor.meeting) else { return Ok(true) };
        match own {
            Some(meeting) if meeting.agent != agent => {
                return Err(Found::not_modelled("operations of a pair of programs by two roles at once"));
            }
            Some(Meeting { over: true, .. }) => {
                *own = None;
                return Ok(true);
            }
            Some(_) => {}
            None => *own = Some(Meeting { agent, op, what, over: false }),
        }
        let Some(there) = there else {
            self.wait_for_columns(agent);
            return Ok(false);
        };
        if there.what != what {
            let message = "the two programs of a pair execute different operations on their columns";
            let sides = [self.side(agent, op, None, None), self.side(there.agent, there.op, None, None)];
            return Err(sides.into_iter().fold(Found::new(Kind::Participants, message), Found::side));
        }
        match what {
            Together::Alloc(n) => {
                if !self.take_columns(&[cta, peer], n) {
                    self.wait_for_columns(agent);
                    return Ok(false);
                }
            }
            Together::Free(id) => self.free_columns(&[cta, peer], id, obs)?,
            Together::Relinquish => {
                self.ctas.iter_mut().skip(cta & !1).take(2).for_each(|c| c.tensor.relinquished = true);
            }
        }
        if let Some(own) = self.ctas.get_mut(cta) {
            own.tensor.meeting = None;
        }
        if let Some(other) = self.ctas.get_mut(peer).and_then(|c| c.tensor.meeting.as_mut()) {
            other.over = true;
        }
        self.wake_for_columns();
        Ok(true)
    }

    /// Checks the end of a program: its columns are freed, and nothing accesses them any more.
    pub(in crate::sim) fn check_columns(&self, main: usize) -> Res<()> {
        let cta = self.cta(main);
        let (first, end) = (main, main + self.plan.agents());
        let mine = |span: &Span| matches!(span, Span::Columns { cta: c, .. } if *c == cta);
        let left = self.engine.pending().iter().find(|(_, o)| {
            let own = (first..end).contains(&o.agent.index()) && is_tracked(o.class);
            own || o.payload.touches.iter().any(|t| mine(&t.span))
        });
        if let Some((_, o)) = left {
            let mut side = self.side(o.agent.index(), o.payload.op, o.payload.touches.last(), None);
            side.helper = true;
            let message = "the program ends while an operation on tensor memory is in flight";
            return Err(Found::new(Kind::InFlight, message).side(side));
        }
        let Some(state) = self.ctas.get(cta) else { return Ok(()) };
        match state.tensor.live.values().next() {
            Some((columns, value)) => {
                let name = value.map(|v| self.kernel().display_name(v)).unwrap_or_default();
                let message = format!("the {} columns of `{name}` are never freed", columns.n);
                Err(Found::new(Kind::TensorMemory, message))
            }
            None => Ok(()),
        }
    }

    /// What an agent waits for that waits for columns.
    pub(in crate::sim) fn lacks_columns(&self, agent: usize) -> Option<String> {
        if self.engine.agents().state(Agent::new(agent)) != State::Blocked(Wait::Other(COLUMNS)) {
            return None;
        }
        let meeting = self.ctas.get(self.cta(agent)).and_then(|c| c.tensor.meeting).filter(|m| m.agent == agent);
        let what = if meeting.is_some() { "the other program of its pair, or free columns" } else { "free columns" };
        Some(format!("{} waits for {what} of tensor memory", self.role(agent)))
    }
}
