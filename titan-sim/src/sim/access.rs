//! Accesses to memory: conflicts with operations in flight, and the events for observers.
//!
//! An asynchronous access lasts from its issue until it completes, and an access of an agent is an instant. Two accesses that
//! overlap in time and in bytes, one of them a write, are a race whether or not an observer reports it: nothing waited for the
//! first one. (An observer of ordering finds more races in a single run; this check finds them in other runs, with `explore`.)

use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, stopped};
use super::plan::{
    BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, TENSOR_COMMIT, TENSOR_LOAD, TENSOR_STORE, VMCNT,
    WGMMA,
};
use super::tcgen05::{COLUMN, is_pipelined};
use super::tensor::bytes_of;
use super::value::View;
use super::work::{Res, Span, Touch, Work};
use crate::engine::{self, Access, AccessKind, Agent, Class, Event, Helper, Place, Proxy, Signal, Strength};
use titan_core::ir::{OpId, TileShape};

/// An access of an agent, or of an asynchronous operation that it starts.
#[derive(Clone, Debug)]
pub(super) struct Touching {
    pub(super) agent: usize,
    pub(super) op: OpId,
    pub(super) time: Option<u64>,
    pub(super) touch: Touch,
    pub(super) class: Option<Class>,
}

/// A read or a write of bytes of shared memory.
pub(super) const fn shared(cta: usize, lo: u64, hi: u64, write: bool) -> Touch {
    Touch { span: Span::Shared { cta, lo, hi }, write, strong: false }
}

/// A read or a write of a tile of a tensor.
pub(super) fn tensor(view: &View, first: Option<&[i64]>, shape: Option<TileShape>, write: bool, strong: bool) -> Touch {
    let (mut lo, mut hi) = (view.start.clone(), view.start.clone());
    hi.iter_mut().for_each(|h| *h += 1);
    for (i, (axis, extent)) in view.axes.iter().zip(&view.extents).enumerate() {
        let from = first.and_then(|f| f.get(i)).copied().unwrap_or(0);
        let n = match (first, shape) {
            (Some(_), Some(shape)) => shape.get(i).copied().map_or(*extent, i64::from),
            (Some(_), None) => 1,
            (None, _) => *extent,
        };
        let base = view.start.get(*axis).copied().unwrap_or(0);
        if let (Some(l), Some(h)) = (lo.get_mut(*axis), hi.get_mut(*axis)) {
            (*l, *h) = (base + from.clamp(0, *extent), base + (from + n).clamp(0, *extent));
        }
    }
    Touch { span: Span::Tensor { param: view.param, lo, hi }, write, strong }
}

