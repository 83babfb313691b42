//! A cluster: its blocks, their warps, shared memory and barriers, and the scheduling of warps. A launch without clusters has
//! clusters of one block.
//!
//! Inside the emulator, shared addresses carry the rank of the block in their upper bits, see [`in_block`]. The address that a thread
//! sees has the same lower bits, and above them 0 for its own block, or one more than the rank.

use super::exec::{Fail, Step, World};
use super::group::Group;
use super::job::{Ground, Job, Taken};
use super::launch::Env;
use super::products::Products;
use super::proxy::Stores;
use super::warp::{Hold, Warp};
use std::collections::BTreeMap;
use titan_sim::engine::{
    Agent, BarrierId, Class, Engine, OpId, Place, RendezvousId, Scheduler, Space, SpaceId, State, Wait,
};

/// The class of `cp.async`.
pub(crate) const COPY: Class = Class(0);
/// The class of bulk copies to shared memory.
pub(crate) const LOAD: Class = Class(1);
/// The classes of the reads and of the writes of bulk copies to global memory.
pub(crate) const TAKE: Class = Class(2);
pub(crate) const PUT: Class = Class(3);
/// The class of `wgmma`.
pub(crate) const MULTIPLY: Class = Class(4);
/// The class of `st.async`.
pub(crate) const STORE: Class = Class(5);
/// The number of bits of an address in shared memory, below the block's rank.
const CTA_BITS: u32 = 24;
/// The number of named barriers of a block.
const BARRIERS: u32 = 16;
/// The number of instructions that a fragment executes before another one is scheduled.
const QUANTUM: u32 = 1 << 12;
/// The number of consecutive rounds of polling without progress after which the cluster yields to others.
const PATIENCE: u32 = 1 << 12;

/// The reason why a cluster's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    /// All threads poll for something that another cluster may provide.
    Idle,
    /// The steps of the turn are used up.
    Spent,
}

/// The operands of a reduction at a barrier, as far as they have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathered {
    pub(crate) count: u32,
    pub(crate) all: bool,
    pub(crate) any: bool,
}

pub(crate) const NOTHING: Gathered = Gathered { count: 0, all: true, any: false };

/// A block of a cluster.
pub(crate) struct Cta {
    /// `%ctaid`
    pub(crate) id: [u32; 3],
    pub(crate) named: Vec<RendezvousId>,
    pub(crate) gathering: Vec<Gathered>,
    /// The results of reductions, by barrier and by the barrier's completion count.
    pub(crate) gathered: BTreeMap<(u32, u32), Gathered>,
    /// Registers that `setmaxnreg` has released.
    pub(crate) free_registers: u32,
    /// For each warpgroup, the instructions that its warps have executed together.
    pub(crate) groups: Vec<Group>,
}

pub(crate) struct Cluster<'a> {
    pub(crate) env: &'a Env<'a>,
    /// Its number among the clusters of the launch.
    pub(crate) number: u64,
    /// `%clusterid`
    pub(crate) id: [u32; 3],
    pub(crate) ctas: Vec<Cta>,
    /// The warps of all blocks, in the order of the blocks' ranks.
    pub(crate) warps: Vec<Warp>,
    /// The engine; its memories are the shared memories of the blocks.
    pub(crate) engine: Engine<Job>,
    /// The barriers in shared memory, by address with rank.
    pub(crate) barriers: BTreeMap<u64, BarrierId>,
    /// Barriers whose initialisation was not fenced, and the agent that initialised them: bulk copies and other blocks may not see it.
    pub(crate) unfenced: BTreeMap<u64, Agent>,
    /// The barrier of the cluster, and the threads that have ended after they arrived there.
    pub(crate) barrier: BarrierId,
    pub(crate) left: Vec<Agent>,
    pub(crate) local: BTreeMap<usize, Space>,
    /// For each thread, the phase of the cluster's barrier in which it has arrived and not yet waited.
    pub(crate) arrived: Vec<Option<u64>>,
    /// The stores to shared memory, and the threads that have fenced them.
    pub(crate) stores: Stores,
    pub(crate) taken: Taken,
    /// The errors of fragments that wait for the end of other threads of their warp, by warp and threads, in case these do not end.
    apart: BTreeMap<(usize, u32), Box<Fail>>,
    pub(crate) tickets: u64,
    /// A counter that grows with every change for which another thread could wait.
    pub(crate) progress: u64,
    scheduler: Scheduler,
    /// The number of consecutive rounds without progress.
    idle: u32,
    /// The number of instructions so far, which clock registers return.
    pub(crate) clock: u64,
}

