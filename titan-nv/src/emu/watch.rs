//! Who watches a block: the observer of races, thread by thread, and the sanitizer, warp by warp.
//!
//! Both are told what the engine tells. Only the observer of races is told of accesses to the bytes of barriers: the
//! sanitizer knows from the barriers' own events that they are used.

use super::block::Block;
use super::decode;
use super::error::ErrorCode;
use super::exec::Fail;
use super::launch::Env;
use titan_sim::engine::race::Races;
use titan_sim::engine::{Agent, BarrierId, Class, Event, Observer, Place, SpaceId, Stop, Wait};
use titan_sim::sanitize::{Config, Finding, Names, Rule, Sanitizer, Side, Work};

/// The observers of one block.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) races: Option<Races>,
    pub(crate) sanitizer: Option<Sanitizer>,
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let first = self.races.event(event);
        self.sanitizer.event(event).and(first)
    }
}

impl Watch {
    /// Over all of a block's shared memory, as the options say.
    pub(crate) fn new(env: &Env<'_>) -> Watch {
        let end = env.program.shared_end + env.launch.dynamic_shared;
        let base = u64::from(decode::SHARED_BASE);
        let races = || Races::new(env.threads as usize, SpaceId::new(0), base, (end - decode::SHARED_BASE) as usize);
        let config = env.options.sanitize.then(|| config(env.threads)).flatten();
        Watch { races: env.options.races.then(races), sanitizer: config.map(Sanitizer::new) }
    }

    /// For another block.
    pub(crate) fn restart(&mut self) {
        self.races.iter_mut().for_each(Races::restart);
        self.sanitizer.iter_mut().for_each(Sanitizer::restart);
    }

    pub(crate) const fn is_off(&self) -> bool {
        self.races.is_none() && self.sanitizer.is_none()
    }

    /// Where threads are, for events that do not say it.
    pub(crate) fn at(&mut self, agents: &[Agent], pc: u32) -> Result<(), Stop> {
        let Some(sanitizer) = &mut self.sanitizer else { return Ok(()) };
        agents
            .iter()
            .try_for_each(|agent| sanitizer.event(&Event::At { agent: *agent, place: Place::new(pc as usize), tag: 0 }))
    }
}

/// Each warp is a partition; a block has at most 32.
fn config(threads: u32) -> Option<Config> {
    let mut config = Config::new();
    for first in (0..threads).step_by(32) {
        let warp = config.partition(0).ok()?;
        config.agents(warp, (threads - first).min(32) as usize);
    }
    config.home(SpaceId::new(0), 0).class(super::block::COPY, Work::CP_ASYNC);
    Some(config)
}

/// The emulator's words for what a finding numbers.
struct Words<'a>(&'a Block<'a>);

impl Names for Words<'_> {
    fn agent(&self, agent: Agent) -> String {
        format!("warp {}", agent.index() / 32)
    }
    fn place(&self, place: Place, _: u64) -> String {
        format!("PTX line {}", self.0.env.line(u32::try_from(place.index()).unwrap_or(0)))
    }
    fn bytes(&self, _: SpaceId, address: u64, len: u64) -> String {
        self.0.shared_name(address, len)
    }
    fn barrier(&self, barrier: BarrierId) -> String {
        let address = self.0.barriers.iter().find(|(_, b)| **b == barrier).map_or(0, |(a, _)| *a);
        format!("the mbarrier at shared address {address:#x}")
    }
    fn class(&self, _: Class) -> String {
        "a `cp.async`".to_owned()
    }
    fn wait(&self, wait: Wait) -> String {
        match wait {
            Wait::Phase { barrier, parity } => {
                format!("the phase of parity {} of {}", u8::from(parity), self.barrier(barrier))
            }
            Wait::Meeting { rendezvous } => format!("barrier {}", rendezvous.index()),
            Wait::Groups { .. } | Wait::Other(_) => "its copies".to_owned(),
        }
    }
}

impl Block<'_> {
    fn shared_name(&self, address: u64, len: u64) -> String {
        let name = self.engine.space(self.shared).and_then(|s| {
            let (name, base, _) = s.check(address, 1).ok().and_then(|id| s.describe(id))?;
            Some(format!("bytes {}..{} of `{name}` in shared memory", address - base, address - base + len))
        });
        name.unwrap_or_else(|| format!("bytes {address:#x}..{:#x} of shared memory", address + len))
    }

    /// The error of the finding because of which the sanitizer stopped the run. Where the observer of races has found
    /// one too, that is of threads, and so says more.
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
        _ => None,
    }
}
