//! Small programs on the engine, watched by a sanitizer that keeps going.

use titan_sim::engine::{
    Access, AccessKind, Agent, BarrierId, Class, Completion, Engine, Event, FenceSpace, Halt, Helper, Observer, Op,
    OpId, Place, Proxy, RendezvousId, Scope, Signal, Space, SpaceId, Storage, Strength,
};
use titan_sim::sanitize::{Config, Finding, Rule, Sanitizer, Work};

pub(crate) const CP: Class = Class(0);
pub(crate) const LOAD: Class = Class(1);
pub(crate) const STORE: Class = Class(2);
pub(crate) const TENSOR: Class = Class(3);
pub(crate) const WGMMA: Class = Class(4);
pub(crate) const AMD: Class = Class(5);
pub(crate) const LAUNCH: Class = Class(6);

/// Where barriers lie.
pub(crate) const BARRIERS: u64 = 0x10_0000;

pub(crate) struct World {
    pub(crate) engine: Engine<()>,
    pub(crate) s: Sanitizer,
    barriers: u64,
    place: usize,
}

/// What an operation does: read or write, space, address, length.
pub(crate) type Acc = (AccessKind, usize, u64, u32);
pub(crate) const R: AccessKind = AccessKind::Read;
pub(crate) const W: AccessKind = AccessKind::Write;

pub(crate) fn config(ctas: &[u32]) -> Config {
    let mut c = Config::new();
    for cta in ctas {
        let p = c.partition(*cta).unwrap();
        c.agents(p, 1);
    }
    for (i, work) in [
        Work::CP_ASYNC,
        Work::TMA_LOAD,
        Work::TMA_STORE,
        Work::TCGEN05,
        Work::WGMMA,
        Work::AMD_COPY,
        Work::CLUSTER_LAUNCH,
    ]
    .into_iter()
    .enumerate()
    {
        c.class(Class(i as u8), work);
    }
    // Spaces 0 and 1 are the shared memories of blocks 0 and 1, space 2 is the device's.
    c.home(SpaceId::new(0), 0).home(SpaceId::new(1), 1).keep_going(true);
    c
}

/// So many agents of block 0, each a partition.
pub(crate) fn world(agents: usize) -> World {
    with(config(&vec![0; agents]), agents)
}

/// One agent in each of these blocks.
pub(crate) fn cluster(ctas: &[u32]) -> World {
    with(config(ctas), ctas.len())
}

pub(crate) fn with(config: Config, agents: usize) -> World {
    let mut engine = Engine::new(agents, Completion::Late);
    for name in ["shared", "far", "global"] {
        engine.add_space(Space::new(name));
    }
    World { engine, s: Sanitizer::new(config), barriers: 0, place: 0 }
}

pub(crate) fn agent(i: usize) -> Agent {
    Agent::new(i)
}

fn none(_: &mut [Space], _: &Op<()>) -> Result<(), Halt> {
    Ok(())
}