impl Machine<'_> {
    /// The race of two accesses to the same bytes, one of them a write.
    pub(super) fn conflict(&self, new: &Touching, old: &Touching) -> Option<Box<Found>> {
        let (a, b) = (&new.touch, &old.touch);
        // Two bulk stores without a tile are compared by what they certainly write; two atomic updates do not race. A bulk store and an
        // atomic update do.
        let bulk = |t: &Touching| t.class == Some(BULK_WRITE);
        let somewhere = if bulk(new) { a.strong || b.strong } else { a.strong && b.strong };
        let alike = somewhere && bulk(new) == bulk(old);
        if !(a.write || b.write) || alike || !a.span.overlaps(&b.span) {
            return None;
        }
        // Operations of a wave on its local memory complete in order; stores in flight to a tensor do not.
        if new.agent == old.agent && new.class == old.class && new.class == Some(LGKMCNT) {
            return None;
        }
        let (mut first, mut second) = (self.side_of(new), self.side_of(old));
        (first.helper, second.helper) = (new.class.is_some(), old.class.is_some());
        let verb = |t: &Touch| if t.write { "written" } else { "read" };
        let what = first.what.clone();
        let mut message = format!("`{what}` is {} by {}", verb(a), self.role(new.agent));
        let own =
            if new.agent == old.agent { "its own".to_owned() } else { format!("that of {}", self.role(old.agent)) };
        message += &format!(", and nothing orders that with {own} `{}`, by which it is {}", second.op, verb(b));
        Some(Found::new(Kind::Race, message).side(first).side(second))
    }

    fn side_of(&self, t: &Touching) -> super::finding::Side {
        self.side(t.agent, t.op, Some(&t.touch), t.time)
    }

    /// Checks an access against all operations in flight.
    pub(super) fn check(&self, new: &Touching) -> Res<()> {
        self.check_except(new, &[])
    }

    /// Checks an access against the operations in flight other than these, after which it comes.
    fn check_except(&self, new: &Touching, before: &[engine::OpId]) -> Res<()> {
        for (_, old) in self.engine.pending().iter().filter(|(id, _)| !before.contains(id)) {
            for touch in &old.payload.touches {
                // Most pairs need no further check: two reads, or disjoint bytes.
                if !(new.touch.write || touch.write) || !new.touch.span.overlaps(&touch.span) {
                    continue;
                }
                let class = Some(old.class);
                let other = Touching {
                    agent: old.agent.index(),
                    op: old.payload.op,
                    time: old.payload.time,
                    touch: touch.clone(),
                    class,
                };
                if let Some(found) = self.conflict(new, &other) {
                    return Err(found);
                }
            }
        }
        self.check_words(new)
    }

    /// Checks that the words of live barriers are not accessed as data.
    fn check_words(&self, new: &Touching) -> Res<()> {
        let Span::Shared { cta, lo, hi } = new.touch.span else { return Ok(()) };
        let words = self.ctas.get(cta).map(|c| &c.words);
        let hit = words.and_then(|w| w.range(lo.saturating_sub(7)..hi).next());
        let Some((_, barrier)) = hit else { return Ok(()) };
        let verb = if new.touch.write { "written" } else { "read" };
        let message =
            format!("the word of `{}`, a live barrier, is {verb} as ordinary memory", self.barrier_name(*barrier));
        Err(Found::new(Kind::Barrier, message).side(self.side_of(new)))
    }

    /// An access of an agent itself, through the generic proxy.
    pub(super) fn touch(&self, agent: usize, op: OpId, time: Option<u64>, touch: Touch, obs: Obs<'_, '_>) -> Res<()> {
        self.touch_through(Proxy::Generic, (agent, op, time), touch, obs)
    }

    /// An access of an agent itself, through the given proxy.
    pub(super) fn touch_through(
        &self,
        proxy: Proxy,
        (agent, op, time): (usize, OpId, Option<u64>),
        touch: Touch,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let new = Touching { agent, op, time, touch, class: None };
        self.check(&new)?;
        if let Span::Tensor { param, .. } = new.touch.span
            && self.plan.mixed.get(param) == Some(&true)
        {
            let name = self.kernel().display_name(self.kernel().param(param));
            return Err(Found::not_modelled(format_args!(
                "an access to `{name}` beside raw stores to it: which bytes they write is unspecified"
            )));
        }
        self.tell_shared(&new, proxy, None, obs)
    }

    /// Reports an access to shared memory or to tensor memory.
    fn tell_shared(&self, t: &Touching, proxy: Proxy, helper: Option<Helper>, obs: Obs<'_, '_>) -> Res<()> {
        let (space, lo, hi, proxy) = match t.touch.span {
            Span::Shared { cta, lo, hi } => (self.store.shared.get(cta), lo, hi, proxy),
            // Tensor memory is accessed in one way only.
            Span::Columns { cta, lo, hi } => {
                (self.store.tensor.get(cta), u64::from(lo) * COLUMN, u64::from(hi) * COLUMN, Proxy::Generic)
            }
            Span::Tensor { .. } => return Ok(()),
        };
        let Some(space) = space.copied() else { return Ok(()) };
        let kind = if t.touch.write { AccessKind::Write } else { AccessKind::Read };
        let access = Access {
            agent: Agent::new(t.agent),
            place: Place::new(t.op.index()),
            space,
            address: lo,
            len: u32::try_from(hi - lo).unwrap_or(u32::MAX),
            kind,
            proxy,
            strength: Strength::Weak,
            unchanged: false,
            helper,
            tag: t.time.unwrap_or(0),
        };
        self.tell(obs, &Event::Access(access))
    }

    /// Whether a tensor is an input, which is never written.
    pub(super) fn is_input(&self, param: usize) -> bool {
        self.store.setup.tensors.get(param).and_then(Option::as_ref).is_none_or(|t| t.bytes.is_some())
    }

    /// Reports an access to an output. Elements that are selected by indices are written in any order, and updated atomically: those
    /// accesses are strong.
    pub(super) fn tell_tensor(
        &self,
        (agent, op): (usize, OpId),
        (view, first, shape): (&View, &[i64], TileShape),
        (kind, strength): (AccessKind, Strength),
        helper: Option<Helper>,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let Some(t) = self.store.setup.tensors.get(view.param).and_then(Option::as_ref).filter(|t| t.bytes.is_none())
        else {
            return Ok(());
        };
        // Two 4-bit elements share a byte; which of them is accessed is not known here.
        if strength == Strength::Strong && t.elem.bits() < 8 {
            return Ok(());
        }
        // Copies by threads are ordinary reads, also if they are in flight; other asynchronous accesses to tensors are bulk copies.
        let is_copy = kind == AccessKind::Read;
        let proxy = if helper.is_some() && !is_copy { Proxy::Async } else { Proxy::Generic };
        for (address, len) in bytes_of(t, view, first, shape) {
            let access = Access {
                agent: Agent::new(agent),
                place: Place::new(op.index()),
                space: self.store.global,
                address,
                len,
                kind,
                proxy,
                strength,
                unchanged: false,
                helper,
                tag: 0,
            };
            self.tell(obs, &Event::Access(access))?;
        }
        Ok(())
    }

    /// Starts an asynchronous operation, in the open group of its class if it has one.
    pub(super) fn start(
        &mut self,
        agent: usize,
        class: Class,
        (after, signals): (Vec<engine::OpId>, Vec<Signal>),
        work: Work,
        obs: Obs<'_, '_>,
    ) -> Res<engine::OpId> {
        let (op, time) = (work.op, work.time);
        let touches = work.touches.clone();
        let before = if is_pipelined(class) { self.engine.pending().before(&after) } else { Vec::new() };
        for touch in &touches {
            self.check_except(&Touching { agent, op, time, touch: touch.clone(), class: Some(class) }, &before)?;
        }
        let ungrouped = matches!(class, BULK_LOAD | RING_COPY)
            || class >= TENSOR_COMMIT
            || (class == CP_ASYNC && touches.is_empty());
        let new = engine::Op { agent: Agent::new(agent), class, after, signals, payload: work };
        let id = self
            .engine
            .issue(new, ungrouped, Place::new(op.index()), &mut &mut *obs)
            .map_err(|engine::event::Stop| stopped())?;
        let proxy = if matches!(class, CP_ASYNC | RING_COPY | VMCNT | LGKMCNT) { Proxy::Generic } else { Proxy::Async };
        for touch in touches {
            let told = Touching { agent, op, time, touch, class: Some(class) };
            self.tell_shared(&told, proxy, Self::helper(class, id), obs)?;
        }
        if !ungrouped {
            self.thread(agent)?.groups[usize::from(class.0)].open += 1;
        }
        Ok(id)
    }

    /// Commits the open group of a class; returns its number.
    pub(super) fn commit(&mut self, agent: usize, class: Class, obs: Obs<'_, '_>) -> Res<u32> {
        self.engine.commit(Agent::new(agent), class, &mut &mut *obs).map_err(|engine::event::Stop| stopped())?;
        let groups = &mut self.thread(agent)?.groups[usize::from(class.0)];
        let size = std::mem::take(&mut groups.open);
        groups.sizes.push_back(size);
        groups.committed += 1;
        Ok(groups.committed - 1)
    }

    /// Waits for a group, and so for all older groups of its class.
    pub(super) fn wait_for(&mut self, agent: usize, class: Class, group: u32, obs: Obs<'_, '_>) -> Res<()> {
        let committed = self.look(agent)?.groups[usize::from(class.0)].committed;
        self.wait_groups(agent, class, committed.saturating_sub(group.saturating_add(1)), obs)
    }

    /// Checks that an agent has no operation in flight that only it could wait for.
    pub(super) fn check_in_flight(&self, agent: usize, op: Option<OpId>) -> Res<()> {
        let thread = self.look(agent)?;
        for (class, what) in [
            (CP_ASYNC, "a copy"),
            (WGMMA, "an MMA"),
            (BULK_STORE, "a store"),
            (VMCNT, "a copy"),
            (LGKMCNT, "an access to local memory"),
            (TENSOR_LOAD, "a load of tensor memory"),
            (TENSOR_STORE, "a store to tensor memory"),
        ] {
            let groups = &thread.groups[usize::from(class.0)];
            if groups.open == 0 && groups.sizes.iter().all(|n| *n == 0) {
                continue;
            }
            let closed = if groups.open > 0 { " whose group is not committed" } else { "" };
            let mut found = Found::new(
                Kind::InFlight,
                format!("{} ends without having waited for {what}{closed}", self.role(agent)),
            );
            let last =
                self.engine.pending().iter().filter(|(_, o)| o.agent.index() == agent && o.class == class).last();
            if let Some(place) = last.map(|(_, o)| (o.payload.op, o.payload.touches.first(), o.payload.time)) {
                let mut side = self.side(agent, place.0, place.1, place.2);
                side.helper = true;
                found = found.side(side);
            } else if let Some(op) = op {
                found = found.side(self.side(agent, op, None, None));
            }
            return Err(found);
        }
        Ok(())
    }
}
