//! A block: its warps, its shared memory, its barriers, and who runs next.

use super::exec::{Copy, Fail, Step, World};
use super::launch::Env;
use super::warp::{Hold, Warp};
use std::collections::BTreeMap;
use titan_sim::engine::{Agent, BarrierId, Engine, OpId, RendezvousId, Scheduler, Space, SpaceId, State, Wait};

/// The class of `cp.async`.
pub(crate) const COPY: titan_sim::engine::Class = titan_sim::engine::Class(0);
/// Named barriers of a block.
const BARRIERS: u32 = 16;
/// Instructions that a fragment runs before another is looked at.
const QUANTUM: u32 = 1 << 12;
/// Fruitless rounds of polling after which nobody is believed to go on.
const PATIENCE: u32 = 1 << 12;

/// How a block's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    /// Everybody polls for something that another block may bring.
    Idle,
    /// The turn's steps are used up.
    Spent,
}

/// What a reduction at a barrier has gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathered {
    pub(crate) count: u32,
    pub(crate) all: bool,
    pub(crate) any: bool,
}

pub(crate) const NOTHING: Gathered = Gathered { count: 0, all: true, any: false };

/// What a thread's fences have to order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fenced {
    /// A fence came, and strong writes publish what was before it.
    pub(crate) releases: bool,
    /// Addresses of strong reads since the last fence.
    pub(crate) read: Vec<u64>,
}

pub(crate) struct Block<'a> {
    pub(crate) env: &'a Env<'a>,
    pub(crate) id: [u32; 3],
    pub(crate) warps: Vec<Warp>,
    pub(crate) engine: Engine<Copy>,
    pub(crate) shared: SpaceId,
    /// Barriers in shared memory, by address.
    pub(crate) barriers: BTreeMap<u64, BarrierId>,
    pub(crate) named: Vec<RendezvousId>,
    pub(crate) gathering: Vec<Gathered>,
    /// Results of reductions, by barrier and meeting.
    pub(crate) gathered: BTreeMap<(u32, u32), Gathered>,
    pub(crate) local: BTreeMap<u32, Space>,
    pub(crate) fenced: Vec<Fenced>,
    /// Grows with everything that somebody else could wait for.
    pub(crate) progress: u64,
    scheduler: Scheduler,
    /// Fruitless rounds in a row.
    idle: u32,
    /// Instructions so far: what clocks show.
    pub(crate) clock: u64,
}

