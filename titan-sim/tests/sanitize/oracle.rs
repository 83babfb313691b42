//! The rules once more, as sets of accesses: who knows which ones, and which are published where. Nothing is forgotten,
//! merged, replaced or counted; only that an ordinary write ends what was known of its bytes. Random programs of all kinds
//! of operations must be judged alike, event by event.

use crate::harness::*;
use std::collections::{BTreeMap, BTreeSet};
use titan_sim::engine::{
    Access, AccessKind, BarrierId, Class, Completion, Engine, Event, FenceSpace, Halt, Helper, Observer, Op, OpId,
    Place, Proxy, RendezvousId, Rng, Scope, Signal, Space, SpaceId, Stop, Strength,
};
use titan_sim::sanitize::{Rule, Sanitizer};

const AGENTS: usize = 3;
/// The block of each agent. The memory is block 0's.
const BLOCKS: [u32; AGENTS] = [0, 0, 1];
const BYTES: usize = 32;

type Set = BTreeSet<usize>;

/// One access.
#[derive(Clone)]
struct Done {
    agent: usize,
    op: Option<OpId>,
    class: Option<Class>,
    group: Option<u32>,
    generic: bool,
    strong: bool,
}

#[derive(Clone, Default)]
struct Byte {
    write: Option<usize>,
    strong: Vec<usize>,
    reads: Vec<usize>,
}

/// What is published: accesses, and which are fenced for which scope.
#[derive(Clone, Default)]
struct Published {
    known: Set,
    fenced: BTreeSet<(usize, Scope)>,
}

#[derive(Clone, Default)]
struct Model {
    done: Vec<Done>,
    bytes: Vec<Byte>,
    /// What agents know, and what their tensor cores, and AMD's copies, know beside it.
    known: Vec<Set>,
    units: BTreeMap<(usize, Class), Set>,
    fenced: Vec<BTreeSet<(usize, Scope)>>,
    phases: BTreeMap<(BarrierId, u64), Published>,
    frontiers: BTreeMap<OpId, Published>,
    groups: BTreeMap<OpId, u32>,
    commits: BTreeMap<(usize, Class), u32>,
}

const fn ordered(class: Class) -> bool {
    matches!(class, TENSOR | AMD)
}

impl Model {
    fn new() -> Model {
        let (known, fenced) = (vec![Set::new(); AGENTS], vec![BTreeSet::new(); AGENTS]);
        Model { bytes: vec![Byte::default(); BYTES], known, fenced, ..Model::default() }
    }

    /// What an access must not meet: not seen, or else not fenced.
    fn judge(&self, a: &Access) -> Option<bool> {
        let (agent, op) = (a.agent.index(), a.helper.map(|h| h.op));
        let class = a.helper.map(|h| h.class);
        let unit = class.filter(|c| ordered(*c)).and_then(|c| self.units.get(&(agent, c)));
        let sees = |i: usize| {
            let own = op.is_some() && self.done[i].op == op;
            own || self.known[agent].contains(&i) || unit.is_some_and(|u| u.contains(&i))
        };
        let strong = a.strength == Strength::Strong;
        let range = a.address as usize..a.address as usize + a.len as usize;
        let mut unfenced = false;
        for byte in &self.bytes[range] {
            let reads = byte.reads.iter().filter(|_| a.kind != AccessKind::Read);
            for i in byte.write.iter().chain(&byte.strong).chain(reads) {
                let d = &self.done[*i];
                if !(strong && d.strong || sees(*i)) {
                    return Some(true);
                }
                let scope = if BLOCKS[agent] == 0 && BLOCKS[d.agent] == 0 { Scope::Cta } else { Scope::Cluster };
                let own = op.is_some() && d.op == op;
                unfenced |= a.proxy == Proxy::Async && d.generic && !own && !self.fenced[agent].contains(&(*i, scope));
            }
        }
        unfenced.then_some(false)
    }

