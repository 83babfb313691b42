//! A workgroup: its waves, its local data share, the operations in flight, and the scheduling of waves.

#![deny(clippy::wildcard_enum_match_arm)]

use super::error::ErrorCode;
use super::exec::effect::Effects;
use super::exec::transfer::{Action, Piece, Transfer};
use super::exec::{Run, Step, World};
use super::fail::Fail;
use super::held::Held;
use super::l1::L1;
use super::launch::Env;
use super::shaded::Parts;
use super::tell::deed;
use super::wave::{Counter, Fill, Serial, Wave};
use crate::model::banks::IN_ORDER;
use std::collections::VecDeque;
use titan_sim::engine::{
    Agent, Class, Completion, Engine, Op, OpId, Place, RendezvousId, Rng, Scheduler, Space, SpaceId, State,
};

/// The queue in which an operation waits for its completion. An operation on generic addresses is two: one on vector memory, and one on
/// the local data share, each for the lanes whose addresses are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Vector memory: completes in order; `vmcnt`.
    Vm,
    /// Vector memory to the local data share: the same order and counter.
    ToLds,
    /// The local data share: completes in order; `lgkmcnt`.
    Lds,
    /// Scalar memory: completes in any order; `lgkmcnt`.
    Smem,
}

/// The classes of operations in the engine.
pub(crate) const VM: Class = Class(0);
pub(crate) const LDS: Class = Class(1);
pub(crate) const SMEM: Class = Class(2);

impl Queue {
    const fn class(self) -> Class {
        match self {
            Queue::Vm | Queue::ToLds => VM,
            Queue::Lds => LDS,
            Queue::Smem => SMEM,
        }
    }

    /// The counter, for queues that complete in order.
    const fn counter(self) -> Option<Counter> {
        match self {
            Queue::Vm | Queue::ToLds => Some(Counter::Vm),
            Queue::Lds => Some(Counter::Lds),
            Queue::Smem => None,
        }
    }

    /// The largest number of operations that the counter can count; hardware waits before it issues more.
    const fn most(self) -> usize {
        match self {
            Queue::Vm | Queue::ToLds => 63,
            Queue::Lds | Queue::Smem => 15,
        }
    }
}

/// The reason why a workgroup's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    /// The steps of the turn are used up.
    Spent,
}

/// The number of instructions that a wave executes before another one is scheduled. A wave that waits in a loop for another one executes
/// as many of them for nothing.
const QUANTUM: u32 = 1 << 7;
/// The number of such parts, for each wave, of a workgroup's turn.
const TURN: u64 = 4;
/// The number of turns after which an operation completes that nobody waits for. A wave may store a flag for another workgroup and go on to
/// a barrier, or to a loop that waits for an answer: the store reaches memory in the end. No kernel issues so many instructions before
/// the wait for an operation.
const PATIENCE: usize = 64;

pub(crate) struct Group<'a> {
    pub(crate) env: &'a Env<'a>,
    pub(crate) id: [u32; 3],
    pub(crate) waves: Vec<Wave>,
    pub(crate) engine: Engine<Transfer>,
    pub(crate) barrier: RendezvousId,
    pub(crate) lds: SpaceId,
    lds_parts: Parts,
    l1: L1,
    scheduler: Scheduler,
    /// The number of operations issued so far.
    serial: Serial,
    /// That number at the end of each of the last turns.
    earlier: VecDeque<Serial>,
    /// Loads that the observer does not know as ordinary ones yet.
    pub(crate) held: Held,
    /// The clocks for which accesses to the local data share waited for banks.
    pub(crate) conflicts: u64,
    /// The accesses to the local data share, if they are recorded.
    pub(crate) accesses: Option<Vec<LocalAccess>>,
}

/// An access of a wave to the local data share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAccess {
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The number of the wave in it.
    pub wave: usize,
    /// The distance of the instruction from the first one of the kernel, in bytes.
    pub offset: u64,
    /// Whether it stores; atomic updates do.
    pub store: bool,
    /// The bytes that each lane accesses.
    pub bytes: u32,
    /// The active lanes and their addresses.
    pub lanes: Vec<(u8, u64)>,
}

