//! Racy pairs of accesses, each beside a variant whose order makes it free of races.

use titan_sim::engine::race::{Race, Races};
use titan_sim::engine::{
    Access, AccessKind, Agent, Class, Completion, Engine, Event, Halt, Helper, Observer, Op, OpId, Place, Proxy, Rng,
    Signal, Space, SpaceId, Strength,
};

const COPY: Class = Class(0);

struct World {
    engine: Engine<()>,
    races: Races,
    space: SpaceId,
    unchanged: bool,
}

fn of(agents: usize) -> World {
    let mut engine = Engine::new(agents, Completion::Late);
    let space = engine.add_space(Space::new("shared"));
    World { engine, races: Races::new(agents, space, 0x100, 64), space, unchanged: false }
}

fn none(_: &mut [Space], _: &Op<()>) -> Result<(), Halt> {
    Ok(())
}

impl World {
    fn touch(&mut self, agent: usize, byte: u64, kind: AccessKind, strength: Strength, helper: Option<OpId>) -> bool {
        let access = Access {
            agent: Agent::new(agent),
            place: Place::new(0),
            space: self.space,
            address: 0x100 + byte,
            len: 4,
            kind,
            proxy: Proxy::Generic,
            strength,
            unchanged: self.unchanged,
            helper: helper.map(|op| Helper { class: COPY, op }),
            tag: 0,
        };
        self.races.event(&Event::Access(access)).is_ok()
    }
    /// Agents that read the same bytes by one instruction; returns whether they were recorded together, and whether there is no race.
    fn read_together(&mut self, agents: &[usize], byte: u64, strength: Strength) -> (bool, bool) {
        let read = Access {
            agent: Agent::new(agents[0]),
            place: Place::new(0),
            space: self.space,
            address: 0x100 + byte,
            len: 4,
            kind: AccessKind::Read,
            proxy: Proxy::Generic,
            strength,
            unchanged: false,
            helper: None,
            tag: 0,
        };
        let lanes = agents.iter().fold(0, |all, agent| all | 1 << agent);
        if self.races.read_together((Agent::new(0), lanes), &read) {
            return (true, true);
        }
        (false, agents.iter().all(|agent| self.touch(*agent, byte, AccessKind::Read, strength, None)))
    }
    fn read(&mut self, agent: usize, byte: u64) -> bool {
        self.touch(agent, byte, AccessKind::Read, Strength::Weak, None)
    }
    fn write(&mut self, agent: usize, byte: u64) -> bool {
        self.touch(agent, byte, AccessKind::Write, Strength::Weak, None)
    }
    fn copy_to(&mut self, agent: usize, byte: u64) -> bool {
        let op = Op { agent: Agent::new(agent), class: COPY, after: vec![], signals: vec![], payload: () };
        let id = self.engine.issue(op, false, Place::new(0), &mut self.races).unwrap();
        self.touch(agent, byte, AccessKind::Write, Strength::Weak, Some(id))
    }
    fn commit(&mut self, agent: usize) {
        self.engine.commit(Agent::new(agent), COPY, &mut self.races).unwrap();
    }
    fn wait(&mut self, agent: usize, at_most: u32) {
        self.engine.wait_groups(Agent::new(agent), COPY, at_most, &mut self.races, none).unwrap();
    }
    fn meet(&mut self, agents: &[usize]) {
        let place = self.engine.add_meeting();
        let agents: Vec<_> = agents.iter().map(|a| Agent::new(*a)).collect();
        let n = u32::try_from(agents.len()).unwrap();
        self.engine.meet(&agents, place, Some(n), true, &mut self.races).unwrap();
    }
}

#[test]
fn conflicting_accesses_race_unless_a_meeting_orders_them() {
    type Step = fn(&mut World, usize, u64) -> bool;
    let (r, w): (Step, Step) = (World::read, World::write);
    for (first, second, race) in [(w, r, true), (r, w, true), (w, w, true), (r, r, false)] {
        let mut world = of(3);
        assert!(first(&mut world, 0, 0));
        assert_eq!(second(&mut world, 1, 2), !race, "bytes 2 and 3 are common");
        let mut world = of(3);
        assert!(first(&mut world, 0, 0));
        assert!(second(&mut world, 1, 4), "no common byte");
        let mut world = of(3);
        assert!(first(&mut world, 0, 0));
        world.meet(&[0, 1]);
        assert!(second(&mut world, 1, 2));
        assert_eq!(second(&mut world, 2, 2), !race, "the third was not there");
    }
}

#[test]
fn a_moment_is_before_what_follows_a_meeting() {
    let mut w = of(3);
    let of_agent = |w: &World, agent| w.races.now(Agent::new(agent));
    let after = |w: &World, moment| [0, 1, 2].map(|agent| w.races.is_after(Agent::new(agent), moment));
    let before = of_agent(&w, 0);
    assert_eq!(after(&w, before), [true, false, false]);
    w.meet(&[0, 1]);
    let later = of_agent(&w, 0);
    assert_eq!(after(&w, before), [true, true, false]);
    assert_eq!(after(&w, later), [true, false, false]);
    w.meet(&[1, 2]);
    assert_eq!(after(&w, before), [true, true, true]);
    assert_eq!(after(&w, later), [true, false, false]);
}

