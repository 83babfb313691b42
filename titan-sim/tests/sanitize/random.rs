//! Random programs, one agent a partition, watched by the sanitizer and by the race observer at once.
//!
//! What the observer of vector clocks finds, the sanitizer finds, at the same event or before. Where it finds more, or
//! less, the difference has a name:
//!
//! | difference | why |
//! |---|---|
//! | *phase* | a wait takes over what its phase published, vector clocks all phases before it too |
//! | *prefix* | a copy's bytes publish that copy, vector clocks all copies of its agent and class that were issued before it |
//! | *strong* | every strong writer is kept, of vector clocks' cells the last one |
//! | *equal* | a write of equal bytes needs the reads since the last write; vector clocks keep those before it too |
//!
//! Without barriers, strong accesses and equal writes, both must agree to the event.

use crate::harness::*;
use titan_sim::engine::race::Races;
use titan_sim::engine::{
    Access, AccessKind, BarrierId, Completion, Engine, Event, Halt, Helper, Observer, Op, OpId, Place, Proxy,
    RendezvousId, Rng, Signal, Space, SpaceId, Stop, Strength,
};
use titan_sim::sanitize::Sanitizer;

const AGENTS: usize = 3;
const STEPS: usize = 60;

/// What programs are made of beside accesses, copies in groups, meetings, words, forks and joins.
#[derive(Clone, Copy)]
struct Kinds {
    strong: bool,
    equal: bool,
    phases: bool,
    bytes: bool,
}

/// Both observers, neither of which stops the run, and when each first found something.
struct Both {
    races: Races,
    sanitizer: Sanitizer,
    now: usize,
    found: [Option<usize>; 2],
}

impl Observer for Both {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        let found = [self.races.event(event).is_err(), self.sanitizer.event(event).is_err()];
        for (first, found) in self.found.iter_mut().zip(found) {
            if found {
                first.get_or_insert(self.now);
            }
        }
        self.now += 1;
        Ok(())
    }
}

struct Run {
    rng: Rng,
    engine: Engine<()>,
    both: Both,
    barriers: Vec<BarrierId>,
    kinds: Kinds,
    loads: Vec<OpId>,
}

fn none(_: &mut [Space], _: &Op<()>) -> Result<(), Halt> {
    Ok(())
}

impl Run {
    fn new(seed: u64, kinds: Kinds) -> Run {
        let mut engine = Engine::new(AGENTS, Completion::Late);
        engine.add_space(Space::new("shared"));
        let mut c = config(&[0; AGENTS]);
        c.keep_going(false);
        let races = Races::new(AGENTS, SpaceId::new(0), 0, 64);
        let mut both = Both { races, sanitizer: Sanitizer::new(c), now: 0, found: [None; 2] };
        let barriers: Vec<BarrierId> = (0..2).map(|_| engine.add_barrier()).collect();
        for (b, count) in barriers.iter().zip([1, 2]) {
            engine.init(agent(0), *b, count, None, Place::new(0), &mut both).unwrap();
        }
        Run { rng: Rng::new(seed), engine, both, barriers, kinds, loads: Vec::new() }
    }

    fn access(&mut self, who: usize, helper: Option<Helper>) {
        let kind = match self.rng.below(2) {
            _ if helper.is_some() => AccessKind::Write,
            0 => AccessKind::Read,
            _ => AccessKind::Write,
        };
        let strong = self.kinds.strong && helper.is_none() && self.rng.below(3) == 0;
        let access = Access {
            agent: agent(who),
            place: Place::new(1),
            space: SpaceId::new(0),
            address: self.rng.below(12) as u64 * 2,
            len: [2, 4, 8][self.rng.below(3)],
            kind,
            proxy: Proxy::Generic,
            strength: if strong { Strength::Strong } else { Strength::Weak },
            unchanged: self.kinds.equal && kind == AccessKind::Write && helper.is_none() && self.rng.below(2) == 0,
            helper,
            tag: 0,
        };
        // Most accesses that would race are left out, so that programs get far.
        let races = self.both.races.clone().event(&Event::Access(access)).is_err();
        if !races || self.rng.below(16) == 0 {
            self.both.event(&Event::Access(access)).unwrap();
        }
    }

    fn issue(&mut self, who: usize, class: titan_sim::engine::Class, signals: Vec<Signal>) -> OpId {
        let grouped = signals.is_empty();
        let op = Op { agent: agent(who), class, after: vec![], signals, payload: () };
        self.engine.issue(op, !grouped, Place::new(2), &mut self.both).unwrap()
    }