impl<'a> Group<'a> {
    pub(crate) fn new(env: &'a Env<'a>, id: [u32; 3]) -> Run<Group<'a>> {
        let waves = (0..env.waves()).map(|w| env.start(id, w)).collect::<Run<Vec<_>>>()?;
        let mut engine = Engine::new(waves.len(), env.options.completion);
        let lds = engine.add_space(local_memory(env.lds_bytes as usize, env.fill(id).of(4)));
        let barrier = engine.add_meeting();
        let scheduler = Scheduler::new(env.options.schedule);
        let (lds_parts, l1, serial, conflicts) = (Parts::default(), L1::default(), 0, 0);
        let earlier = VecDeque::new();
        let held = Held::new(waves.len(), env.options.sanitize && env.module.compares());
        let accesses = None;
        Ok(Group {
            env,
            id,
            waves,
            engine,
            barrier,
            lds,
            lds_parts,
            l1,
            scheduler,
            serial,
            earlier,
            held,
            conflicts,
            accesses,
        })
    }

    #[expect(clippy::unused_self, reason = "agents are numbered like waves")]
    pub(crate) fn agent(&self, wave: usize) -> Agent {
        Agent::new(wave)
    }

    fn ready(&self, wave: usize) -> bool {
        !self.waves[wave].done && self.engine.agents().state(self.agent(wave)) == State::Ready
    }

    /// Runs until the workgroup ends or its turn's steps are used up.
    pub(crate) fn run(&mut self, world: &mut World<'_>) -> Run<Turn> {
        let mut left = TURN * u64::from(QUANTUM) * self.waves.len() as u64;
        loop {
            if self.waves.iter().all(|w| w.done) {
                return Ok(Turn::Done);
            }
            let mut scheduler = self.scheduler.clone();
            let picked = scheduler.pick(self.waves.len(), |w| self.ready(w));
            let Some(wave) = picked else { return Err(self.deadlock()) };
            let quantum = scheduler.quantum(QUANTUM);
            self.scheduler = scheduler;
            for _ in 0..quantum {
                if let Some(op) = self.engine.happens() {
                    self.complete(op, world)?;
                }
                *world.steps += 1;
                left = left.saturating_sub(1);
                let pc = self.waves[wave].pc;
                match self.step(wave, world).map_err(|f| f.or_at(pc, wave))? {
                    Step::Next | Step::Jump(_) => {}
                    Step::Wait | Step::End => break,
                    // The wave waits for another one, maybe of another workgroup.
                    Step::Yield => {
                        left = left.saturating_sub(QUANTUM.into());
                        break;
                    }
                }
            }
            if left == 0 || *world.steps > self.env.options.max_steps {
                self.complete_old(world)?;
                return Ok(Turn::Spent);
            }
        }
    }

    /// Completes, at the end of a turn, what was issued many turns ago.
    fn complete_old(&mut self, world: &mut World<'_>) -> Run<()> {
        self.earlier.push_back(self.serial);
        let Some(until) = (if self.earlier.len() > PATIENCE { self.earlier.pop_front() } else { None }) else {
            return Ok(());
        };
        let pending = self.engine.pending().iter().map(|(id, op)| (op.payload.serial, id));
        let mut old: Vec<(Serial, OpId)> = pending.filter(|(serial, _)| *serial <= until).collect();
        old.sort_unstable_by_key(|(serial, _)| *serial);
        old.into_iter().try_for_each(|(_, op)| self.complete(op, world))
    }

    /// The deadlock error, with the waits of all waves.
    fn deadlock(&self) -> Fail {
        let waits = (0..self.waves.len()).filter(|w| !self.waves[*w].done);
        let lines: Vec<String> = waits
            .clone()
            .map(|w| format!("wave {w} waits at the `s_barrier` before {:#x}", self.waves[w].pc - self.env.base))
            .collect();
        let first = waits.into_iter().next().unwrap_or(0);
        let message = format!("no wave can continue:\n    {}", lines.join("\n    "));
        Fail::new(ErrorCode::Deadlock, message).or_at(self.waves[first].pc.saturating_sub(4), first)
    }

    // Operations in flight.

    pub(crate) fn complete(&mut self, op: OpId, world: &mut World<'_>) -> Run<()> {
        let Group { engine, waves, lds_parts, l1, .. } = self;
        let memory = &mut *world.memory;
        engine.complete(op, world.watch, |spaces, o| {
            complete_one(&o.payload, &mut Effects { spaces, lds_parts, waves, memory, l1 })
        })
    }

    /// Completes all but the last `at_most` operations of a wave's queue.
    pub(crate) fn wait_queue(&mut self, wave: usize, queue: Queue, at_most: u32, world: &mut World<'_>) -> Run<()> {
        let agent = self.agent(wave);
        world.watch.at(agent, self.place(wave)).map_err(Fail::from)?;
        let Group { engine, waves, lds_parts, l1, .. } = self;
        let memory = &mut *world.memory;
        engine.wait_groups(agent, queue.class(), at_most, world.watch, |spaces, o| {
            complete_one(&o.payload, &mut Effects { spaces, lds_parts, waves, memory, l1 })
        })
    }

    /// Performs the vector memory operations of a wave that are in flight, because the wave is about to tell other waves something: what
    /// they then issue comes after these operations. See [`L1`].
    pub(crate) fn perform_all(&mut self, wave: usize, world: &mut World<'_>) -> Run<()> {
        let Group { engine, waves, lds_parts, l1, .. } = self;
        let all = waves[wave].in_order(Counter::Vm).all();
        let todo: Vec<OpId> = all.filter(|(serial, _)| !l1.is_performed(*serial)).map(|(_, op)| op).collect();
        let memory = &mut *world.memory;
        for op in todo {
            let Some(transfer) = engine.pending().get(op).map(|o| &o.payload) else { continue };
            // Performing them changes neither the spaces nor the operations of the engine.
            let mut effects = Effects { spaces: &mut [], lds_parts, waves, memory, l1 };
            transfer.perform_early(&mut effects)?;
        }
        Ok(())
    }

    pub(crate) fn place(&self, wave: usize) -> Place {
        let offset = self.waves[wave].pc.wrapping_sub(self.env.base) / 4;
        Place::new(usize::try_from(offset).unwrap_or(usize::MAX))
    }

    /// Starts an operation, whose addresses and data are captured. `generic`: it is a part of an operation on generic addresses.
    pub(crate) fn issue(
        &mut self,
        wave: usize,
        (queue, generic): (Queue, bool),
        mut transfer: Transfer,
        world: &mut World<'_>,
    ) -> Run<()> {
        if queue == Queue::Lds && transfer.writes_lds() {
            self.perform_all(wave, world)?;
        }
        self.serial += 1;
        transfer.serial = self.serial;
        let (agent, class) = (self.agent(wave), queue.class());
        self.make_room(wave, queue, world)?;
        let last = queue.counter().and_then(|c| self.waves[wave].in_order(c).all().next_back());
        let after = last.map(|(_, op)| op).into_iter().collect();
        let pieces = transfer.pieces.clone();
        let (reserved, scalar, mut deed) = (transfer.reserved, scalar_result(&transfer.action), deed(&transfer));
        if let (Action::Store { data, .. }, false) = (&transfer.action, world.watch.is_off()) {
            deed.same = self.repeated(&transfer.pieces, data);
        }
        let op = Op { agent, class, after, signals: Vec::new(), payload: transfer };
        let id = self.engine.issue(op, false, self.place(wave), world.watch).map_err(Fail::from)?;
        self.reserve(wave, queue, reserved, scalar)?;
        if let Some(counter) = queue.counter() {
            self.waves[wave].in_order_mut(counter).issue(self.serial, id, generic);
        }
        self.tell(wave, (class, id), &pieces, &deed, world)?;
        self.engine.commit(agent, class, world.watch).map_err(Fail::from)?;
        if self.env.options.completion == Completion::Early {
            self.complete(id, world)?;
        }
        Ok(())
    }

    /// Completes the oldest operation if the counter could not count another one, as hardware does before it issues more.
    fn make_room(&mut self, wave: usize, queue: Queue, world: &mut World<'_>) -> Run<()> {
        let oldest = match queue.counter() {
            Some(counter) => {
                let mut all = self.waves[wave].in_order(counter).all();
                if all.len() < queue.most() { None } else { all.next().map(|(_, op)| op) }
            }
            None => {
                let of = self.engine.pending().of(self.agent(wave), queue.class());
                of.first().copied().filter(|_| of.len() >= queue.most())
            }
        };
        oldest.map_or(Ok(()), |op| self.complete(op, world))
    }

    /// Reserves the registers that an operation will write. Operations of one queue write them in order; those of two queues in any order.
    fn reserve(
        &mut self,
        wave: usize,
        queue: Queue,
        vector: Option<(super::op::File, u8, u8, u64)>,
        scalar: Option<(u8, u8)>,
    ) -> Run<()> {
        let id = self.serial;
        if let Some((first, n)) = scalar {
            self.waves[wave].reserve_scalar(first, n, id)?;
        }
        let Some((file, first, n, lanes)) = vector else { return Ok(()) };
        for r in first..=first + (n - 1) {
            let unordered = |owner: &Serial| {
                self.in_flight(*owner).is_some_and(|o| o.class != queue.class() || queue.counter().is_none())
            };
            let owner = self.waves[wave].file(file).owners(r.into(), lanes).find(unordered);
            if owner.is_some() {
                let message = format!("two operations in flight are to write `{}{r}`, in any order", file.name());
                return Err(Fail::new(ErrorCode::InFlight, message).because(owner));
            }
            self.waves[wave].file_mut(file).reserve(r.into(), lanes, id)?;
        }
        Ok(())
    }

    /// The operation with a number, if it is in flight.
    pub(crate) fn in_flight(&self, serial: Serial) -> Option<&Op<Transfer>> {
        self.engine.pending().iter().map(|(_, op)| op).find(|op| op.payload.serial == serial)
    }

    /// Counts the clocks for which an access waits for banks, and records it if that is wanted.
    pub(crate) fn record(&mut self, wave: usize, store: bool, pieces: &[Piece]) {
        let Some(bytes) = pieces.first().map(|piece| u32::from(piece.bytes)) else { return };
        // An instruction with two addresses makes two accesses; the pieces of a lane follow each other.
        let of_lane = pieces.iter().take_while(|piece| piece.lane == pieces[0].lane).count().max(1);
        for number in 0..of_lane {
            let own = pieces.iter().skip(number).step_by(of_lane);
            let lanes: Vec<(u8, u64)> = own.filter_map(|piece| Some((piece.lane, piece.at.lds()?))).collect();
            self.conflicts += IN_ORDER.clocks(store, bytes, &lanes).conflicts;
            let code = self.env.code();
            if let Some(accesses) = &mut self.accesses {
                let offset = self.waves[wave].pc.wrapping_sub(code);
                accesses.push(LocalAccess { workgroup: self.id, wave, offset, store, bytes, lanes });
            }
        }
    }
}