#[test]
fn the_report_names_both_sides() {
    let mut w = of(2);
    w.write(0, 0);
    w.read(1, 3);
    let Race { address, first, second, .. } = *w.races.found().unwrap();
    assert_eq!((address, first.agent, first.kind), (0x103, Agent::new(0), AccessKind::Write));
    assert_eq!((second.agent, second.kind), (Agent::new(1), AccessKind::Read));
}

#[test]
fn a_write_must_be_after_every_reader() {
    let mut w = of(4);
    assert!(w.read(0, 0) && w.read(1, 0) && w.read(2, 0));
    w.meet(&[0, 1, 3]);
    assert!(!w.write(3, 0), "the reader 2 was not there");
    let mut w = of(4);
    assert!(w.read(0, 0) && w.read(1, 0) && w.read(2, 0));
    w.meet(&[0, 1, 2, 3]);
    assert!(w.write(3, 0));
}

#[test]
fn order_is_transitive() {
    let mut w = of(3);
    w.write(0, 0);
    w.meet(&[0, 1]);
    w.meet(&[1, 2]);
    assert!(w.read(2, 0));
}

#[test]
fn a_copy_is_ordered_by_its_wait_and_then_by_a_meeting() {
    let mut w = of(2);
    assert!(w.copy_to(0, 0));
    assert!(!w.read(0, 0), "not even its agent may look");
    let mut w = of(2);
    assert!(w.copy_to(0, 0));
    w.commit(0);
    assert!(w.copy_to(0, 8));
    w.commit(0);
    w.wait(0, 1);
    assert!(w.read(0, 0));
    w.meet(&[0, 1]);
    assert!(w.read(1, 0));
    assert!(!w.read(1, 8), "the second group is outstanding");
    let mut w = of(2);
    assert!(w.copy_to(0, 0) && !w.copy_to(0, 0), "two copies to one place");
}

#[test]
fn a_copy_is_after_what_its_agent_did() {
    let mut w = of(2);
    assert!(w.write(0, 0) && w.copy_to(0, 0));
    let mut w = of(2);
    assert!(w.read(1, 0) && !w.copy_to(0, 0), "the other's read is not ordered before");
}

#[test]
fn a_barrier_publishes_what_arrives() {
    let mut w = of(2);
    let b = w.engine.add_barrier();
    w.engine.init(Agent::new(0), b, 1, None, Place::new(0), &mut w.races).unwrap();
    w.write(0, 0);
    w.engine.arrive(Agent::new(0), b, 1, 0, &mut w.races).unwrap();
    w.write(0, 8);
    assert!(w.engine.test(Agent::new(1), b, false, &mut w.races).unwrap());
    assert!(w.read(1, 0));
    assert!(!w.read(1, 8), "written after the arrival");
}

#[test]
fn an_arrival_of_copies_publishes_the_copies_only() {
    let mut w = of(2);
    let b = w.engine.add_barrier();
    w.engine.init(Agent::new(0), b, 1, None, Place::new(0), &mut w.races).unwrap();
    w.copy_to(0, 0);
    w.write(0, 8);
    let after = w.engine.pending().of(Agent::new(0), COPY);
    let op = Op { agent: Agent::new(0), class: COPY, after, signals: vec![Signal::Arrive { barrier: b }], payload: () };
    let id = w.engine.issue(op, true, Place::new(0), &mut w.races).unwrap();
    w.copy_to(0, 16);
    w.engine.complete(id, &mut w.races, none).unwrap();
    assert!(w.engine.test(Agent::new(1), b, false, &mut w.races).unwrap());
    assert!(w.read(1, 0));
    assert!(!w.read(1, 16), "issued after the arrival");
    assert!(!w.read(1, 8));
}

#[test]
fn strong_accesses_may_be_unordered_among_themselves() {
    let (rmw, strong) = (AccessKind::Atomic, Strength::Strong);
    let mut w = of(2);
    assert!(w.touch(0, 0, rmw, strong, None) && w.touch(1, 0, rmw, strong, None));
    assert!(!w.read(0, 0), "a weak read races with the other's");
    let mut w = of(2);
    assert!(w.write(0, 0) && w.touch(0, 0, rmw, strong, None));
    assert!(!w.touch(1, 0, rmw, strong, None), "nor do they hide the weak write before them");
}

#[test]
fn words_publish_by_release_and_acquire() {
    let word = |w: &mut World, agent, acquire| {
        let (agent, space, address) = (Agent::new(agent), w.space, 0x120);
        let event =
            if acquire { Event::Acquire { agent, space, address } } else { Event::Release { agent, space, address } };
        w.races.event(&event).unwrap();
    };
    let mut w = of(2);
    w.write(0, 0);
    word(&mut w, 0, false);
    word(&mut w, 1, true);
    assert!(w.read(1, 0));
}

