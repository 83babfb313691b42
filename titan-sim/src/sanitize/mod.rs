//! The concurrency sanitizer: an observer that finds unordered conflicting accesses, on one run.
//!
//! It receives events ([`Event`]) from the simulator of pipelines, from the emulator of PTX, or from any other client of the
//! engine, and is independent of instructions. The client's [`Config`] declares which agents count as one, which block owns which
//! memory, and the properties of the classes of asynchronous operations. Each error is kept as a [`Finding`]: the [`Rule`], both sides,
//! the bytes; and it stops the run unless the sanitizer is configured to continue. Because legality depends on what is *ordered*, not
//! on which access came first, most errors are found in every run in which both sides occur.
//!
//! | module | rule |
//! |---|---|
//! | [`mask`] | logical threads: partitions, each with its units |
//! | `lanes`, `effect` | ranges of bytes with equal state; the last accesses of each |
//! | `known` | which threads see an access and have fenced it, and where it is published |
//! | `visible` | which accesses are legal, and their effect on the state |
//! | `publish` | arrivals publish, waits acquire; forks, joins, rendezvous |
//! | `commit` | commit groups |
//! | `proxy` | fences between proxies |
//! | `barrier` | counts, bytes, lifetime and storage of barriers |
//! | `deadlock`, `access`, `sync` | waiting agents; the effect of each event |
//! | `hash` | the identity of states, for a model checker |
//! | [`report`] | findings and their text |
//!
//! ```
//! use titan_sim::engine::{Access, AccessKind, Agent, Event, Observer, Place, Proxy, SpaceId, Strength};
//! use titan_sim::sanitize::{Config, Rule, Sanitizer};
//!
//! let mut sanitizer = Sanitizer::new(Config::one_each(2)?);
//! let write = Access {
//!     agent: Agent::new(0), place: Place::new(7), space: SpaceId::new(0), address: 0, len: 16, kind: AccessKind::Write,
//!     proxy: Proxy::Generic, strength: Strength::Weak, unchanged: false, helper: None, tag: 0,
//! };
//! assert!(sanitizer.event(&Event::Access(write)).is_ok());
//! let read = Access { agent: Agent::new(1), place: Place::new(8), address: 12, kind: AccessKind::Read, ..write };
//! assert!(sanitizer.event(&Event::Access(read)).is_err());
//! let finding = &sanitizer.findings()[0];
//! assert_eq!(finding.rule, Rule::OutstandingWrite);
//! assert!(finding.explain(&()).contains("before: agent0 writes bytes 0x0..0x10 of space0, at7"));
//! # Ok::<(), titan_sim::sanitize::TooManyPartitions>(())
//! ```
//!
//! Limits: agents of one partition are assumed to be ordered among themselves, so give each its own where there are few, or
//! use [`engine::race`] beside it. A phase publishes its own arrivals, not those of earlier phases that were not
//! waited for. Every rule with its source is in docs/sanitizer.md.
//!
//! Deliberately absent: reads of what was never written (the memory's poison), instrumented kernels on a device.
//!
//! Source: Triton's concurrency sanitizer, in its newest public form; docs/seeds.md says where older descriptions are stale.
//!
//! [`engine::race`]: crate::engine::race

mod access;
mod barrier;
mod commit;
pub mod config;
mod deadlock;
mod effect;
mod hash;
mod known;
mod lanes;
pub mod mask;
mod proxy;
mod publish;
pub mod report;
mod sync;
mod visible;

pub use config::{Config, TooManyPartitions, Work};
pub use mask::{MAX_PARTITIONS, Partition, Unit};
pub use report::{Deed, Finding, Names, Rule, Side};

use crate::engine::{Access, Agent, BarrierFault, BarrierId, Class, Event, Observer, OpId, Place, Stop};
use access::Under;
use barrier::Lives;
use commit::Commits;
use deadlock::Waiting;
use lanes::Memory;
use publish::Slots;
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of findings that are kept.
const MOST: usize = 256;

