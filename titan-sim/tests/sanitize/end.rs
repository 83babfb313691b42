//! Ends: of agents, of blocks, of progress; and the false alarms that other sanitizers had.

use crate::harness::*;
use titan_sim::engine::{Agent, Event, RendezvousId, Wait};
use titan_sim::sanitize::Rule;

#[test]
fn all_that_are_left_wait() {
    let mut w = world(3);
    let (a, b) = (w.barrier(1), w.barrier(1));
    w.block(0, a, false);
    w.block(1, b, false);
    w.clean();
    w.exit(2);
    let f = w.only();
    assert_eq!((f.rule, f.now.agent, f.others[0].agent), (Rule::Deadlock, agent(0), agent(1)));
    assert_eq!(f.waits, [Wait::Phase { barrier: a, parity: false }, Wait::Phase { barrier: b, parity: false }]);
    assert!(f.explain(&()).contains("waiting: agent1 waits at barrier1"), "{}", f.explain(&()));
}

#[test]
fn the_last_to_wait_makes_it_a_deadlock() {
    let mut w = world(2);
    let b = w.barrier(2);
    w.arrive(0, b);
    w.block(0, b, false);
    w.clean();
    w.block(1, b, false);
    w.finds(Rule::Deadlock);
}

#[test]
fn who_can_still_be_woken_is_not_deadlocked() {
    // A copy that will signal is in flight.
    let mut w = world(1);
    let b = w.barrier(1);
    w.arrive_expecting(0, b, 64);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.block(0, b, false);
    w.clean();
    w.complete(op);
    w.wait(0, b, false);
    w.clean();
    // One that signals nothing, or something else, does not help.
    let mut w = world(1);
    let b = w.barrier(1);
    let op = w.op(0, STORE, &[(R, 0, 0, 64)], &[]);
    w.block(0, b, false);
    w.finds(Rule::Deadlock);
    w.complete(op);
    // A wait for something of the customer's own.
    let mut w = world(1);
    w.tell(&Event::Wait { agent: agent(0), wait: Wait::Other(3) });
    w.clean();
}

#[test]
fn a_copy_that_completes_without_ending_the_phase_leaves_a_deadlock() {
    let mut w = world(1);
    let b = w.barrier(1);
    w.arrive_expecting(0, b, 128);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.block(0, b, false);
    w.clean();
    w.complete(op);
    w.finds(Rule::Deadlock);
}

/// A waiter whose phase is already complete, which it has not observed yet, and waiters for another phase (Triton #9046).
#[test]
fn false_alarm_waiting_for_a_phase_that_is_over() {
    let mut w = world(2);
    let b = w.barrier(1);
    w.block(0, b, false);
    w.arrive(1, b);
    w.tell(&Event::Wait { agent: agent(0), wait: Wait::Phase { barrier: b, parity: false } });
    w.block(1, b, true);
    w.clean();
    w.wait(0, b, false);
    w.arrive(0, b);
    w.exit(0);
    w.wait(1, b, true);
    w.clean();
}

/// Two blocks of a pair, one of which issues for both: the bytes of both arrive at the leader's barrier (Triton #10123).
#[test]
fn false_alarm_pair_of_blocks() {
    let mut w = cluster(&[0, 1]);
    let b = w.init(0, 0, 1);
    w.meet(&[0, 1]);
    w.arrive_expecting(0, b, 128);
    let near = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    let far = w.op(1, LOAD, &[(W, 1, 0, 64)], &[bytes(b, 64)]);
    w.complete(near);
    w.complete(far);
    w.wait(0, b, false);
    w.op(0, TENSOR, &[(R, 0, 0, 64), (R, 1, 0, 64)], &[]);
    w.clean();
}

/// Another round of a ring of one slot with two consumers, one of which comes late (as Triton #11200, #11310).
#[test]
fn false_alarm_ring() {
    let mut w = world(3);
    let (full, empty) = (w.barrier(1), w.barrier(2));
    for round in 0..6_u32 {
        let parity = round % 2 == 1;
        if round > 0 {
            w.wait(0, empty, !parity);
        }
        w.arrive_expecting(0, full, 64);
        let op = w.op(0, LOAD, &[(R, 2, 64 * u64::from(round), 64), (W, 0, 0, 64)], &[bytes(full, 64)]);
        w.complete(op);
        for reader in [1, 2] {
            w.wait(reader, full, parity);
            w.read(reader, 0);
            w.fence(reader, titan_sim::engine::Scope::Cta);
            w.arrive(reader, empty);
        }
    }
    w.wait(0, empty, true);
    (0..3).for_each(|a| w.exit(a));
    w.clean();
}

