//! The observers of a block: the race detector, thread by thread, and the sanitizer, warp by warp.
//!
//! Both receive the engine's events. Only the race detector receives accesses to the bytes of barriers: the
//! sanitizer knows from the barriers' own events that they are used.

use super::cluster::Cluster;
use super::decode;
use super::error::ErrorCode;
use super::exec::Fail;
use super::fences::Fences;
use super::launch::Env;
use titan_sim::engine::race::Races;
use titan_sim::engine::{Agent, BarrierId, Class, Event, Observer, Place, SpaceId, Stop, Wait};
use titan_sim::sanitize::{Config, Finding, Names, Rule, Sanitizer, Side, Work};

/// The observers of one block.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) races: Option<Races>,
    pub(crate) sanitizer: Option<Sanitizer>,
    /// What fences count for, if the program accesses memory by another proxy than the generic one.
    fences: Option<Fences>,
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let first = self.races.event(event);
        let Some(sanitizer) = &mut self.sanitizer else { return first };
        let passes = self.fences.as_mut().is_none_or(|fences| fences.passes(event));
        let second = if passes { sanitizer.event(event) } else { sanitizer.fence_writes(event) };
        second.and(first)
    }
}

impl Watch {
    /// Creates the observers that the options request, for all of a block's shared memory.
    pub(crate) fn new(env: &Env<'_>) -> Watch {
        let end = env.program.shared_end + env.launch.dynamic_shared;
        let base = u64::from(decode::SHARED_BASE);
        let blocks = env.cluster_size();
        let len = (end - decode::SHARED_BASE) as usize;
        let spaces = || (0..blocks).map(SpaceId::new).collect();
        let races = || Races::over(env.threads as usize * blocks, spaces(), base, len);
        let config = env.options.sanitize.then(|| config(env.threads, blocks)).flatten();
        let fences = env.program.has_async_proxy.then(|| Fences::new((env.threads as usize).max(1)));
        Watch { races: env.options.races.then(races), sanitizer: config.map(Sanitizer::new), fences }
    }

    /// Prepares the observers for another block.
    pub(crate) fn restart(&mut self) {
        self.races.iter_mut().for_each(Races::restart);
        self.sanitizer.iter_mut().for_each(Sanitizer::restart);
        self.fences.iter_mut().for_each(Fences::restart);
    }

    pub(crate) const fn is_off(&self) -> bool {
        self.races.is_none() && self.sanitizer.is_none()
    }

    /// Reports the positions of threads, for events that do not carry them.
    pub(crate) fn at(&mut self, agents: &[Agent], pc: u32) -> Result<(), Stop> {
        let Some(sanitizer) = &mut self.sanitizer else { return Ok(()) };
        agents
            .iter()
            .try_for_each(|agent| sanitizer.event(&Event::At { agent: *agent, place: Place::new(pc as usize), tag: 0 }))
    }
}

/// Each warp is a partition; a block has at most 32. `None` if a cluster has more warps than the sanitizer can distinguish.
fn config(threads: u32, blocks: usize) -> Option<Config> {
    use super::cluster::{COPY, LOAD, MULTIPLY, PUT, STORE, TAKE};
    let mut config = Config::new();
    for rank in 0..blocks {
        let block = u32::try_from(rank).unwrap_or(0);
        for first in (0..threads).step_by(32) {
            let warp = config.partition(block).ok()?;
            config.agents(warp, (threads - first).min(32) as usize);
        }
        config.home(SpaceId::new(rank), block);
    }
    config.class(COPY, Work::CP_ASYNC).class(LOAD, Work::TMA_LOAD).class(MULTIPLY, Work::WGMMA);
    // A store to global memory may complete after the block; its source must have been read.
    config.class(TAKE, Work::TMA_STORE).class(PUT, Work { must_end: false, ..Work::TMA_STORE });
    config.class(STORE, Work::TMA_LOAD);
    Some(config)
}

/// The emulator's names for the numbers in a finding.
struct Words<'a>(&'a Cluster<'a>);