impl World {
    pub(crate) fn next(&mut self) -> Place {
        self.place += 1;
        Place::new(self.place)
    }

    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        self.s.event(event).unwrap();
    }

    pub(crate) fn base(&mut self, who: usize, kind: AccessKind, space: usize, address: u64, len: u32) -> Access {
        Access {
            agent: agent(who),
            place: self.next(),
            space: SpaceId::new(space),
            address,
            len,
            kind,
            proxy: Proxy::Generic,
            strength: Strength::Weak,
            unchanged: false,
            helper: None,
            tag: 0,
        }
    }

    pub(crate) fn access(&mut self, a: Access) {
        self.tell(&Event::Access(a));
    }

    pub(crate) fn read(&mut self, who: usize, address: u64) {
        let a = self.base(who, R, 0, address, 16);
        self.access(a);
    }

    pub(crate) fn write(&mut self, who: usize, address: u64) {
        let a = self.base(who, W, 0, address, 16);
        self.access(a);
    }

    /// Issues an operation; those of groups are grouped, and all but `cp.async` go through the asynchronous proxy.
    pub(crate) fn op(&mut self, who: usize, class: Class, accesses: &[Acc], signals: &[Signal]) -> OpId {
        let place = self.next();
        let grouped = matches!(class, CP | STORE | WGMMA | AMD) && signals.is_empty();
        let op = Op { agent: agent(who), class, after: vec![], signals: signals.to_vec(), payload: () };
        let id = self.engine.issue(op, !grouped, place, &mut self.s).unwrap();
        let proxy = if matches!(class, CP | AMD) { Proxy::Generic } else { Proxy::Async };
        for (kind, space, address, len) in accesses {
            let a = self.base(who, *kind, *space, *address, *len);
            self.access(Access { helper: Some(Helper { class, op: id }), proxy, ..a });
        }
        id
    }

    pub(crate) fn complete(&mut self, op: OpId) {
        self.engine.complete(op, &mut self.s, none).unwrap();
    }

    pub(crate) fn commit(&mut self, who: usize, class: Class) {
        self.engine.commit(agent(who), class, &mut self.s).unwrap();
    }

    pub(crate) fn wait_groups(&mut self, who: usize, class: Class, at_most: u32) {
        self.engine.wait_groups(agent(who), class, at_most, &mut self.s, none).unwrap();
    }

    /// A live barrier, initialised by agent 0 and known to all.
    pub(crate) fn barrier(&mut self, count: u32) -> BarrierId {
        let b = self.init(0, 0, count);
        let all: Vec<Agent> = (0..self.engine.agents().len()).map(agent).collect();
        self.tell(&Event::Meet { rendezvous: RendezvousId::new(99), waited: &all, passed: &[] });
        b
    }

    /// A live barrier in a space, known to who initialises it.
    pub(crate) fn init(&mut self, who: usize, space: usize, count: u32) -> BarrierId {
        let b = self.engine.add_barrier();
        let storage = Some(Storage { space: SpaceId::new(space), address: BARRIERS + self.barriers * 8, len: 8 });
        self.barriers += 1;
        let place = self.next();
        self.engine.init(agent(who), b, count, storage, place, &mut self.s).unwrap();
        b
    }

    pub(crate) fn arrive(&mut self, who: usize, b: BarrierId) {
        self.engine.arrive(agent(who), b, 1, 0, &mut self.s).unwrap();
    }

    pub(crate) fn arrive_expecting(&mut self, who: usize, b: BarrierId, bytes: u32) {
        self.engine.arrive(agent(who), b, 1, bytes, &mut self.s).unwrap();
    }

    /// A wait that must pass.
    pub(crate) fn wait(&mut self, who: usize, b: BarrierId, parity: bool) {
        assert!(self.engine.wait_phase(agent(who), b, parity, &mut self.s).unwrap(), "the phase is complete");
    }

    /// A wait that must block.
    pub(crate) fn block(&mut self, who: usize, b: BarrierId, parity: bool) {
        assert!(!self.engine.wait_phase(agent(who), b, parity, &mut self.s).unwrap(), "the phase is not complete");
    }

    pub(crate) fn meet(&mut self, agents: &[usize]) {
        let agents: Vec<Agent> = agents.iter().map(|a| agent(*a)).collect();
        self.tell(&Event::Meet { rendezvous: RendezvousId::new(7), waited: &agents, passed: &[] });
    }

    pub(crate) fn fence(&mut self, who: usize, scope: Scope) {
        self.fence_of(who, scope, FenceSpace::All);
    }

    pub(crate) fn fence_of(&mut self, who: usize, scope: Scope, space: FenceSpace) {
        let place = self.next();
        self.tell(&Event::Fence { agent: agent(who), from: Proxy::Generic, to: Proxy::Async, scope, space, place });
    }

    pub(crate) fn exit(&mut self, who: usize) {
        self.engine.exit(&[agent(who)], &mut self.s).unwrap();
    }

    /// What was found so far, and forgotten with it.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.s.findings().iter().map(|f| f.rule).collect()
    }

    pub(crate) fn only(&self) -> &Finding {
        assert_eq!(self.s.findings().len(), 1, "{:?}", self.rules());
        &self.s.findings()[0]
    }

    #[track_caller]
    pub(crate) fn clean(&self) {
        let all: Vec<String> = self.s.findings().iter().map(|f| f.explain(&())).collect();
        assert!(all.is_empty(), "{}", all.join("\n"));
    }

    #[track_caller]
    pub(crate) fn finds(&self, rule: Rule) {
        assert_eq!(
            self.rules(),
            [rule],
            "{}",
            self.s.findings().iter().map(|f| f.explain(&())).collect::<Vec<_>>().join("\n")
        );
    }
}

pub(crate) fn bytes(barrier: BarrierId, bytes: u32) -> Signal {
    Signal::Bytes { barrier, bytes }
}

pub(crate) fn arrival(barrier: BarrierId) -> Signal {
    Signal::Arrive { barrier }
}

/// The finding of a program, or none: to be compared between a right one and a wrong one.
#[track_caller]
pub(crate) fn breaks(rule: Rule, program: impl Fn(&mut World, bool), agents: usize) {
    let mut right = world(agents);
    program(&mut right, true);
    right.clean();
    let mut wrong = world(agents);
    program(&mut wrong, false);
    wrong.finds(rule);
}