#[test]
fn a_ring_without_its_release_is_found() {
    let mut w = world(2);
    let full = w.barrier(1);
    for round in 0..2 {
        w.arrive_expecting(0, full, 64);
        let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(full, 64)]);
        w.complete(op);
        w.wait(1, full, round == 1);
        w.read(1, 0);
    }
    assert!(w.rules().contains(&Rule::UnorderedAsync), "{:?}", w.rules());
}

#[test]
fn work_is_waited_for_before_the_block_ends() {
    for (class, right) in [(CP, true), (CP, false), (STORE, true), (STORE, false), (LOAD, true), (LOAD, false)] {
        let mut w = world(2);
        let b = w.barrier(1);
        let acc = [(if class == STORE { R } else { W }, 0, 0, 64)];
        if class == LOAD {
            w.arrive_expecting(0, b, 64);
            let op = w.op(0, class, &acc, &[bytes(b, 64)]);
            w.complete(op);
            if right {
                w.wait(1, b, false);
            }
        } else {
            w.op(0, class, &acc, &[]);
            w.commit(0, class);
            if right {
                w.wait_groups(0, class, 0);
            }
        }
        w.exit(0);
        w.clean();
        w.exit(1);
        if right {
            w.clean();
        } else {
            assert_eq!(w.rules()[0], Rule::ExitInFlight, "{class:?}");
            assert!(w.s.findings()[0].pending.is_some());
        }
    }
}

#[test]
fn the_memory_of_a_block_that_ended_is_gone() {
    for right in [true, false] {
        let mut w = cluster(&[0, 1]);
        let b = w.init(0, 0, 1);
        w.meet(&[0, 1]);
        if !right {
            w.exit(1);
        }
        w.op(0, LOAD, &[(W, 0, 0, 64), (W, 1, 0, 64)], &[bytes(b, 128)]);
        assert_eq!(w.rules(), if right { vec![] } else { vec![Rule::ExitedMemory] });
    }
    let mut w = cluster(&[0, 1]);
    let b = w.init(1, 1, 1);
    w.meet(&[0, 1]);
    w.exit(1);
    w.arrive(0, b);
    w.finds(Rule::ExitedMemory);
}

#[test]
fn a_multicast_signals_each_block_what_came_to_it() {
    for right in [true, false] {
        let mut w = cluster(&[0, 1]);
        let (near, far) = (w.init(0, 0, 1), w.init(1, 1, 1));
        w.meet(&[0, 1]);
        w.arrive_expecting(0, near, 64);
        w.arrive_expecting(1, far, 64);
        let op = w.op(0, LOAD, &[(W, 0, 0, 64), (W, 1, 0, 64)], &[bytes(near, 64), bytes(far, 64)]);
        w.complete(op);
        w.wait(1, far, false);
        let a = w.base(1, R, if right { 1 } else { 0 }, 0, 64);
        w.access(a);
        assert_eq!(w.rules(), if right { vec![] } else { vec![Rule::OutstandingWrite] });
    }
}

#[test]
fn meetings_that_take_place_are_no_deadlock() {
    let mut w = world(2);
    let place = w.engine.add_meeting();
    let (a, b) = (agent(0), agent(1));
    w.engine.meet(&[a], place, None, true, &mut w.s).unwrap();
    w.engine.meet(&[b], place, None, true, &mut w.s).unwrap();
    w.engine.meet(&[a], place, None, true, &mut w.s).unwrap();
    w.exit(1);
    w.exit(0);
    w.clean();
    let mut w = world(2);
    let place = w.engine.add_meeting();
    w.engine.meet(&[a], place, Some(2), true, &mut w.s).unwrap();
    w.exit(1);
    w.finds(Rule::Deadlock);
    assert_eq!(w.only().waits, [Wait::Meeting { rendezvous: place }]);
}

#[test]
fn the_first_finding_stops_a_run_unless_told_otherwise() {
    let mut c = config(&[0, 0]);
    c.keep_going(false);
    let mut w = with(c, 2);
    w.write(0, 0);
    let a = w.base(1, R, 0, 0, 4);
    assert!(titan_sim::engine::Observer::event(&mut w.s, &Event::Access(a)).is_err());
    w.s.restart();
    assert!(w.s.findings().is_empty() && w.s.lanes() == 0);
    w.read(1, 0);
    let all: [Agent; 2] = [agent(0), agent(1)];
    w.tell(&Event::Meet { rendezvous: RendezvousId::new(0), waited: &all, passed: &[] });
}
