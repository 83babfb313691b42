//! Counts, bytes, life and storage of barriers.

use crate::harness::*;
use titan_sim::engine::{BarrierFault, BarrierId, Event, Halt, SpaceId, Storage};
use titan_sim::sanitize::{Deed, Rule};

#[test]
fn more_arrivals_than_expected() {
    let mut w = world(2);
    let b = w.barrier(2);
    w.arrive(1, b);
    w.clean();
    let fault = BarrierFault::ArriveUnderflow { arrived: 2, pending: 1 };
    assert_eq!(w.engine.arrive(agent(0), b, 2, 0, &mut w.s), Err(Halt::Barrier(b, fault)));
    let f = w.only();
    assert_eq!((f.rule, f.now.agent, f.others[0].agent), (Rule::ArriveUnderflow, agent(0), agent(1)));
}

#[test]
fn bytes_are_signed_and_have_a_range() {
    let mut w = world(1);
    let b = w.barrier(1);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.complete(op);
    w.arrive_expecting(0, b, 64);
    w.wait(0, b, false);
    w.clean();
    assert!(w.engine.arrive(agent(0), b, 0, 1 << 20, &mut w.s).is_err());
    w.finds(Rule::BytesOverflow);
}

#[test]
fn a_phase_needs_count_and_bytes() {
    let mut w = world(2);
    let b = w.barrier(1);
    w.arrive_expecting(0, b, 64);
    w.block(1, b, false);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.complete(op);
    w.wait(1, b, false);
    w.clean();
}

#[test]
fn counts_of_arrivals_that_no_barrier_has() {
    let mut w = world(1);
    let b = w.engine.add_barrier();
    let place = w.next();
    assert!(w.engine.init(agent(0), b, 0, None, place, &mut w.s).is_err());
    w.finds(Rule::BarrierCount);
}

#[test]
fn initialised_again() {
    let mut w = world(1);
    let b = w.init(0, 0, 1);
    let place = w.next();
    w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
    w.engine.init(agent(0), b, 1, None, place, &mut w.s).unwrap();
    w.clean();
    assert!(w.engine.init(agent(0), b, 1, None, place, &mut w.s).is_err());
    w.finds(Rule::BarrierReinit);
    assert_eq!(w.only().others[0].deed, Deed::Init);
}

#[test]
fn used_before_and_after_its_life() {
    type Use = fn(&mut World, BarrierId);
    let uses: [Use; 4] = [
        |w, b| assert!(w.engine.arrive(agent(0), b, 1, 0, &mut w.s).is_err()),
        |w, b| assert!(w.engine.wait_phase(agent(0), b, false, &mut w.s).is_err()),
        |w, b| assert_eq!(w.op(0, LOAD, &[], &[bytes(b, 64)]).index(), 0),
        |w, b| assert!(w.engine.invalidate(agent(0), b, titan_sim::engine::Place::new(0), &mut w.s).is_err()),
    ];
    for done in uses {
        let mut w = world(1);
        let b = w.engine.add_barrier();
        done(&mut w, b);
        w.finds(Rule::BarrierNotLive);
        assert!(w.only().others.is_empty());
        let mut w = world(1);
        let b = w.init(0, 0, 1);
        let place = w.next();
        w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
        done(&mut w, b);
        w.finds(Rule::BarrierNotLive);
        assert_eq!(w.only().others[0].deed, Deed::Invalidate);
    }
}

#[test]
fn a_use_comes_after_the_initialisation() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.init(0, 0, 1);
            if right {
                w.meet(&[0, 1]);
            }
            w.arrive(1, b);
        },
        2,
    );
}

#[test]
fn an_invalidation_comes_after_every_use() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(1);
            w.arrive(1, b);
            if right {
                w.wait(0, b, false);
            }
            let place = w.next();
            w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
        },
        2,
    );
}