/// The state of the concurrency sanitizer.
#[derive(Clone, Debug)]
pub struct Sanitizer {
    config: Config,
    memory: Memory,
    slots: Slots,
    commits: Commits,
    lives: Lives,
    waiting: Waiting,
    /// The operations in flight.
    ops: BTreeMap<OpId, Under>,
    /// The barrier that each partition has used last.
    last: BTreeMap<Partition, Option<BarrierId>>,
    /// The current place of each agent, and its tag.
    at: Vec<(Place, u64)>,
    /// The number of agents of each block that have not ended; and the blocks in which all agents have ended.
    left: BTreeMap<u32, usize>,
    over: BTreeSet<u32>,
    findings: Vec<Finding>,
    events: u64,
}

impl Sanitizer {
    /// A sanitizer that has received no event.
    #[must_use]
    pub fn new(config: Config) -> Sanitizer {
        let n = config.n_agents();
        let mut left = BTreeMap::new();
        for p in (0..n).filter_map(|a| config.partition_of(Agent::new(a))) {
            *left.entry(config.cta_of(p)).or_default() += 1;
        }
        Sanitizer {
            memory: Memory::new(config.memories_out_of_order().clone()),
            slots: Slots::new(config.n_partitions()),
            commits: Commits::default(),
            lives: Lives::default(),
            waiting: Waiting::new(&config),
            ops: BTreeMap::new(),
            last: BTreeMap::new(),
            at: vec![(Place::new(0), 0); n],
            left,
            over: BTreeSet::new(),
            findings: Vec::new(),
            events: 0,
            config,
        }
    }

    /// Clears the state: other blocks begin, on the same agents and spaces.
    pub fn restart(&mut self) {
        *self = Sanitizer::new(std::mem::take(&mut self.config));
    }

    /// The findings, in order. Repetitions at the same places are left out.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The number of events received.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The number of lanes, over all memories.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.memory.len()
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Receives a fence between proxies that orders earlier writes alone. A client whose agents share a partition reports a fence so if another
    /// agent of the partition has read without being ordered before it. Other events are ignored.
    ///
    /// # Errors
    /// Those of [`Observer::event`].
    pub fn fence_writes(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let Event::Fence { agent, from, to, scope, space, place } = *event else { return Ok(()) };
        self.events += 1;
        self.set_at(agent, place, None);
        self.fence(agent, (from, to), scope, (space, false))
    }

    /// The side of a finding for an agent at its current place, without bytes.
    fn side(&self, agent: Agent, deed: Deed) -> Side {
        let (place, tag) = self.at.get(agent.index()).copied().unwrap_or((Place::new(0), 0));
        let partition = self.config.partition_of(agent).unwrap_or(Partition::new(MAX_PARTITIONS));
        Side {
            agent,
            partition,
            unit: Unit::Base,
            class: None,
            deed,
            proxy: Default::default(),
            place,
            tag,
            bytes: None,
            barrier: None,
        }
    }

    fn report(&mut self, finding: Finding) -> Result<(), Stop> {
        let key = |f: &Finding| {
            let of = |s: &Side| (s.partition, s.class, s.deed, s.place);
            (f.rule, of(&f.now), f.others.first().map(of))
        };
        if self.findings.len() < MOST && !self.findings.iter().any(|f| key(f) == key(&finding)) {
            self.findings.push(finding);
        }
        if self.config.keeps_going() { Ok(()) } else { Err(Stop) }
    }

    /// The partition of an agent, which must have one.
    fn known(&mut self, agent: Agent) -> Result<Option<Partition>, Stop> {
        let partition = self.config.partition_of(agent);
        if partition.is_none() {
            let now = self.side(agent, Deed::Exit);
            self.report(Finding::of(Rule::UnknownAgent, now, None))?;
        }
        Ok(partition)
    }

