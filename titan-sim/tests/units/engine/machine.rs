//! A producer and a consumer over one slot, written by hand; and states that no agent can leave.

use titan_sim::engine::{
    Access, AccessKind, Agent, AllocationId, BarrierFault, BarrierId, Class, Completion, Engine, Event, Halt, Observer,
    Op, Place, Proxy, Signal, Space, SpaceId, State, StateHasher, Stop, Storage, Strength, Wait,
};

const COPY: Class = Class(0);
const AT: fn() -> Place = || Place::new(0);

/// Writes `value` at an address.
#[derive(Clone, Debug, Hash)]
struct Copy8 {
    address: u64,
    value: u8,
}

struct World {
    engine: Engine<Copy8>,
    mem: SpaceId,
    full: BarrierId,
}

fn world(completion: Completion) -> World {
    let mut engine = Engine::new(2, completion);
    let mut space = Space::new("shared");
    space.allocate("slot", 0, 8).unwrap();
    let mem = engine.add_space(space);
    let full = engine.add_barrier();
    engine.init(Agent::new(0), full, 1, None, AT(), &mut ()).unwrap();
    World { engine, mem, full }
}

fn apply(spaces: &mut [Space], op: &Op<Copy8>) -> Result<(), Halt> {
    spaces[0].write(op.payload.address, &[op.payload.value; 8]).map_err(|_| Halt::Unknown)
}

fn copy(w: &World, value: u8) -> Op<Copy8> {
    let signals = vec![Signal::Bytes { barrier: w.full, bytes: 8 }];
    Op { agent: Agent::new(0), class: COPY, after: vec![], signals, payload: Copy8 { address: 0, value } }
}

#[test]
fn bytes_are_there_when_the_phase_ends() {
    let mut w = world(Completion::Late);
    let (producer, consumer) = (Agent::new(0), Agent::new(1));
    let op = copy(&w, 7);
    assert_eq!(w.engine.wait_phase(consumer, w.full, false, &mut ()), Ok(false));
    w.engine.arrive(producer, w.full, 1, 8, &mut ()).unwrap();
    let id = w.engine.issue(op, true, AT(), &mut ()).unwrap();
    let waits = Wait::Phase { barrier: w.full, parity: false };
    assert_eq!(w.engine.agents().state(consumer), State::Blocked(waits));
    assert_eq!(w.engine.pending().oldest(), Some(id));
    w.engine.complete(id, &mut (), apply).unwrap();
    assert_eq!(w.engine.agents().state(consumer), State::Ready, "woken to try again");
    assert_eq!(w.engine.wait_phase(consumer, w.full, false, &mut ()), Ok(true));
    let mut out = [0; 8];
    w.engine.space(w.mem).unwrap().read(0, &mut out).unwrap();
    assert_eq!(out, [7; 8]);
}

#[test]
fn groups_complete_when_asked_for() {
    let mut w = world(Completion::Late);
    let me = Agent::new(0);
    for value in [1, 2] {
        let op = Op { signals: vec![], ..copy(&w, value) };
        w.engine.issue(op, false, AT(), &mut ()).unwrap();
        w.engine.commit(me, COPY, &mut ()).unwrap();
    }
    w.engine.wait_groups(me, COPY, 1, &mut (), apply).unwrap();
    assert_eq!(w.engine.space(w.mem).unwrap().bytes(AllocationId::new(0)).unwrap()[0], 1);
    w.engine.wait_groups(me, COPY, 0, &mut (), apply).unwrap();
    assert!(w.engine.pending().is_empty());
}

#[test]
fn a_deadlock_tells_who_waits_for_what() {
    let mut w = world(Completion::Late);
    let meeting = w.engine.add_meeting();
    w.engine.wait_phase(Agent::new(1), w.full, false, &mut ()).unwrap();
    assert_eq!(w.engine.deadlock(), None, "agent0 is ready");
    w.engine.meet(&[Agent::new(0)], meeting, None, true, &mut ()).unwrap();
    let said = w.engine.deadlock().unwrap().to_string();
    assert_eq!(
        said,
        "deadlock: agent0 waits for rendezvous0: 1 of 2 have arrived; agent1 waits for the phase of parity 0 of \
         barrier0: 1 arrival is missing"
    );
}

#[test]
fn the_end_of_an_agent_completes_a_meeting_of_all() {
    let mut w = world(Completion::Late);
    let meeting = w.engine.add_meeting();
    w.engine.meet(&[Agent::new(0)], meeting, None, true, &mut ()).unwrap();
    w.engine.exit(&[Agent::new(1)], &mut ()).unwrap();
    assert_eq!(w.engine.agents().state(Agent::new(0)), State::Ready);
}

#[test]
fn states_can_be_kept_and_recognised() {
    let mut w = world(Completion::Seeded(3));
    let before = (w.engine.clone(), StateHasher::of(&w.engine));
    let op = copy(&w, 7);
    w.engine.issue(op, true, AT(), &mut ()).unwrap();
    assert_ne!(StateHasher::of(&w.engine), before.1);
    assert_eq!(StateHasher::of(&before.0), before.1);
}

#[test]
fn observers_see_what_happens_and_can_stop_it() {
    struct Last(Vec<String>);
    impl Observer for Last {
        fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
            let name = format!("{event:?}");
            self.0.push(name.split(' ').next().unwrap_or_default().to_owned());
            if matches!(event, Event::Flip { .. }) { Err(Stop) } else { Ok(()) }
        }
    }
    let mut w = world(Completion::Late);
    let mut seen = Last(Vec::new());
    assert_eq!(w.engine.arrive(Agent::new(0), w.full, 1, 0, &mut seen), Err(Halt::Stop));
    assert_eq!(seen.0, ["Arrive", "Flip"]);
    let access = Access {
        agent: Agent::new(0),
        place: AT(),
        space: w.mem,
        address: 0,
        len: 1,
        kind: AccessKind::Read,
        proxy: Proxy::Generic,
        strength: Strength::Weak,
        unchanged: false,
        helper: None,
        tag: 0,
    };
    assert_eq!((&mut seen, ()).event(&Event::Access(access)), Ok(()));
}

#[test]
fn observers_are_told_of_a_misuse_before_the_engine_halts() {
    struct Count(u32);
    impl Observer for Count {
        fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
            self.0 += u32::from(matches!(
                event,
                Event::Arrive { count: 2, .. } | Event::Init { count: 3, storage: Some(_), .. }
            ));
            Ok(())
        }
    }
    let (mut w, mut seen, me) = (world(Completion::Late), Count(0), Agent::new(0));
    let fault = BarrierFault::ArriveUnderflow { arrived: 2, pending: 1 };
    assert_eq!(w.engine.arrive(me, w.full, 2, 0, &mut seen), Err(Halt::Barrier(w.full, fault)));
    let storage = Some(Storage { space: w.mem, address: 0, len: 8 });
    let again = w.engine.init(me, w.full, 3, storage, AT(), &mut seen);
    assert_eq!(again, Err(Halt::Barrier(w.full, BarrierFault::Reinitialised)));
    assert_eq!(seen.0, 2);
}
