//! Observers of one run: order of accesses, in words of the kernel.

use super::finding::{Found, Kind, Side};
use super::machine::{Machine, index};
use super::plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, VMCNT, WGMMA};
use super::Options;
use super::tensor::Tensor;
use super::work::Touch;
use crate::engine::race::{self, Race, Races};
use crate::engine::{AccessKind, Agent, BarrierId, Class, Deadlock, Event, Observer, SpaceId, StateHasher, Stop};
use crate::ir::OpId;
use crate::sanitize::{self, Config, Names, Rule, Sanitizer, TooManyPartitions, Unit, Work};
use std::hash::Hash;

/// What watches a run: the sanitizer, and beside it vector clocks, which keep agents apart where it has no room for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    sanitizer: Option<Sanitizer>,
    races: Vec<(SpaceId, Races)>,
    pub(super) issued: u64,
}

/// What the classes of the simulator are like.
const CLASSES: [(Class, Work); 8] = [
    (CP_ASYNC, Work::CP_ASYNC),
    (WGMMA, Work::WGMMA),
    (BULK_STORE, Work::TMA_STORE),
    (BULK_WRITE, Work { name: "TMA store", unit: Unit::Tma, ordered: true, must_end: false }),
    (VMCNT, Work::AMD_COPY),
    (LGKMCNT, Work { name: "LDS access", unit: Unit::TensorCore, ordered: true, must_end: true }),
    (BULK_LOAD, Work::TMA_LOAD),
    (RING_COPY, Work { name: "copy", ..Work::CP_ASYNC }),
];

impl Watch {
    /// Watches the agents of a cluster, and these memories by clocks: their bytes from 0 on, and how many.
    pub(super) fn new(ctas: usize, per: usize, shared: &[SpaceId], clocked: &[(SpaceId, usize)], options: &Options) -> Watch {
        let races = clocked.iter().map(|(id, len)| (*id, Races::new(ctas * per, *id, 0, *len))).collect();
        let sanitizer = sanitizer(ctas, per, shared, options.strict).ok();
        Watch { sanitizer, races, issued: 0 }
    }

    /// Watches the agents of a cluster in every order: what conflicts shows in some order without clocks.
    pub(super) fn explored(ctas: usize, per: usize, shared: &[SpaceId]) -> Watch {
        Watch { sanitizer: sanitizer(ctas, per, shared, false).ok(), races: Vec::new(), issued: 0 }
    }

    /// That on which it depends what will be found from here on.
    pub(super) fn knowledge(&self) -> impl Hash {
        self.sanitizer.as_ref().map(StateHasher::of)
    }

    /// What the run was stopped for, or what the machine itself found.
    pub(super) fn told(&self, machine: &Machine<'_>, found: Box<Found>) -> Box<Found> {
        if found.message.is_empty() { self.found(machine).unwrap_or(found) } else { found }
    }

    /// What the run was stopped for.
    fn found(&self, machine: &Machine<'_>) -> Option<Box<Found>> {
        if let Some(found) = self.sanitizer.as_ref().and_then(|s| s.findings().first()) {
            return Some(said(machine, found));
        }
        let (space, race) = self.races.iter().find_map(|(id, r)| r.found().map(|f| (*id, f)))?;
        Some(words(machine, space, race))
    }
}

fn sanitizer(ctas: usize, per: usize, shared: &[SpaceId], strict: bool) -> Result<Sanitizer, TooManyPartitions> {
    let mut config = Config::new();
    for cta in 0..ctas {
        for _ in 0..per {
            let partition = config.partition(index(cta))?;
            config.agents(partition, 1);
        }
    }
    for (cta, space) in shared.iter().enumerate() {
        config.home(*space, index(cta));
    }
    for (class, work) in CLASSES {
        config.class(class, work);
    }
    config.strict(strict);
    Ok(Sanitizer::new(config))
}

