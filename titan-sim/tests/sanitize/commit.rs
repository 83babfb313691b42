//! Commit groups.

use crate::harness::*;
use titan_sim::engine::Event;
use titan_sim::sanitize::Rule;

#[test]
fn a_copy_is_seen_after_its_wait() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(0, CP);
            w.wait_groups(0, CP, u32::from(!right));
            w.read(0, 0);
        },
        1,
    );
}

#[test]
fn what_is_staged_is_not_waited_for() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            if right {
                w.commit(0, CP);
            }
            w.wait_groups(0, CP, 0);
            w.read(0, 0);
        },
        1,
    );
}

#[test]
fn everybody_is_asked_whatever_is_outstanding() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.write(1, if right { 16 } else { 0 });
        },
        2,
    );
}

#[test]
fn others_need_a_barrier_after_the_wait() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(0, CP);
            w.wait_groups(0, CP, 0);
            if right {
                w.meet(&[0, 1]);
            }
            w.read(1, 0);
        },
        2,
    );
}

#[test]
fn a_barrier_before_the_wait_does_not_help() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(0, CP);
            if right {
                w.wait_groups(0, CP, 0);
                w.meet(&[0, 1]);
            } else {
                w.meet(&[0, 1]);
                w.wait_groups(0, CP, 0);
            }
            w.read(1, 0);
        },
        2,
    );
}

#[test]
fn groups_are_told_apart() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            for i in 0..3 {
                w.op(0, CP, &[(W, 0, i * 16, 16)], &[]);
                w.commit(0, CP);
            }
            w.wait_groups(0, CP, 1);
            w.read(0, 0);
            w.read(0, if right { 16 } else { 32 });
        },
        1,
    );
}

#[test]
fn a_copy_to_the_same_place_is_staged_again() {
    let mut w = world(1);
    w.op(0, CP, &[(W, 0, 0, 16)], &[]);
    w.commit(0, CP);
    w.wait_groups(0, CP, 0);
    w.op(0, CP, &[(W, 0, 0, 16)], &[]);
    w.wait_groups(0, CP, 0);
    w.read(0, 0);
    w.finds(Rule::PendingAccess);
}

#[test]
fn operands_of_wgmma_are_free_after_its_wait() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.op(0, WGMMA, &[(R, 0, 0, 64)], &[]);
            w.commit(0, WGMMA);
            w.op(0, WGMMA, &[(R, 0, 64, 64)], &[]);
            w.commit(0, WGMMA);
            w.wait_groups(0, WGMMA, 1);
            w.write(0, if right { 0 } else { 64 });
        },
        1,
    );
}

#[test]
fn an_operand_read_again_is_free_after_the_later_wait() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            for _ in 0..2 {
                w.op(0, WGMMA, &[(R, 0, 0, 64)], &[]);
                w.commit(0, WGMMA);
            }
            w.wait_groups(0, WGMMA, u32::from(!right));
            w.write(0, 0);
        },
        1,
    );
}

#[test]
fn a_staging_buffer_is_free_after_the_store_has_read_it() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            w.op(0, STORE, &[(R, 0, 0, 64)], &[]);
            w.commit(0, STORE);
            if right {
                w.wait_groups(0, STORE, 0);
            }
            w.write(0, 0);
        },
        1,
    );
}

#[test]
fn ordered_kinds_come_after_themselves_only() {
    for (class, rules) in [(AMD, vec![]), (CP, vec![Rule::UnorderedAsync])] {
        let mut w = world(2);
        for _ in 0..2 {
            w.op(0, class, &[(W, 0, 0, 16)], &[]);
            w.commit(0, class);
        }
        assert_eq!(w.rules(), rules);
    }
    let mut w = world(2);
    w.op(0, AMD, &[(W, 0, 0, 16)], &[]);
    w.op(1, AMD, &[(W, 0, 0, 16)], &[]);
    w.finds(Rule::PendingAccess);
}

#[test]
fn copies_can_arrive_instead() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            let b = w.barrier(1);
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            let arrive = w.op(0, CP, &[], &[arrival(b)]);
            w.op(0, CP, &[(W, 0, 16, 16)], &[]);
            w.complete(arrive);
            w.wait(1, b, false);
            w.read(1, if right { 0 } else { 16 });
        },
        2,
    );
}

#[test]
fn an_arrival_of_copies_does_not_publish_what_their_agent_wrote() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(1);
            w.write(0, 32);
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            let arrive = w.op(0, CP, &[], &[arrival(b)]);
            w.complete(arrive);
            w.wait(1, b, false);
            w.read(1, if right { 0 } else { 32 });
        },
        2,
    );
}

#[test]
fn an_arrival_of_copies_publishes_its_agents_copies_even_if_they_were_waited_for_but_no_others() {
    breaks(
        Rule::PendingAccess,
        |w, right| {
            let b = w.barrier(1);
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(0, CP);
            w.wait_groups(0, CP, 0);
            w.meet(&[0, 1]);
            if !right {
                w.op(1, CP, &[(W, 0, 0, 16)], &[]);
            }
            let arrive = w.op(0, CP, &[], &[arrival(b)]);
            w.complete(arrive);
            w.wait(2, b, false);
            w.read(2, 0);
        },
        3,
    );
}

#[test]
fn empty_groups_count() {
    let mut w = world(1);
    w.op(0, CP, &[(W, 0, 0, 16)], &[]);
    w.commit(0, CP);
    w.commit(0, CP);
    w.wait_groups(0, CP, 1);
    w.read(0, 0);
    w.clean();
    // The counts are those that events tell.
    w.tell(&Event::GroupWait { agent: agent(0), class: CP, complete: 2 });
    w.clean();
}