impl<'a> Cluster<'a> {
    /// Creates the cluster with this number, in the order of the grid.
    pub(crate) fn new(env: &'a Env<'a>, number: u64, world: &mut World<'_>) -> Result<Cluster<'a>, Box<Fail>> {
        let (threads, size) = (env.threads as usize, env.cluster_size());
        let mut engine = Engine::new(threads * size, env.options.completion);
        let mut ctas = Vec::new();
        let mut warps = Vec::new();
        for rank in 0..size {
            let id = env.block_of(number, rank);
            engine.add_space(shared_memory(env, rank));
            let members = rank * threads..(rank + 1) * threads;
            let named = (0..BARRIERS).map(|_| engine.add_meeting_of(members.clone())).collect();
            ctas.push(Cta {
                id,
                named,
                gathering: vec![NOTHING; BARRIERS as usize],
                gathered: BTreeMap::new(),
                free_registers: 0,
                groups: vec![Group::default(); threads.div_ceil(128)],
            });
            warps.extend((0..env.threads.div_ceil(32)).map(|w| warp(env, rank, w * 32)));
        }
        let barrier = engine.add_barrier();
        let everybody = u32::try_from(threads * size).unwrap_or(0);
        engine
            .init(Agent::new(0), barrier, everybody, None, Place::new(0), world.watch)
            .map_err(|halt| Box::new(Fail::from(halt).or_at(0, Agent::new(0))))?;
        Ok(Cluster {
            env,
            number,
            id: env.cluster_of(number),
            ctas,
            warps,
            engine,
            barriers: BTreeMap::new(),
            unfenced: BTreeMap::new(),
            barrier,
            left: Vec::new(),
            local: BTreeMap::new(),
            arrived: vec![None; threads * size],
            stores: Stores::default(),
            taken: BTreeMap::new(),
            apart: BTreeMap::new(),
            tickets: 0,
            progress: 0,
            scheduler: Scheduler::new(env.options.schedule),
            idle: 0,
            clock: 0,
        })
    }

    /// The agent of a lane.
    pub(crate) fn agent(&self, warp: usize, lane: usize) -> Agent {
        let w = &self.warps[warp];
        Agent::new((w.rank * self.env.threads + w.first) as usize + lane)
    }

    /// The block of a warp.
    pub(crate) fn cta(&self, warp: usize) -> &Cta {
        &self.ctas[self.warps[warp].rank as usize]
    }

    /// The memory of an address with a rank, and the address in that memory.
    pub(crate) fn shared(&self, address: u64) -> Option<(&Space, u64)> {
        let (space, at) = split(address);
        self.engine.space(space).map(|s| (s, at))
    }

    fn agents_ready(&self, warp: usize, mask: u32) -> bool {
        super::warp::lanes_of(mask).all(|l| self.engine.agents().state(self.agent(warp, l)) == State::Ready)
    }

    /// A fragment of a warp that can run: one that does not poll without success, or any fragment if `desperate`.
    fn runnable(&self, warp: usize, desperate: bool) -> Option<usize> {
        let w = &self.warps[warp];
        let fruitful = |f: &usize| desperate || w.fragments[*f].polled != Some(self.progress);
        let can = |f: &usize| match w.fragments[*f].wait {
            Hold::None => true,
            Hold::Agents | Hold::Reduction { .. } => self.agents_ready(warp, w.fragments[*f].mask),
            Hold::Warp(_) => false,
            Hold::Registers(wanted) => self.cta(warp).free_registers >= wanted,
            Hold::Ends { threads, .. } => w.live & threads == 0,
        };
        (0..w.fragments.len()).rev().filter(fruitful).find(can)
    }

    fn pick(&mut self, desperate: bool) -> Option<(usize, usize)> {
        let mut scheduler = self.scheduler.clone();
        let warp = scheduler.pick(self.warps.len(), |w| self.runnable(w, desperate).is_some());
        self.scheduler = scheduler;
        warp.and_then(|w| Some((w, self.runnable(w, desperate)?)))
    }

    /// Runs until the cluster ends, all its threads poll without success, or `steps` instructions are executed.
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
            // No thread can continue: an operation in flight completes, at the latest possible moment.
            if let Some(op) = self.engine.pending().oldest() {
                self.complete(op, world)?;
                continue;
            }
            if self.part_early() {
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

    /// Lets threads go on for whose end others of their warp wait, where they wait for these to reconverge.
    fn part_early(&mut self) -> bool {
        self.warps.iter_mut().any(|w| {
            let waited = w.fragments.iter().filter_map(|f| match f.wait {
                Hold::Ends { threads, anyway: true } | Hold::Warp(threads) => Some(threads),
                Hold::Ends { .. } | Hold::None | Hold::Agents | Hold::Reduction { .. } | Hold::Registers(_) => None,
            });
            let threads = waited.fold(0, |all, threads| all | threads);
            w.part_early(threads)
        })
    }

    /// At the end of the cluster, operations that are still in flight complete.
    fn finish(&mut self, world: &mut World<'_>) -> Result<(), Box<Fail>> {
        while let Some(op) = self.engine.pending().oldest() {
            self.complete(op, world)?;
        }
        Ok(())
    }

    pub(crate) fn complete(&mut self, op: OpId, world: &mut World<'_>) -> Result<(), Box<Fail>> {
        self.progress += 1;
        let mut place = None;
        let (engine, mut ground) = self.ground(&mut *world.memory);
        let done = engine.complete(op, world.watch, |spaces, op| {
            place = Some((op.payload.place, op.agent));
            ground.complete(spaces, op.agent, &op.payload)
        });
        done.map_err(|e: Fail| {
            let (at, agent) = place.unwrap_or((u32::MAX, Agent::new(0)));
            Box::new(e.or_at(at, agent))
        })
    }

    /// Runs a fragment for some instructions, as long as it can run.
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
            let step = self.step(warp, f, world).map_err(|fail: Fail| {
                let lane = mask.trailing_zeros() as usize;
                let blamed = fail.lane.unwrap_or(lane).min(31);
                Box::new(fail.or_at(pc, self.agent(warp, blamed)))
            });
            let step = match step {
                // Threads that are elsewhere may still end.
                Err(fail) if fail.absent != 0 && fail.absent & mask == 0 => {
                    self.warps[warp].fragments[f].wait = Hold::Ends { threads: fail.absent, anyway: fail.anyway };
                    self.apart.insert((warp, mask), fail);
                    return Ok(());
                }
                other => other?,
            };
            self.check_clobbered(warp, pc)?;
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

    /// The fragment's index after it moved, if it still exists.
    fn same(&self, warp: usize, f: usize, pc: u32, mask: u32) -> Option<usize> {
        let there = self.warps[warp].fragments.get(f).is_some_and(|x| x.pc == pc && x.mask == mask);
        there.then_some(f)
    }

    /// Continues a fragment that is no longer held; returns its index, unless it was merged with others.
    fn resume(&mut self, warp: usize, f: usize) -> Option<usize> {
        let fragment = &mut self.warps[warp].fragments[f];
        let (wait, mask, pc) = (fragment.wait, fragment.mask, fragment.pc);
        fragment.wait = Hold::None;
        fragment.polled = None;
        if let Hold::Reduction { barrier, generation, op, dst } = wait {
            let result = self.cta(warp).gathered.get(&(barrier, generation)).copied().unwrap_or(NOTHING);
            self.deliver(warp, mask, op, dst, result);
        }
        self.apart.remove(&(warp, mask));
        // A fragment that waits for registers or for the end of others executes its instruction again.
        if !matches!(wait, Hold::None | Hold::Registers(_) | Hold::Ends { .. }) {
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

    /// The deadlock error: the threads that wait, and the event that each waits for. If threads do not execute an instruction with others
    /// of their warp, it is that.
    pub(crate) fn deadlock(&self) -> Fail {
        if let Some(fail) = self.apart.values().next() {
            return Fail::clone(fail);
        }
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
                    (Hold::Registers(wanted), _) => {
                        let free = self.cta(i).free_registers;
                        format!(
                            "{wanted} registers of the block's pool, which has {free}: `setmaxnreg.inc` goes on when other warps have released theirs"
                        )
                    }
                    (Hold::Ends { threads, .. }, _) => format!("the end of threads {threads:#010x} of the warp"),
                    (Hold::Warp(mask), _) => format!("threads {mask:#010x} of the warp at `bar.warp.sync`"),
                    (_, Some(wait)) => self.reason(wait),
                    (..) if f.polled.is_some() => "something that it polls for".to_owned(),
                    _ => continue,
                };
                // A fragment that waits at a barrier has already advanced past its instruction.
                let retries = matches!(blocked, Some(Wait::Phase { barrier, .. }) if barrier != self.barrier)
                    || blocked.is_none();
                let pc = if retries && f.polled.is_none() { f.pc } else { f.pc.saturating_sub(1) };
                first.get_or_insert((pc, self.agent(i, lane)));
                let line = self.env.line(pc);
                lines.push(format!("warp {i} (threads {:#010x}, PTX line {line}) waits for {why}", f.mask));
            }
        }
        let (pc, agent) = first.unwrap_or((u32::MAX, Agent::new(0)));
        let message = format!("deadlock: no thread can continue\n    {}", lines.join("\n    "));
        Fail::new(super::error::ErrorCode::Deadlock, message).or_at(pc, agent)
    }

    fn reason(&self, wait: Wait) -> String {
        let text = self.engine.reason(wait);
        match wait {
            Wait::Phase { barrier, .. } => text.replace(&barrier.to_string(), &self.barrier_name(barrier)),
            Wait::Meeting { rendezvous } => text.replace(&rendezvous.to_string(), &self.meeting_name(rendezvous)),
            Wait::Groups { .. } | Wait::Other(_) => text,
        }
    }

    /// The name of a barrier in messages.
    pub(crate) fn barrier_name(&self, barrier: BarrierId) -> String {
        if barrier == self.barrier {
            return "the barrier of the cluster".to_owned();
        }
        let address = self.barriers.iter().find(|(_, b)| **b == barrier).map_or(0, |(a, _)| *a);
        format!("the mbarrier at shared address {}", self.address_name(address))
    }

    /// The name of an address in messages.
    pub(crate) fn address_name(&self, address: u64) -> String {
        let (space, at) = split(address);
        if self.ctas.len() == 1 { format!("{at:#x}") } else { format!("{at:#x} of block {}", space.index()) }
    }

    /// The name of a block's named barrier in messages.
    pub(crate) fn meeting_name(&self, place: RendezvousId) -> String {
        let (rank, number) = (place.index() / BARRIERS as usize, place.index() % BARRIERS as usize);
        if self.ctas.len() == 1 { format!("barrier {number}") } else { format!("barrier {number} of block {rank}") }
    }

    /// The engine, and the other state that completing operations may change.
    pub(crate) fn ground<'b>(&'b mut self, memory: &'b mut super::memory::Memory) -> (&'b mut Engine<Job>, Ground<'b>) {
        let ground = Ground {
            memory,
            stores: &mut self.stores,
            cluster: self.number,
            taken: &mut self.taken,
            warps: &mut self.warps,
            program: self.env.program,
            strict: self.env.options.strict(),
        };
        (&mut self.engine, ground)
    }