    fn access(&mut self, a: &Access) {
        let (agent, id) = (a.agent.index(), self.done.len());
        let (op, class) = (a.helper.map(|h| h.op), a.helper.map(|h| h.class));
        let group = op.and_then(|op| self.groups.get(&op).copied());
        let strong = a.strength == Strength::Strong;
        self.done.push(Done { agent, op, class, group, generic: a.proxy == Proxy::Generic, strong });
        match class {
            None => drop(self.known[agent].insert(id)),
            Some(c) if ordered(c) => drop(self.units.entry((agent, c)).or_default().insert(id)),
            Some(_) => {}
        }
        for byte in &mut self.bytes[a.address as usize..a.address as usize + a.len as usize] {
            match a.kind {
                AccessKind::Read => byte.reads.push(id),
                AccessKind::Write | AccessKind::Atomic if strong => byte.strong.push(id),
                AccessKind::Write | AccessKind::Atomic => *byte = Byte { write: Some(id), ..Byte::default() },
            }
        }
    }

    /// The accesses of which something holds.
    fn of(&self, f: impl Fn(&Done) -> bool) -> Set {
        (0..self.done.len()).filter(|i| f(&self.done[*i])).collect()
    }

    fn issue(&mut self, agent: usize, (op, class): (OpId, Class), grouped: bool, arrives: bool) {
        if grouped {
            self.groups.insert(op, self.commits.get(&(agent, class)).copied().unwrap_or(0));
        }
        if arrives {
            let known = self.of(|d| d.agent == agent && d.class == Some(class));
            let mut frontier = Published { known, ..Published::default() };
            if ordered(class) {
                frontier.known.extend(&self.known[agent]);
                frontier.fenced.extend(&self.fenced[agent]);
            }
            self.frontiers.insert(op, frontier);
        }
    }

    fn arrive(&mut self, agent: usize, key: (BarrierId, u64), helper: Option<Helper>, count: u32) {
        let own = helper.map_or_else(Set::new, |h| self.of(|d| d.op == Some(h.op)));
        let slot = self.phases.entry(key).or_default();
        match helper {
            None if count > 0 => {
                slot.known.extend(&self.known[agent]);
                slot.fenced.extend(&self.fenced[agent]);
            }
            None => {}
            Some(h) => {
                slot.known.extend(own);
                if let Some(frontier) = self.frontiers.get(&h.op).filter(|_| count > 0) {
                    slot.known.extend(&frontier.known);
                    slot.fenced.extend(&frontier.fenced);
                }
            }
        }
    }

    fn take(&mut self, agent: usize, what: &Published) {
        self.known[agent].extend(&what.known);
        self.fenced[agent].extend(&what.fenced);
    }

    fn fence(&mut self, agent: usize, scope: Scope) {
        for i in self.known[agent].clone() {
            let scopes = [Scope::Cta, Scope::Cluster, Scope::Device].into_iter().filter(|s| *s <= scope);
            self.fenced[agent].extend(scopes.map(|s| (i, s)));
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Access(ref a) => self.access(a),
            Event::Issue { agent, op, class, grouped, signals, .. } => {
                let arrives = signals.iter().any(|s| matches!(s, Signal::Arrive { .. }));
                self.issue(agent.index(), (op, class), grouped, arrives);
            }
            Event::Commit { agent, class, groups } => drop(self.commits.insert((agent.index(), class), groups)),
            Event::GroupWait { agent, class, complete } => {
                let agent = agent.index();
                let over =
                    |d: &Done| d.agent == agent && d.class == Some(class) && d.group.is_some_and(|g| g < complete);
                let over = self.of(over);
                self.known[agent].extend(over);
            }
            Event::Arrive { barrier, agent, helper, phase, count, .. } => {
                self.arrive(agent.index(), (barrier, phase), helper, count);
            }
            Event::Observe { barrier, agent, phase, .. } if phase > 0 => {
                let slot = self.phases.get(&(barrier, phase - 1)).cloned().unwrap_or_default();
                self.take(agent.index(), &slot);
            }
            Event::Meet { waited, .. } => {
                let mut all = Published::default();
                for a in waited {
                    all.known.extend(&self.known[a.index()]);
                    all.fenced.extend(&self.fenced[a.index()]);
                }
                waited.iter().for_each(|a| self.take(a.index(), &all));
            }
            Event::Fence { agent, scope, .. } => self.fence(agent.index(), scope),
            _ => {}
        }
    }
}

