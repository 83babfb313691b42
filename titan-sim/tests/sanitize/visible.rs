//! Visibility and legality, lanes, unordered copies.

use crate::harness::*;
use titan_sim::engine::{Access, AccessKind, Strength};
use titan_sim::sanitize::{Config, Deed, Rule, TooManyPartitions, Unit};

#[test]
fn a_read_needs_the_last_write() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            w.write(0, 0);
            if right {
                w.meet(&[0, 1]);
            }
            w.read(1, 8);
        },
        2,
    );
}

#[test]
fn a_write_needs_the_last_write() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            w.write(0, 0);
            if right {
                w.meet(&[0, 1]);
            }
            w.write(1, 8);
        },
        2,
    );
}

#[test]
fn a_write_needs_every_reader() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            w.read(0, 0);
            w.read(1, 0);
            w.meet(if right { &[0, 1, 2] } else { &[0, 2] });
            w.write(2, 0);
        },
        3,
    );
}

#[test]
fn a_read_again_must_be_waited_for_again() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            w.read(0, 0);
            w.meet(&[0, 1]);
            if !right {
                w.read(0, 0);
            }
            w.write(1, 0);
        },
        2,
    );
}

#[test]
fn reads_do_not_disturb_each_other_and_fresh_bytes_may_be_read() {
    let mut w = world(2);
    w.read(0, 0);
    w.read(1, 0);
    w.clean();
}

#[test]
fn lanes_are_exact() {
    let mut w = world(2);
    w.write(0, 0);
    w.write(1, 16);
    let a = w.base(1, R, 0, 15, 1);
    w.read(1, 16);
    w.clean();
    w.access(a);
    let f = w.only();
    assert_eq!((f.rule, f.bytes.map(|(_, at, len)| (at, len))), (Rule::OutstandingWrite, Some((15, 1))));
    assert_eq!(f.others[0].bytes.map(|(_, at, len)| (at, len)), Some((0, 16)));
}

#[test]
fn lanes_that_become_alike_are_one() {
    let mut w = world(2);
    for _ in 0..2 {
        for i in 0..32 {
            let a = Access { place: titan_sim::engine::Place::new(5), ..w.base(0, W, 0, i * 4, 4) };
            w.access(a);
        }
    }
    assert_eq!(w.s.lanes(), 1);
    let a = w.base(1, R, 0, 60, 8);
    w.access(a);
    assert_eq!((w.s.lanes(), w.rules().len()), (3, 1));
}

#[test]
fn lanes_of_different_writers_stay_apart() {
    let mut w = world(3);
    let place = titan_sim::engine::Place::new(5);
    for (who, address) in [(0, 0), (1, 16)] {
        let a = Access { place, ..w.base(who, W, 0, address, 16) };
        w.access(a);
    }
    // Now both know the same of both, and one access is to both.
    w.meet(&[0, 1]);
    let a = w.base(0, R, 0, 0, 32);
    w.access(a);
    assert_eq!(w.s.lanes(), 2);
    w.read(2, 16);
    assert_eq!(w.only().others[0].agent, agent(1));
}

#[test]
fn spaces_are_apart() {
    let mut w = world(2);
    w.write(0, 0);
    let a = w.base(1, W, 2, 0, 16);
    w.access(a);
    w.clean();
}

#[test]
fn strong_accesses_may_be_unordered_among_themselves() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            for who in [0, 1] {
                let a = Access { strength: Strength::Strong, ..w.base(who, AccessKind::Atomic, 0, 0, 4) };
                w.access(a);
            }
            let strength = if right { Strength::Strong } else { Strength::Weak };
            let a = Access { strength, ..w.base(0, R, 0, 0, 4) };
            w.access(a);
        },
        2,
    );
}

#[test]
fn a_strong_write_does_not_hide_the_weak_one_before() {
    let mut w = world(2);
    w.write(0, 0);
    for who in [0, 1] {
        let a = Access { strength: Strength::Strong, ..w.base(who, AccessKind::Atomic, 0, 0, 4) };
        w.access(a);
    }
    w.finds(Rule::OutstandingWrite);
}