/// A finding of the sanitizer, in words of the kernel.
fn said(machine: &Machine<'_>, found: &sanitize::Finding) -> Box<Found> {
    if found.rule == Rule::Deadlock {
        let agents = std::iter::once(&found.now).chain(&found.others).map(|s| s.agent);
        let waits = agents.zip(&found.waits).map(|(agent, wait)| (agent, *wait, String::new())).collect();
        return machine.deadlocked(&Deadlock { waits });
    }
    let kind = match found.rule {
        Rule::OutstandingWrite | Rule::OutstandingRead | Rule::PendingAccess | Rule::UnorderedAsync => Kind::Race,
        Rule::MissingFence | Rule::NarrowFence => Kind::Fence,
        Rule::ExitInFlight | Rule::ExitedMemory => Kind::UnderWay,
        Rule::Deadlock => Kind::Deadlock,
        Rule::BarrierBytes | Rule::BarrierOverlap | Rule::BarrierReinit | Rule::BarrierNotLive | Rule::BarrierCount
        | Rule::ArriveUnderflow | Rule::BytesOverflow | Rule::InvalidateWaiting | Rule::InvalidatePending => Kind::Barrier,
        Rule::UnknownAgent => Kind::NotModelled,
    };
    let names = InKernel(machine);
    let mut out = Found::new(kind, found.headline(&names));
    for side in std::iter::once(&found.now).chain(&found.others) {
        out = out.side(one_side(machine, side));
    }
    out
}

fn one_side(machine: &Machine<'_>, s: &sanitize::Side) -> Side {
    let touch = s.bytes.and_then(|(space, lo, len)| touch_of(machine, space, lo, len, s.deed.writes()));
    let mut side = machine.side(s.agent.index(), OpId::new(s.place.index()), touch.as_ref(), (s.tag > 0).then_some(s.tag));
    if let Some((space, at, _)) = s.bytes.filter(|_| touch.is_none() && side.what.is_empty()) {
        side.what = output(machine, space, at);
    }
    if let Some(barrier) = s.barrier {
        side.what = machine.barrier_name(barrier);
    }
    side.helper = s.class.is_some();
    side
}

fn touch_of(machine: &Machine<'_>, space: SpaceId, lo: u64, len: u64, write: bool) -> Option<Touch> {
    let cta = machine.store.shared.iter().position(|s| *s == space)?;
    Some(super::access::shared(cta, lo, lo + len, write))
}

/// The output that holds a byte of device memory.
fn output(machine: &Machine<'_>, space: SpaceId, at: u64) -> String {
    let holds = |t: &&Tensor| t.bytes.is_none() && at >= t.base && space == machine.store.global;
    let t = machine.store.setup.tensors.iter().flatten().filter(holds).max_by_key(|t| t.base);
    t.map(|t| t.name.clone()).unwrap_or_default()
}

/// The kernel's names for the engine's numbers.
struct InKernel<'a, 'k>(&'a Machine<'k>);

impl Names for InKernel<'_, '_> {
    fn agent(&self, agent: Agent) -> String {
        self.0.role(agent.index())
    }
    fn bytes(&self, space: SpaceId, address: u64, len: u64) -> String {
        let side = touch_of(self.0, space, address, len, false).map(|t| self.0.side(0, OpId::new(0), Some(&t), None));
        match side {
            Some(Side { what, stage: Some(stage), .. }) => format!("`{what}` slot {stage}"),
            Some(side) => format!("`{}`", side.what),
            None => format!("`{}`", output(self.0, space, address)),
        }
    }
    fn barrier(&self, barrier: BarrierId) -> String {
        format!("`{}`", self.0.barrier_name(barrier))
    }
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        self.issued += u64::from(matches!(event, Event::Issue { .. }));
        self.sanitizer.event(event)?;
        self.races.iter_mut().try_for_each(|(_, r)| r.event(event))
    }
}

fn words(machine: &Machine<'_>, space: SpaceId, race: &Race) -> Box<Found> {
    let at = race.address;
    let cta = machine.store.shared.iter().position(|s| *s == space);
    let side = |s: &race::Side| {
        let write = s.kind != AccessKind::Read;
        let touch: Option<Touch> = cta.map(|cta| super::access::shared(cta, at, at + 1, write));
        let mut side = machine.side(s.agent.index(), OpId::new(s.place.index()), touch.as_ref(), None);
        side.helper = s.helper.is_some();
        if cta.is_none() {
            side.what = output(machine, space, at);
        }
        (side, if write { "written" } else { "read" })
    };
    let ((first, old), (second, new)) = (side(&race.first), side(&race.second));
    let message = format!(
        "`{}` is {new} by {}, and nothing orders that with `{}` of {}, by which it is {old}",
        second.what, second.role, first.op, first.role
    );
    Found::new(Kind::Race, message).side(second).side(first)
}