    /// Reports a register that was written while an MMA in flight used it.
    fn check_clobbered(&self, warp: usize, pc: u32) -> Result<(), Box<Fail>> {
        let clobbered = self.warps[warp].products.as_ref().and_then(|p| p.clobbered);
        let Some(r) = clobbered else { return Ok(()) };
        let name = self.env.program.reg_names.get(r as usize).map_or("?", String::as_str);
        let message = format!("register `{name}` is written, and a `wgmma` in flight uses it");
        let fail = Fail::new(super::error::ErrorCode::InFlight, message);
        Err(Box::new(fail.help("wait by `wgmma.wait_group` before").or_at(pc, self.agent(warp, 0))))
    }
}

/// The memory of an address with a rank, and the address in that memory.
pub(crate) fn split(address: u64) -> (SpaceId, u64) {
    let rank = usize::try_from(rank_of(address)).unwrap_or(usize::MAX >> 1);
    (SpaceId::new(rank), in_block(0, address))
}

/// The rank of the block in an address.
pub(crate) const fn rank_of(address: u64) -> u64 {
    address >> CTA_BITS
}

/// The address of the same byte in the block with this rank.
pub(crate) const fn in_block(rank: u64, address: u64) -> u64 {
    rank << CTA_BITS | address & ((1 << CTA_BITS) - 1)
}

/// Creates the shared memory of a block.
fn shared_memory(env: &Env<'_>, rank: usize) -> Space {
    let mut space = Space::new("shared");
    for (name, at, size) in &env.program.shared {
        let name = if rank == 0 { name.clone() } else { format!("{name} of block {rank}") };
        space.allocate(name, u64::from(*at), size.unwrap_or(env.launch.dynamic_shared) as usize);
    }
    space
}

fn warp(env: &Env<'_>, rank: usize, first: u32) -> Warp {
    let program = env.program;
    let mut warp = Warp::new(program.n_regs, program.n_preds, first, env.threads - first);
    warp.rank = u32::try_from(rank).unwrap_or(0);
    warp.budget = env.registers();
    warp.products = program.has_wgmma.then(|| Box::new(Products::new(program.n_regs)));
    warp
}