#[test]
fn equal_writes_need_only_the_readers() {
    breaks(
        Rule::OutstandingRead,
        |w, right| {
            w.write(0, 0);
            if !right {
                w.read(0, 0);
            }
            let a = Access { unchanged: true, ..w.base(1, W, 0, 0, 16) };
            w.access(a);
        },
        2,
    );
}

#[test]
fn copies_of_one_partition_are_not_ordered_by_their_issue() {
    breaks(
        Rule::UnorderedAsync,
        |w, right| {
            let (a, b) = (w.barrier(1), w.barrier(1));
            w.arrive_expecting(0, a, 64);
            let first = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(a, 64)]);
            w.arrive_expecting(0, b, 64);
            if right {
                w.complete(first);
                w.wait(0, a, false);
            }
            w.op(0, LOAD, &[(W, 0, 32, 64)], &[bytes(b, 64)]);
        },
        1,
    );
}

#[test]
fn answers_of_cluster_launch_control_are_not_ordered_either() {
    breaks(
        Rule::UnorderedAsync,
        |w, right| {
            let b = w.barrier(1);
            w.op(0, LAUNCH, &[(W, 0, 0, 16)], &[bytes(b, 16)]);
            w.op(0, LAUNCH, &[(W, 0, if right { 16 } else { 0 }, 16)], &[bytes(b, 16)]);
        },
        1,
    );
}

#[test]
fn tensor_cores_keep_their_order() {
    let mut w = world(1);
    w.op(0, TENSOR, &[(W, 0, 0, 64)], &[]);
    w.op(0, TENSOR, &[(R, 0, 0, 64), (W, 0, 64, 64)], &[]);
    w.clean();
    w.read(0, 64);
    w.finds(Rule::OutstandingWrite);
}

#[test]
fn an_operation_comes_after_what_its_agent_did_but_not_before_what_it_does() {
    breaks(
        Rule::OutstandingWrite,
        |w, right| {
            let b = w.barrier(1);
            w.read(0, 0);
            w.fence(0, titan_sim::engine::Scope::Cta);
            w.arrive_expecting(0, b, 64);
            let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
            if right {
                w.complete(op);
                w.wait(0, b, false);
            }
            w.read(0, 0);
        },
        1,
    );
}

#[test]
fn the_report_names_both_sides() {
    let mut w = world(2);
    w.tell(&titan_sim::engine::Event::At { agent: agent(0), place: titan_sim::engine::Place::new(3), tag: 11 });
    let b = w.barrier(1);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    let a = Access { tag: 5, ..w.base(1, R, 0, 48, 32) };
    w.access(a);
    let f = w.only();
    assert_eq!((f.rule.code(), f.pending), ("outstanding-write", Some("TMA load")));
    assert_eq!(f.bytes.map(|(_, at, len)| (at, len)), Some((48, 16)));
    assert_eq!((f.now.agent, f.now.unit, f.now.deed, f.now.tag), (agent(1), Unit::Base, Deed::Read, 5));
    assert_eq!((f.others[0].agent, f.others[0].unit, f.others[0].deed), (agent(0), Unit::Tma, Deed::Write));
    let said = f.explain(&());
    assert!(said.contains("before: an operation of class 1 of agent0 writes bytes 0x0..0x40 of space0"), "{said}");
    w.complete(op);
}

#[test]
fn there_is_an_end_to_partitions_and_unknown_agents_are_told() {
    assert!(Config::one_each(64).is_ok());
    assert_eq!(Config::one_each(65).err(), Some(TooManyPartitions));
    let mut w = world(1);
    w.read(1, 0);
    w.finds(Rule::UnknownAgent);
}

#[test]
fn codes_are_words_of_their_own() {
    let mut codes: Vec<&str> = Rule::ALL.iter().map(|r| r.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Rule::ALL.len());
}