/// Completes an operation, which then is no longer in flight for its wave.
fn complete_one(transfer: &Transfer, effects: &mut Effects<'_>) -> Run<()> {
    transfer.complete(effects)?;
    if let Some(wave) = effects.waves.get_mut(transfer.wave) {
        for counter in [Counter::Vm, Counter::Lds] {
            wave.in_order_mut(counter).complete(transfer.serial);
        }
    }
    Ok(())
}

/// A local data share, whose bytes are undefined or random.
fn local_memory(bytes: usize, fill: Fill) -> Space {
    let mut space = Space::new("LDS");
    if bytes > 0 {
        space.allocate("the workgroup's LDS", 0, bytes);
    }
    if bytes > 0 && fill.defined {
        let mut rng = Rng::new(fill.seed);
        #[expect(clippy::cast_possible_truncation, reason = "random bits")]
        let random: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        // It was just allocated.
        let written = space.write(0, &random);
        debug_assert!(written.is_ok(), "the whole space can be written");
    }
    space
}

const fn scalar_result(action: &Action) -> Option<(u8, u8)> {
    match action {
        Action::Scalar { first, words, .. } => Some((*first, *words)),
        Action::Clock { first, .. } => Some((*first, 2)),
        Action::Load { .. }
        | Action::Store { .. }
        | Action::Atomic { .. }
        | Action::ToLds { .. }
        | Action::Values { .. } => None,
    }
}