    /// The name of a class, for reports.
    fn name(&self, class: Option<Class>) -> Option<&'static str> {
        class.map(|c| self.config.work(c).name)
    }

    fn set_at(&mut self, agent: Agent, place: Place, tag: Option<u64>) {
        if let Some(at) = self.at.get_mut(agent.index()) {
            *at = (place, tag.unwrap_or(at.1));
        }
    }

    fn told(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        match *event {
            Event::Access(ref a) => self.access(a),
            Event::Issue { agent, op, class, place, grouped, signals } => {
                self.set_at(agent, place, None);
                self.issue(agent, (op, class), grouped, signals)
            }
            Event::Commit { agent, class, groups } => {
                self.commits.commit(agent, class, groups);
                Ok(())
            }
            Event::GroupWait { agent, class, complete } => self.group_wait(agent, class, complete),
            Event::Complete { op, .. } => self.complete(op),
            Event::Init { barrier, agent, count, storage, place } => {
                self.set_at(agent, place, None);
                self.init(agent, barrier, count, storage)
            }
            Event::Invalidate { barrier, agent, place } => {
                self.set_at(agent, place, None);
                self.invalidate(agent, barrier)
            }
            Event::Expect { barrier, count } => self.expect(barrier, count),
            Event::Arrive { barrier, agent, helper, count, bytes, drops, relaxed, .. } => {
                self.arrive(agent, barrier, helper, barrier::Change { count, bytes, drops, relaxed })
            }
            // The sanitizer keeps its own counts of arrivals and bytes, and so does not need the engine's report.
            Event::Flip { .. } => Ok(()),
            Event::Observe { barrier, agent, phase, relaxed } => self.observe(agent, barrier, phase, relaxed),
            Event::Meet { rendezvous, waited, passed } => self.meet(rendezvous, waited, passed),
            Event::Overwrite { space, address } => {
                self.slots.overwrite(space, address);
                Ok(())
            }
            Event::Forward { from, to } => {
                self.slots.forward_word(from, to, &mut self.memory);
                Ok(())
            }
            Event::Release { agent, space, address } => self.release(agent, (space, address)),
            Event::Acquire { agent, space, address } => self.acquire(agent, (space, address)),
            Event::Fence { agent, from, to, scope, space, place } => {
                self.set_at(agent, place, None);
                self.fence(agent, (from, to), scope, (space, true))
            }
            Event::Free { space, address, len } => {
                self.memory.forget((space, address, address.saturating_add(len)));
                Ok(())
            }
            Event::SyncFence { agent, side, place } => {
                self.set_at(agent, place, None);
                self.sync_fence(agent, side)
            }
            Event::Fork { agent, into } => self.share(&[agent], into),
            Event::Join { agents, into } => self.share(agents, &[into]),
            Event::Wait { agent, wait } => self.wait(agent, wait),
            Event::At { agent, place, tag } => {
                self.set_at(agent, place, Some(tag));
                Ok(())
            }
            Event::Exit { agent } => self.exit(agent),
        }
    }
}

impl Observer for Sanitizer {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        self.events += 1;
        self.told(event)
    }
}

impl Finding {
    fn of(rule: Rule, now: Side, other: Option<Side>) -> Finding {
        let others = other.into_iter().collect();
        Finding { rule, bytes: now.bytes, now, others, waits: Vec::new(), fault: None, pending: None }
    }

    /// The finding for a misuse of a barrier.
    fn misuse(fault: BarrierFault, now: Side, other: Option<Side>) -> Finding {
        Finding { fault: Some(fault), ..Finding::of(barrier::rule_of(fault), now, other) }
    }
}

/// The action of an access, as findings report it.
const fn deed(a: &Access) -> Deed {
    use crate::engine::AccessKind;
    match a.kind {
        AccessKind::Read => Deed::Read,
        AccessKind::Write => Deed::Write,
        AccessKind::Atomic => Deed::Atomic,
    }
}

/// Adds the barrier to a side.
const fn at_barrier(side: Side, barrier: BarrierId) -> Side {
    Side { barrier: Some(barrier), ..side }
}