/// Both, told the same; the program ends where one finds something.
struct Both {
    model: Model,
    sanitizer: Sanitizer,
    found: Option<[Option<bool>; 2]>,
}

impl Observer for Both {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let judged = if let Event::Access(a) = event { self.model.judge(a) } else { None };
        self.model.event(event);
        let stopped = self.sanitizer.event(event).is_err();
        let rule = stopped.then(|| self.sanitizer.findings()[0].rule);
        let found = [judged, rule.map(|r| !matches!(r, Rule::MissingFence | Rule::NarrowFence))];
        if found.iter().any(Option::is_some) && self.found.is_none() {
            self.found = Some(found);
        }
        Ok(())
    }
}

struct Run {
    rng: Rng,
    engine: Engine<()>,
    both: Both,
    barriers: Vec<BarrierId>,
    loads: Vec<OpId>,
}

fn none(_: &mut [Space], _: &Op<()>) -> Result<(), Halt> {
    Ok(())
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut engine = Engine::new(AGENTS, Completion::Late);
        engine.add_space(Space::new("shared"));
        let mut c = config(&BLOCKS);
        c.keep_going(false);
        let mut both = Both { model: Model::new(), sanitizer: Sanitizer::new(c), found: None };
        let barriers: Vec<BarrierId> = (0..3).map(|_| engine.add_barrier()).collect();
        for (b, count) in barriers.iter().zip([1, 2, 1]) {
            engine.init(agent(0), *b, count, None, Place::new(0), &mut both).unwrap();
        }
        Run { rng: Rng::new(seed), engine, both, barriers, loads: Vec::new() }
    }

    fn access(&mut self, who: usize, kind: Option<AccessKind>, helper: Option<Helper>) {
        let kind = kind.unwrap_or([AccessKind::Read, AccessKind::Write][self.rng.below(2)]);
        let generic = helper.is_none_or(|h| matches!(h.class, CP | AMD));
        let len = [4, 8][self.rng.below(2)];
        let access = Access {
            agent: agent(who),
            place: Place::new(1),
            space: SpaceId::new(0),
            address: self.rng.below((BYTES - len as usize) / 4 + 1) as u64 * 4,
            len,
            kind,
            proxy: if generic { Proxy::Generic } else { Proxy::Async },
            strength: if helper.is_none() && self.rng.below(6) == 0 { Strength::Strong } else { Strength::Weak },
            unchanged: false,
            helper,
            tag: 0,
        };
        // Most accesses that would be found are left out, so that programs get far.
        let (unseen, unfenced) = (self.rng.below(64) == 0, self.rng.below(6) == 0);
        if self.both.model.judge(&access).is_none_or(|seen| if seen { unseen } else { unfenced }) {
            self.both.event(&Event::Access(access)).unwrap();
        }
    }

    fn issue(&mut self, who: usize, class: Class, signals: Vec<Signal>) -> OpId {
        let grouped = signals.is_empty() && class != TENSOR;
        let op = Op { agent: agent(who), class, after: vec![], signals, payload: () };
        self.engine.issue(op, !grouped, Place::new(2), &mut self.both).unwrap()
    }

    /// An operation with one or two accesses.
    fn work(&mut self, who: usize, class: Class, kind: Option<AccessKind>, signals: Vec<Signal>) -> OpId {
        let op = self.issue(who, class, signals);
        for _ in 0..=self.rng.below(2) {
            self.access(who, kind, Some(Helper { class, op }));
        }
        op
    }

    fn step(&mut self) {
        let who = self.rng.below(AGENTS);
        let b = self.barriers[self.rng.below(2)];
        match self.rng.below(16) {
            0..3 => self.access(who, None, None),
            3 => drop(self.work(who, CP, Some(W), vec![]).index()),
            4 => drop(self.work(who, STORE, Some(R), vec![]).index()),
            5 => drop(self.work(who, AMD, None, vec![]).index()),
            6 => drop(self.work(who, TENSOR, None, vec![]).index()),
            7 => {
                let class = [CP, STORE, AMD][self.rng.below(3)];
                self.engine.commit(agent(who), class, &mut self.both).unwrap();
                let at_most = self.rng.below(2) as u32;
                self.engine.wait_groups(agent(who), class, at_most, &mut self.both, none).unwrap();
            }
            8 => {
                let class = [CP, TENSOR, AMD][self.rng.below(3)];
                let op = self.issue(who, class, vec![arrival(b)]);
                self.engine.complete(op, &mut self.both, none).unwrap();
            }
            9 => self.load(who),
            10 => {
                let scope = [Scope::Cta, Scope::Cluster][self.rng.below(2)];
                let (from, to, place) = (Proxy::Generic, Proxy::Async, Place::new(3));
                self.both
                    .event(&Event::Fence { agent: agent(who), from, to, scope, space: FenceSpace::Shared, place })
                    .unwrap();
            }
            11 if self.rng.below(3) == 0 => {
                let waited = [agent(who), agent((who + 1) % AGENTS)];
                self.both
                    .event(&Event::Meet { rendezvous: RendezvousId::new(0), waited: &waited, passed: &[] })
                    .unwrap();
            }
            11 | 12 => self.engine.arrive(agent(who), b, 1, 0, &mut self.both).unwrap(),
            _ => {
                let b = self.barriers[self.rng.below(3)];
                let phase = self.engine.barrier(b).unwrap().phase();
                if phase > 0 {
                    assert!(self.engine.test(agent(who), b, phase.is_multiple_of(2), &mut self.both).unwrap());
                }
            }
        }
    }

    /// A copy that signals bytes, or the end of one and the arrival that announces it.
    fn load(&mut self, who: usize) {
        let b = self.barriers[2];
        if self.loads.len() < 2 && self.rng.below(2) == 0 {
            let op = self.work(who, LOAD, None, vec![bytes(b, 4)]);
            self.loads.push(op);
        } else if !self.loads.is_empty() {
            let op = self.loads.swap_remove(self.rng.below(self.loads.len()));
            self.engine.complete(op, &mut self.both, none).unwrap();
            self.engine.arrive(agent(who), b, 1, 4, &mut self.both).unwrap();
        }
    }
}

#[test]
fn random_programs_are_judged_as_by_sets() {
    let [mut clean, mut unseen, mut unfenced] = [0; 3];
    for seed in 0..test_depth::cases(5000, 500) {
        let mut run = Run::new(seed);
        for _ in 0..80 {
            run.step();
            if run.both.found.is_some() {
                break;
            }
        }
        match run.both.found {
            None => clean += 1,
            Some([model, sanitizer]) => {
                let said = run.both.sanitizer.findings().first().map(|f| f.explain(&()));
                assert_eq!(model, sanitizer, "seed {seed}: {said:?}");
                *(if model == Some(true) { &mut unseen } else { &mut unfenced }) += 1;
            }
        }
    }
    println!("{clean} clean, {unseen} not ordered, {unfenced} not fenced");
    let [many, some] = test_depth::cases([500, 300], [50, 30]);
    assert!(clean > many && unseen > many && unfenced > some, "{clean} {unseen} {unfenced}");
}