impl<'a> Block<'a> {
    pub(crate) fn new(env: &'a Env<'a>, id: [u32; 3]) -> Block<'a> {
        let threads = env.threads;
        let program = env.program;
        let warp = |first: u32| Warp::new(program.n_regs, program.n_preds, first, threads - first);
        let warps = (0..threads.div_ceil(32)).map(|w| warp(w * 32)).collect();
        let mut engine = Engine::new(threads as usize, env.options.completion);
        let mut space = Space::new("shared");
        for (name, at, size) in &program.shared {
            space.allocate(name.as_str(), u64::from(*at), size.unwrap_or(env.launch.dynamic_shared) as usize);
        }
        let shared = engine.add_space(space);
        let named = (0..BARRIERS).map(|_| engine.add_meeting()).collect();
        Block {
            env,
            id,
            warps,
            engine,
            shared,
            barriers: BTreeMap::new(),
            named,
            gathering: vec![NOTHING; BARRIERS as usize],
            gathered: BTreeMap::new(),
            local: BTreeMap::new(),
            fenced: vec![Fenced::default(); threads as usize],
            progress: 0,
            scheduler: Scheduler::new(env.options.schedule),
            idle: 0,
            clock: 0,
        }
    }

    /// The agent of a lane.
    pub(crate) fn agent(&self, warp: usize, lane: usize) -> Agent {
        Agent::new(self.warps[warp].first as usize + lane)
    }

    fn agents_ready(&self, warp: usize, mask: u32) -> bool {
        super::warp::lanes_of(mask).all(|l| self.engine.agents().state(self.agent(warp, l)) == State::Ready)
    }

    /// A fragment of a warp that can run: one that does not poll in vain, or if `desperate` any.
    fn runnable(&self, warp: usize, desperate: bool) -> Option<usize> {
        let w = &self.warps[warp];
        let fruitful = |f: &usize| desperate || w.fragments[*f].polled != Some(self.progress);
        let can = |f: &usize| match w.fragments[*f].wait {
            Hold::None => true,
            Hold::Agents | Hold::Reduction { .. } => self.agents_ready(warp, w.fragments[*f].mask),
            Hold::Warp(_) => false,
        };
        (0..w.fragments.len()).rev().filter(fruitful).find(can)
    }

    fn pick(&mut self, desperate: bool) -> Option<(usize, usize)> {
        let mut scheduler = self.scheduler.clone();
        let warp = scheduler.pick(self.warps.len(), |w| self.runnable(w, desperate).is_some());
        self.scheduler = scheduler;
        warp.and_then(|w| Some((w, self.runnable(w, desperate)?)))
    }

    /// Runs until the block ends, polls in vain, or has used up `steps` instructions.
    pub(crate) fn run(&mut self, world: &mut World<'_>) -> Result<Turn, Box<Fail>> {
        let mut left = 1_u64 << 20;
        loop {
            if self.warps.iter().all(|w| w.live == 0) {
                return self.finish(world).map(|()| Turn::Done);
            }
            if let Some(op) = self.engine.happens() {
                self.complete(op, world)?;
            }
            if let Some((warp, fragment)) = self.pick(false) {
                self.idle = 0;
                let quantum = self.scheduler.quantum(QUANTUM);
                left = left.saturating_sub(quantum.into());
                self.run_fragment(warp, fragment, quantum, world)?;
                if left == 0 {
                    return Ok(Turn::Spent);
                }
                continue;
            }
            // Nobody goes on by itself: what is under way completes, as late as it could.
            if let Some(op) = self.engine.pending().oldest() {
                self.complete(op, world)?;
                continue;
            }
            self.idle += 1;
            match self.pick(true) {
                Some((warp, fragment)) if self.idle <= PATIENCE => {
                    self.run_fragment(warp, fragment, QUANTUM, world)?;
                }
                Some(_) => {
                    self.idle = 0;
                    return Ok(Turn::Idle);
                }
                None => return Err(Box::new(self.deadlock())),
            }
        }
    }

    /// At the end of the block, what is still under way completes.
    fn finish(&mut self, world: &mut World<'_>) -> Result<(), Box<Fail>> {
        while let Some(op) = self.engine.pending().oldest() {
            self.complete(op, world)?;
        }
        Ok(())
    }

    pub(crate) fn complete(&mut self, op: OpId, world: &mut World<'_>) -> Result<(), Box<Fail>> {
        self.progress += 1;
        let strict = self.env.options.strict();
        let mut place = None;
        let done = self.engine.complete(op, world.watch, |spaces, op| {
            place = Some((op.payload.place, op.agent));
            op.payload.apply(spaces, world.memory, strict)
        });
        done.map_err(|e: Fail| {
            let (at, agent) = place.unwrap_or((u32::MAX, Agent::new(0)));
            Box::new(e.or_at(at, agent))
        })
    }

    /// Runs a fragment for some instructions, while it can.
    fn run_fragment(
        &mut self,
        warp: usize,
        fragment: usize,
        quantum: u32,
        world: &mut World<'_>,
    ) -> Result<(), Box<Fail>> {
        let Some(mut f) = self.resume(warp, fragment) else { return Ok(()) };
        for _ in 0..quantum {
            *world.steps += 1;
            let pc = self.warps[warp].fragments[f].pc;
            let mask = self.warps[warp].fragments[f].mask;
            let step = self.step(warp, f, world).map_err(|fail| {
                let lane = mask.trailing_zeros() as usize;
                Box::new(fail.or_at(pc, self.agent(warp, lane.min(31))))
            })?;
            match step {
                Step::Next => {
                    self.warps[warp].advance(f, pc + 1);
                    let Some(same) = self.same(warp, f, pc + 1, mask) else { return Ok(()) };
                    f = same;
                }
                Step::Poll => {
                    self.warps[warp].fragments[f].polled = Some(self.progress);
                    self.warps[warp].advance(f, pc + 1);
                    return Ok(());
                }
                Step::Jump(to) => {
                    self.warps[warp].advance(f, to);
                    let Some(same) = self.same(warp, f, to, mask) else { return Ok(()) };
                    f = same;
                }
                Step::Held | Step::Changed => return Ok(()),
            }
        }
        Ok(())
    }

    /// The same fragment after it moved, if it is still there.
    fn same(&self, warp: usize, f: usize, pc: u32, mask: u32) -> Option<usize> {
        let there = self.warps[warp].fragments.get(f).is_some_and(|x| x.pc == pc && x.mask == mask);
        there.then_some(f)
    }

    /// What a fragment does when it is no longer held; where it is then, if it has not met others.
    fn resume(&mut self, warp: usize, f: usize) -> Option<usize> {
        let fragment = &mut self.warps[warp].fragments[f];
        let (wait, mask, pc) = (fragment.wait, fragment.mask, fragment.pc);
        fragment.wait = Hold::None;
        fragment.polled = None;
        if let Hold::Reduction { barrier, generation, op, dst } = wait {
            let result = self.gathered.get(&(barrier, generation)).copied().unwrap_or(NOTHING);
            self.deliver(warp, mask, op, dst, result);
        }
        if wait != Hold::None {
            self.warps[warp].advance(f, pc);
        }
        self.same(warp, f, pc, mask)
    }

    fn deliver(&mut self, warp: usize, mask: u32, op: super::op::Reduce, dst: super::op::Dst, result: Gathered) {
        use super::op::Reduce;
        let w = &mut self.warps[warp];
        let all = |b: bool| if b { u32::MAX } else { 0 };
        match op {
            Reduce::Popc => w.set_reg(dst, mask, &[result.count.into(); 32], u32::MAX),
            Reduce::And => w.set_pred(dst, mask, all(result.all), u32::MAX),
            Reduce::Or => w.set_pred(dst, mask, all(result.any), u32::MAX),
        }
    }

    /// Who waits for what.
    pub(crate) fn deadlock(&self) -> Fail {
        let mut lines = Vec::new();
        let mut first = None;
        for (i, w) in self.warps.iter().enumerate() {
            for f in &w.fragments {
                let lane = f.mask.trailing_zeros() as usize;
                let blocked =
                    super::warp::lanes_of(f.mask).find_map(|l| match self.engine.agents().state(self.agent(i, l)) {
                        State::Blocked(wait) => Some(wait),
                        State::Ready | State::Done => None,
                    });
                let why = match (f.wait, blocked) {
                    (Hold::Warp(mask), _) => format!("threads {mask:#010x} of the warp at `bar.warp.sync`"),
                    (_, Some(wait)) => self.reason(wait),
                    (..) if f.polled.is_some() => "something that it polls for".to_owned(),
                    _ => continue,
                };
                // Those who wait at a barrier have passed its instruction.
                let retries = matches!(blocked, Some(Wait::Phase { .. })) || blocked.is_none();
                let pc = if retries && f.polled.is_none() { f.pc } else { f.pc.saturating_sub(1) };
                first.get_or_insert((pc, self.agent(i, lane)));
                let line = self.env.line(pc);
                lines.push(format!("warp {i} (threads {:#010x}, PTX line {line}) waits for {why}", f.mask));
            }
        }
        let (pc, agent) = first.unwrap_or((u32::MAX, Agent::new(0)));
        let message = format!("nobody can go on:\n    {}", lines.join("\n    "));
        Fail::new(super::error::ErrorCode::Deadlock, message).or_at(pc, agent)
    }

    fn reason(&self, wait: Wait) -> String {
        let text = self.engine.reason(wait);
        match wait {
            Wait::Phase { barrier, .. } => {
                let address = self.barriers.iter().find(|(_, b)| **b == barrier).map_or(0, |(a, _)| *a);
                text.replace(&barrier.to_string(), &format!("the mbarrier at shared address {address:#x}"))
            }
            Wait::Meeting { rendezvous } => {
                text.replace(&rendezvous.to_string(), &format!("barrier {}", rendezvous.index()))
            }
            Wait::Groups { .. } | Wait::Other(_) => text,
        }
    }
}