#[test]
fn an_invalidation_while_somebody_waits() {
    let mut w = world(2);
    let b = w.barrier(1);
    w.block(1, b, false);
    let place = w.next();
    w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
    w.finds(Rule::InvalidateWaiting);
    assert_eq!(w.only().others[0].agent, agent(1));
}

#[test]
fn an_invalidation_while_a_copy_is_to_come() {
    let mut w = world(1);
    let b = w.barrier(1);
    w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    let place = w.next();
    w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
    assert_eq!(w.rules()[0], Rule::InvalidatePending);
    // Even if it is complete, no agent has observed that.
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            let b = w.barrier(1);
            w.arrive_expecting(0, b, 64);
            let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
            w.complete(op);
            if right {
                w.wait(0, b, false);
            }
            let place = w.next();
            w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
        },
        1,
    );
}

#[test]
fn ordinary_accesses_leave_live_barriers_alone() {
    breaks(
        Rule::BarrierBytes,
        |w, right| {
            let b = w.init(0, 0, 1);
            if right {
                let place = w.next();
                w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
            }
            let a = w.base(0, R, 0, BARRIERS + 4, 4);
            w.access(a);
        },
        1,
    );
    let mut w = world(1);
    w.init(0, 0, 1);
    let a = w.base(0, W, 0, BARRIERS - 8, 8);
    w.access(a);
    w.clean();
}

#[test]
fn barriers_do_not_overlap() {
    let mut w = world(1);
    for (address, rules) in [(0, vec![]), (8, vec![]), (4, vec![Rule::BarrierOverlap])] {
        let b = w.engine.add_barrier();
        let storage = Some(Storage { space: SpaceId::new(0), address, len: 8 });
        let place = w.next();
        w.engine.init(agent(0), b, 1, storage, place, &mut w.s).unwrap();
        assert_eq!(w.rules(), rules);
    }
}

#[test]
fn storage_may_be_data_again_after_the_invalidation() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.init(0, 0, 1);
            let place = w.next();
            w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
            if right {
                w.meet(&[0, 1]);
            }
            let a = w.base(1, W, 0, BARRIERS, 16);
            w.access(a);
        },
        2,
    );
}

#[test]
fn uses_of_one_barrier_are_published_at_another() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let (a, b) = (w.barrier(2), w.barrier(1));
            w.arrive(1, a);
            if right {
                w.arrive(1, b);
            }
            w.arrive(1, a);
            if !right {
                w.arrive(1, b);
            }
            w.wait(0, a, false);
            let place = w.next();
            w.engine.invalidate(agent(0), b, place, &mut w.s).unwrap();
        },
        2,
    );
}

#[test]
fn dropping_and_adding_arrivals_counts() {
    let mut w = world(2);
    let b = w.barrier(2);
    w.engine.arrive_and_drop(agent(1), b, 1, None, &mut w.s).unwrap();
    w.arrive(0, b);
    w.arrive(0, b);
    w.clean();
    w.engine.add_pending(b, 1, &mut w.s).unwrap();
    w.arrive(0, b);
    w.arrive(0, b);
    w.clean();
    w.tell(&Event::Expect { barrier: b, count: 1 << 20 });
    w.finds(Rule::BarrierCount);
}

/// A word of memory tells of what was done with a barrier, every time that it is written.
#[test]
fn a_word_tells_of_a_barrier_used_again() {
    for told in [false, true] {
        let mut w = world(2);
        let b = w.barrier(1);
        let release = Event::Release { agent: agent(1), space: SpaceId::new(2), address: 64 };
        w.arrive(1, b);
        w.wait(1, b, false);
        w.tell(&release);
        // The same agent uses the same barrier again, and learns nothing else in between.
        w.wait(1, b, false);
        if told {
            w.tell(&release);
        }
        w.tell(&Event::Acquire { agent: agent(0), space: SpaceId::new(2), address: 64 });
        let place = w.next();
        let done = w.engine.invalidate(agent(0), b, place, &mut w.s);
        assert!(done.is_ok());
        assert_eq!(w.rules().is_empty(), told, "{:?}", w.rules());
    }
}
