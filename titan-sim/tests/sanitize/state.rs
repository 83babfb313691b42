//! States that a model checker can recognise; and how fast events are taken.

use crate::harness::*;
use std::time::Instant;
use titan_sim::engine::StateHasher;

/// A round of a ring of one slot.
fn round(w: &mut World, full: titan_sim::engine::BarrierId, empty: titan_sim::engine::BarrierId, parity: bool) {
    w.arrive_expecting(0, full, 64);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(full, 64)]);
    w.complete(op);
    w.wait(1, full, parity);
    w.read(1, 0);
    w.fence(1, titan_sim::engine::Scope::Cta);
    w.arrive(1, empty);
    w.wait(0, empty, parity);
}

#[test]
fn loops_come_back_to_states_they_had() {
    let mut w = world(2);
    let (full, empty) = (w.barrier(1), w.barrier(1));
    let hashes: Vec<u128> = (0..6)
        .map(|i| {
            round(&mut w, full, empty, i % 2 == 1);
            StateHasher::of(&w.s)
        })
        .collect();
    w.clean();
    assert_eq!(hashes[2], hashes[4]);
    assert_eq!(hashes[3], hashes[5]);
    assert_ne!(hashes[2], hashes[3], "the parity is another");
}

#[test]
fn groups_are_counted_from_the_last_that_is_complete() {
    let mut w = world(1);
    let hashes = [0, 1, 2].map(|_| {
        w.op(0, CP, &[(W, 0, 0, 16)], &[]);
        w.commit(0, CP);
        w.wait_groups(0, CP, 0);
        w.read(0, 0);
        StateHasher::of(&w.s)
    });
    w.clean();
    assert_eq!(hashes[1], hashes[2]);
}

#[test]
fn the_order_of_unrelated_events_does_not_matter_and_that_of_related_ones_does() {
    let run = |order: [usize; 4]| {
        let mut w = world(3);
        let b = w.barrier(2);
        for step in order {
            match step {
                0 => w.read(0, 0),
                1 => w.read(1, 0),
                2 => w.arrive(0, b),
                _ => w.arrive(1, b),
            }
        }
        StateHasher::of(&w.s)
    };
    assert_eq!(run([0, 1, 2, 3]), run([1, 0, 3, 2]));
    assert_ne!(run([0, 1, 2, 3]), run([2, 0, 1, 3]), "what was read after the arrival is not published");
}

#[test]
fn groups_and_fences_are_part_of_the_state() {
    let run = |commits: bool, fences: bool| {
        let mut w = world(1);
        w.write(0, 64);
        w.op(0, CP, &[(W, 0, 0, 16)], &[]);
        if commits {
            w.commit(0, CP);
        }
        if fences {
            w.fence(0, titan_sim::engine::Scope::Cta);
        }
        StateHasher::of(&w.s)
    };
    let all = [run(false, false), run(true, false), run(false, true), run(true, true)];
    assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
}

/// Rounds of a ring of four slots of 32 KiB with one producer and two consumers, as a simulator of pipelines tells them.
#[test]
fn events_are_taken_quickly() {
    let mut w = world(3);
    let slots: Vec<_> = (0..4).map(|_| (w.barrier(1), w.barrier(2))).collect();
    let (before, start) = (w.s.events(), Instant::now());
    for t in 0..2000_u64 {
        let (slot, parity) = (t % 4, t / 4 % 2 == 1);
        let (full, empty) = slots[slot as usize];
        if t >= 4 {
            w.wait(0, empty, !parity);
        }
        w.arrive_expecting(0, full, 1 << 15);
        let halves = [(W, 0, slot << 15, 1 << 14), (W, 0, (slot << 15) + (1 << 14), 1 << 14)];
        let op = w.op(0, LOAD, &halves, &[bytes(full, 1 << 15)]);
        w.complete(op);
        for reader in [1, 2] {
            w.wait(reader, full, parity);
            let product = w.op(reader, TENSOR, &[(R, 0, slot << 15, 1 << 15)], &[]);
            let commit = w.op(reader, TENSOR, &[], &[arrival(empty)]);
            w.complete(product);
            w.complete(commit);
        }
    }
    w.clean();
    let (events, seconds) = (w.s.events() - before, start.elapsed().as_secs_f64());
    println!("{events} events in {seconds:.3} s: {:.0} a second, {} lanes", events as f64 / seconds, w.s.lanes());
    assert!(events as f64 / seconds > 20_000.0, "{events} events in {seconds} s");
}