#[test]
fn a_store_ends_what_was_published_through_the_word() {
    for stores in [false, true] {
        let mut w = of(3);
        let (space, address) = (w.space, 0x120);
        w.write(0, 0);
        w.races.event(&Event::Release { agent: Agent::new(0), space, address }).unwrap();
        w.write(1, 4);
        if stores {
            w.races.event(&Event::Overwrite { space, address }).unwrap();
        }
        w.races.event(&Event::Release { agent: Agent::new(1), space, address }).unwrap();
        w.races.event(&Event::Acquire { agent: Agent::new(2), space, address }).unwrap();
        assert!(w.read(2, 4));
        assert_eq!(w.read(2, 0), !stores, "what the first has done comes with a value that continues its own");
    }
}

#[test]
fn another_block_begins_with_nothing_to_race_with() {
    let mut w = of(2);
    w.write(0, 0);
    w.copy_to(1, 8);
    w.races.restart();
    assert!(w.write(1, 0) && w.write(0, 8));
    assert!(!w.write(1, 8));
}

#[test]
fn equal_writes_do_not_race_but_readers_come_after() {
    let mut w = of(3);
    assert!(w.write(0, 0));
    w.unchanged = true;
    assert!(w.write(1, 0));
    assert!(!w.read(0, 0), "the last write is not the reader's own");
    let mut w = of(3);
    assert!(w.read(0, 0));
    w.unchanged = true;
    assert!(!w.write(1, 0), "a read before it is not ordered");
    let mut w = of(3);
    assert!(w.read(0, 0) && w.write(0, 0));
    w.unchanged = true;
    assert!(!w.write(1, 0), "not even if the reader has written since");
}

#[test]
fn forks_and_joins_order_in_their_direction_only() {
    let agents = [1, 2].map(Agent::new);
    let mut w = of(3);
    assert!(w.write(0, 0) && w.write(1, 4));
    w.races.event(&Event::Fork { agent: Agent::new(0), into: &agents }).unwrap();
    assert!(w.read(1, 0) && w.read(2, 0));
    assert!(!w.read(0, 4), "who forks learns nothing");
    let mut w = of(3);
    assert!(w.write(1, 0) && w.write(2, 4) && w.write(0, 8));
    w.races.event(&Event::Join { agents: &agents, into: Agent::new(0) }).unwrap();
    assert!(w.read(0, 0) && w.read(0, 4));
    assert!(!w.read(1, 8), "who is joined learns nothing");
    let mut w = of(3);
    w.races.event(&Event::Fork { agent: Agent::new(0), into: &agents }).unwrap();
    assert!(w.write(0, 0) && !w.read(1, 0), "written after the fork");
}

/// A random history of eight agents on four words: two detectors, of which one records reads of several agents together where it can, find a
/// race at the same step and at the same byte.
#[test]
fn reads_that_are_recorded_together_race_as_each_of_them_does() {
    let (mut together, mut races) = (0, 0);
    for seed in 0..test_depth::cases(20_000, 3_000) {
        let rng = &mut Rng::new(seed);
        let (mut one, mut all) = (of(8), of(8));
        for step in 0..40 {
            let agents: Vec<usize> = (0..8).filter(|_| rng.below(2) == 0).collect();
            let byte = 4 * rng.below(4) as u64 + if rng.below(12) == 0 { 2 } else { 0 };
            let strength = if rng.below(6) == 0 { Strength::Strong } else { Strength::Weak };
            let agent = rng.below(8);
            let [found, wanted] = match rng.below(8) {
                0..4 if !agents.is_empty() => {
                    let (grouped, found) = all.read_together(&agents, byte, strength);
                    together += usize::from(grouped && agents.len() > 1);
                    [found, agents.iter().all(|a| one.touch(*a, byte, AccessKind::Read, strength, None))]
                }
                4 => [&mut all, &mut one].map(|w| w.touch(agent, byte, AccessKind::Write, strength, None)),
                5 => [&mut all, &mut one].map(|w| w.copy_to(agent, byte)),
                6 if !agents.is_empty() => [&mut all, &mut one].map(|w| {
                    w.meet(&agents);
                    true
                }),
                _ => [&mut all, &mut one].map(|w| {
                    w.commit(agent);
                    w.wait(agent, 0);
                    w.meet(&(0..8).collect::<Vec<_>>());
                    true
                }),
            };
            assert_eq!(found, wanted, "seed {seed}, step {step}");
            if !found {
                let side = |race: &Race| (race.address, race.first.kind, race.second.agent, race.second.kind);
                assert_eq!(all.races.found().map(side), one.races.found().map(side), "seed {seed}, step {step}");
                races += 1;
                break;
            }
        }
    }
    assert!(together > 1_000 && races > 1_000, "{together} reads together, {races} races");
}