impl Names for Words<'_> {
    fn agent(&self, agent: Agent) -> String {
        let threads = (self.0.env.threads as usize).max(1);
        let (block, warp) = (agent.index() / threads, agent.index() % threads / 32);
        if self.0.ctas.len() == 1 { format!("warp {warp}") } else { format!("warp {warp} of block {block}") }
    }
    fn place(&self, place: Place, _: u64) -> String {
        format!("PTX line {}", self.0.env.line(u32::try_from(place.index()).unwrap_or(0)))
    }
    fn bytes(&self, space: SpaceId, address: u64, len: u64) -> String {
        self.0.shared_name(space, address, len)
    }
    fn barrier(&self, barrier: BarrierId) -> String {
        self.0.barrier_name(barrier)
    }
    fn class(&self, class: Class) -> String {
        use super::cluster::{LOAD, MULTIPLY, PUT, STORE, TAKE};
        match class {
            MULTIPLY => "a `wgmma`",
            LOAD | TAKE | PUT => "a bulk copy",
            STORE => "a `st.async`",
            _ => "a `cp.async`",
        }
        .to_owned()
    }
    fn wait(&self, wait: Wait) -> String {
        match wait {
            Wait::Phase { barrier, parity } => {
                format!("the phase of parity {} of {}", u8::from(parity), self.barrier(barrier))
            }
            Wait::Meeting { rendezvous } => self.0.meeting_name(rendezvous),
            Wait::Groups { .. } | Wait::Other(_) => "its copies".to_owned(),
        }
    }
}

impl Cluster<'_> {
    fn shared_name(&self, space: SpaceId, address: u64, len: u64) -> String {
        let name = self.engine.space(space).and_then(|s| {
            let (name, base, _) = s.check(address, 1).ok().and_then(|id| s.describe(id))?;
            Some(format!("bytes {}..{} of `{name}` in shared memory", address - base, address - base + len))
        });
        name.unwrap_or_else(|| format!("bytes {address:#x}..{:#x} of shared memory", address + len))
    }

    /// The error for the finding because of which the sanitizer stopped the run. If the race detector has found one
    /// too, its error is used, which names threads.
    pub(crate) fn finding(&self, watch: &Watch) -> Option<Fail> {
        if watch.races.as_ref().is_some_and(|r| r.found().is_some()) {
            return None;
        }
        let finding = watch.sanitizer.as_ref()?.findings().first()?;
        if finding.rule == Rule::Deadlock {
            return Some(self.deadlock());
        }
        let names = Words(self);
        let message = format!("{} [sanitizer: {}]", finding.headline(&names), finding.rule.code());
        let mut fail = Fail::new(code(finding.rule), message);
        let pc = |s: &Side| u32::try_from(s.place.index()).unwrap_or(0);
        fail = fail.or_at(pc(&finding.now), finding.now.agent);
        fail.other = finding.others.first().map(|o| (pc(o), o.agent, what(o)));
        fail.help = help(finding);
        Some(fail)
    }
}

const fn code(rule: Rule) -> ErrorCode {
    match rule {
        Rule::BarrierBytes
        | Rule::BarrierOverlap
        | Rule::BarrierReinit
        | Rule::BarrierNotLive
        | Rule::BarrierCount
        | Rule::ArriveUnderflow
        | Rule::BytesOverflow
        | Rule::InvalidateWaiting
        | Rule::InvalidatePending => ErrorCode::Barrier,
        Rule::Deadlock => ErrorCode::Deadlock,
        _ => ErrorCode::Race,
    }
}

const fn what(side: &Side) -> &'static str {
    use titan_sim::sanitize::Deed;
    match (side.deed, side.class.is_some()) {
        (Deed::Read, false) => "a read",
        (Deed::Read, true) => "an asynchronous read",
        (Deed::Write, true) => "an asynchronous copy",
        (Deed::Write | Deed::Atomic, _) => "a write",
        (Deed::Init, _) => "the initialisation",
        (Deed::Invalidate, _) => "the invalidation",
        (Deed::Arrive, _) => "an arrival",
        (Deed::Wait, _) => "a wait",
        (Deed::Signal, _) => "an arrival of copies",
        (Deed::Exit, _) => "the end",
    }
}

const fn help(finding: &Finding) -> Option<&'static str> {
    match finding.rule {
        Rule::PendingAccess | Rule::UnorderedAsync => Some(
            "a copy is over for its thread after `cp.async.wait_group`, and for others after a barrier that follows it",
        ),
        Rule::ExitInFlight => Some("wait for the copies by `cp.async.wait_all` before the block ends"),
        Rule::OutstandingRead | Rule::OutstandingWrite => Some("order them by `bar.sync`, or by an mbarrier"),
        Rule::MissingFence | Rule::NarrowFence => Some(
            "each thread that reads or writes the bytes executes `fence.proxy.async` before it arrives at the barrier, or the thread \
             that starts the asynchronous operation does so after it has waited",
        ),
        _ => None,
    }
}