    fn step(&mut self) {
        let (who, other) = (self.rng.below(AGENTS), self.rng.below(AGENTS));
        let (space, address) = (SpaceId::new(0), 0x40 + 8 * self.rng.below(2) as u64);
        match self.rng.below(14) {
            0..4 => self.access(who, None),
            4 => {
                let op = self.issue(who, CP, vec![]);
                self.access(who, Some(Helper { class: CP, op }));
            }
            5 => self.engine.commit(agent(who), CP, &mut self.both).unwrap(),
            6 => {
                let at_most = self.rng.below(2) as u32;
                self.engine.wait_groups(agent(who), CP, at_most, &mut self.both, none).unwrap();
            }
            7 => {
                let (waited, passed) = ([agent(who), agent((who + 1) % AGENTS)], [agent((who + 2) % AGENTS)]);
                let passed = &passed[..self.rng.below(2)];
                self.both.event(&Event::Meet { rendezvous: RendezvousId::new(0), waited: &waited, passed }).unwrap();
            }
            8 if self.rng.below(3) == 0 => {
                let to = (space, 0x40 + 8 * self.rng.below(2) as u64);
                self.both.event(&Event::Forward { from: (space, address), to }).unwrap();
            }
            8 => self.both.event(&Event::Release { agent: agent(who), space, address }).unwrap(),
            9 => self.both.event(&Event::Acquire { agent: agent(who), space, address }).unwrap(),
            10 if self.rng.below(3) == 0 => self.both.event(&Event::Overwrite { space, address }).unwrap(),
            10 => self.both.event(&Event::Fork { agent: agent(who), into: &[agent(other)] }).unwrap(),
            11 => self.both.event(&Event::Join { agents: &[agent(who)], into: agent(other) }).unwrap(),
            12 if self.kinds.bytes => self.load(who),
            _ if self.kinds.phases => self.phase(who),
            _ => self.access(who, None),
        }
    }

    /// A copy that signals bytes, or the end of one.
    fn load(&mut self, who: usize) {
        let b = self.barriers[0];
        if self.loads.len() < 2 && self.rng.below(2) == 0 {
            let op = self.issue(who, LOAD, vec![bytes(b, 4)]);
            self.access(who, Some(Helper { class: LOAD, op }));
            self.loads.push(op);
        } else if !self.loads.is_empty() {
            let op = self.loads.swap_remove(self.rng.below(self.loads.len()));
            self.engine.complete(op, &mut self.both, none).unwrap();
            self.engine.arrive(agent(who), b, 1, 4, &mut self.both).unwrap();
        }
    }

    /// An arrival, an arrival of copies, or a wait for the last complete phase.
    fn phase(&mut self, who: usize) {
        let b = self.barriers[self.rng.below(2)];
        let phase = self.engine.barrier(b).unwrap().phase();
        match self.rng.below(5) {
            0 | 1 => self.engine.arrive(agent(who), b, 1, 0, &mut self.both).unwrap(),
            2 => {
                let op = self.issue(who, CP, vec![arrival(b)]);
                self.engine.complete(op, &mut self.both, none).unwrap();
            }
            _ if phase > 0 => {
                let passed = self.engine.test(agent(who), b, phase.is_multiple_of(2), &mut self.both).unwrap();
                assert!(passed, "the last complete phase");
            }
            _ => {}
        }
    }

    fn run(mut self) -> [Option<usize>; 2] {
        for _ in 0..STEPS {
            self.step();
        }
        self.both.found
    }
}

/// The number of programs of each comparison, and of those that must be of a kind: in the quick depth an eighth.
fn of(n: u32) -> u32 {
    n / test_depth::cases(1, 8)
}

/// How many programs: clean for both, found at the same event, found by the sanitizer first or alone, by races first or alone.
fn compare(kinds: Kinds) -> [u32; 4] {
    let mut counts = [0; 4];
    for seed in 0..of(4000).into() {
        let at = match Run::new(seed, kinds).run() {
            [None, None] => 0,
            [Some(r), Some(s)] if r == s => 1,
            [r, Some(s)] if r.is_none_or(|r| s < r) => 2,
            _ => 3,
        };
        counts[at] += 1;
    }
    counts
}

const PLAIN: Kinds = Kinds { strong: false, equal: false, phases: false, bytes: false };

#[test]
fn without_named_differences_both_agree_to_the_event() {
    let [clean, same, more, less] = compare(PLAIN);
    assert_eq!((more, less), (0, 0));
    assert!(clean > of(1000) && same > of(1000), "{clean} clean, {same} found");
}

#[test]
fn what_races_finds_the_sanitizer_finds() {
    let all = [
        Kinds { strong: true, ..PLAIN },
        Kinds { phases: true, ..PLAIN },
        Kinds { bytes: true, ..PLAIN },
        Kinds { strong: true, phases: true, bytes: true, equal: false },
    ];
    for (i, kinds) in all.into_iter().enumerate() {
        let [clean, same, more, less] = compare(kinds);
        assert_eq!(less, 0, "{i}");
        assert!(clean > of(500) && same > of(1000) && more < of(800), "{i}: {clean} {same} {more}");
    }
}

#[test]
fn only_equal_writes_hide_readers() {
    let [_, same, _, less] = compare(Kinds { equal: true, ..PLAIN });
    assert!(same > of(1000) && less < of(400), "{same} {less}");
}
