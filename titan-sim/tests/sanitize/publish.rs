//! Tracking by barrier and phase, words, forks and joins.

use crate::harness::*;
use titan_sim::engine::{Event, RendezvousId, SpaceId};
use titan_sim::sanitize::Rule;

#[test]
fn an_arrival_publishes_what_was_before_it() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(1);
            if right {
                w.write(0, 0);
            }
            w.arrive(0, b);
            if !right {
                w.write(0, 0);
            }
            w.wait(1, b, false);
            w.read(1, 0);
        },
        2,
    );
}

#[test]
fn an_arrival_publishes_what_was_learned_too() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let (a, b) = (w.barrier(1), w.barrier(1));
            w.write(0, 0);
            w.arrive(0, a);
            if right {
                w.wait(1, a, false);
            }
            w.arrive(1, b);
            w.wait(2, b, false);
            w.read(2, 0);
        },
        3,
    );
}

#[test]
fn a_copy_publishes_its_own_writes_only() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let (a, b) = (w.barrier(1), w.barrier(1));
            w.arrive_expecting(0, a, 64);
            w.arrive_expecting(0, b, 64);
            let first = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(a, 64)]);
            w.op(0, LOAD, &[(W, 0, 64, 64)], &[bytes(b, 64)]);
            w.complete(first);
            w.wait(1, a, false);
            w.read(1, if right { 0 } else { 64 });
        },
        2,
    );
}

#[test]
fn a_copy_publishes_its_reads_of_global_memory_too() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            let b = w.barrier(1);
            w.arrive_expecting(0, b, 64);
            let op = w.op(0, LOAD, &[(R, 2, 0, 64), (W, 0, 0, 64)], &[bytes(b, 64)]);
            w.complete(op);
            if right {
                w.wait(1, b, false);
            }
            let a = w.base(1, W, 2, 0, 64);
            w.access(a);
        },
        2,
    );
}

#[test]
fn announcing_bytes_publishes_nothing() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(1);
            w.write(0, 0);
            w.engine.arrive(agent(0), b, u32::from(right), 64, &mut w.s).unwrap();
            if !right {
                w.arrive(1, b);
            }
            let op = w.op(0, LOAD, &[(W, 0, 64, 64)], &[bytes(b, 64)]);
            w.complete(op);
            w.wait(1, b, false);
            w.read(1, 0);
        },
        2,
    );
}

#[test]
fn the_commit_of_tensor_cores_publishes_what_they_saw() {
    breaks(
        Rule::UnorderedAsync,
        |w, right| {
            let (full, empty) = (w.barrier(1), w.barrier(1));
            w.arrive_expecting(0, full, 64);
            let load = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(full, 64)]);
            w.complete(load);
            w.wait(1, full, false);
            w.op(1, TENSOR, &[(R, 0, 0, 64)], &[]);
            let commit = w.op(1, TENSOR, &[], &[arrival(empty)]);
            w.complete(commit);
            if right {
                w.wait(0, empty, false);
            }
            // The producer has never waited for the copy itself: what the consumer saw comes with its release.
            w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(full, 64)]);
        },
        2,
    );
}

#[test]
fn a_commit_does_not_publish_what_was_issued_after_it() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            let empty = w.barrier(1);
            if right {
                w.op(1, TENSOR, &[(R, 0, 0, 64)], &[]);
            }
            let commit = w.op(1, TENSOR, &[], &[arrival(empty)]);
            if !right {
                w.op(1, TENSOR, &[(R, 0, 0, 64)], &[]);
            }
            w.complete(commit);
            w.wait(0, empty, false);
            w.write(0, 0);
        },
        2,
    );
}

#[test]
fn late_waiters_still_read_the_phase_before() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(2);
            w.write(0, 0);
            w.arrive(0, b);
            w.arrive(1, b);
            // The next phase has begun; what arrives there is not the last one's.
            w.write(0, 64);
            w.arrive(0, b);
            w.wait(2, b, false);
            w.read(2, if right { 0 } else { 64 });
        },
        3,
    );
}

#[test]
fn a_slot_is_empty_again_two_phases_on() {
    let mut w = world(3);
    let b = w.barrier(1);
    w.write(0, 0);
    w.arrive(0, b);
    w.arrive(1, b);
    w.arrive(1, b);
    // Three phases are complete, and the last has the parity of the first.
    w.wait(2, b, false);
    w.read(2, 0);
    w.finds(Rule::OutstandingWrite);
}

#[test]
fn a_read_again_is_published_no_more() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            let b = w.barrier(1);
            w.read(1, 0);
            w.arrive(1, b);
            if !right {
                w.read(1, 0);
            }
            w.wait(0, b, false);
            w.write(0, 0);
        },
        2,
    );
}

#[test]
fn a_read_in_flight_is_not_replaced_by_a_later_one() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            let (a, b) = (w.barrier(1), w.barrier(1));
            w.arrive_expecting(0, a, 64);
            w.arrive_expecting(0, b, 64);
            let first = w.op(0, LOAD, &[(R, 0, 0, 64)], &[bytes(a, 64)]);
            let second = w.op(0, LOAD, &[(R, 0, 0, 64)], &[bytes(b, 64)]);
            w.complete(first);
            w.complete(second);
            if right {
                w.wait(0, a, false);
            }
            w.wait(0, b, false);
            w.write(0, 0);
        },
        1,
    );
}

#[test]
fn words_publish_and_stores_end_it() {
    let (space, address) = (SpaceId::new(2), 0x40);
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            w.write(0, 0);
            w.tell(&Event::Release { agent: agent(0), space, address });
            if !right {
                w.tell(&Event::Overwrite { space, address });
            }
            w.tell(&Event::Acquire { agent: agent(1), space, address });
            w.read(1, 0);
        },
        2,
    );
}

#[test]
fn a_fork_gives_what_its_agent_knows() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            if right {
                w.write(0, 0);
            }
            w.tell(&Event::Fork { agent: agent(0), into: &[agent(1), agent(2)] });
            if !right {
                w.write(0, 0);
            }
            w.read(2, 0);
        },
        3,
    );
}

#[test]
fn a_join_gives_what_was_done_but_not_what_is_pending() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.write(1, 64);
            w.op(2, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(2, CP);
            if right {
                w.wait_groups(2, CP, 0);
            }
            w.tell(&Event::Join { agents: &[agent(1), agent(2)], into: agent(0) });
            w.read(0, 64);
            w.read(0, 0);
        },
        3,
    );
}

#[test]
fn relaxed_meetings_order_nothing() {
    for relaxed in [false, true] {
        let (place, mut c) = (RendezvousId::new(3), config(&[0, 1]));
        if relaxed {
            c.relaxed(place);
        }
        let mut w = with(c, 2);
        w.write(0, 0);
        w.tell(&Event::Meet { rendezvous: place, waited: &[agent(0), agent(1)], passed: &[] });
        w.read(1, 0);
        assert_eq!(w.rules(), if relaxed { vec![Rule::OutstandingWrite] } else { vec![] });
    }
}

#[test]
fn who_only_arrives_at_a_meeting_learns_nothing() {
    let mut w = world(2);
    w.write(0, 0);
    w.write(1, 64);
    w.tell(&Event::Meet { rendezvous: RendezvousId::new(1), waited: &[agent(0)], passed: &[agent(1)] });
    w.read(0, 64);
    w.clean();
    w.read(1, 0);
    w.finds(Rule::OutstandingWrite);
}
