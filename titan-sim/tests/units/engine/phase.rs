//! Barriers with phases, counts and bytes.

use titan_sim::engine::{BarrierFault, PhaseBarrier, StateHasher};

fn live(count: u32) -> PhaseBarrier {
    let mut barrier = PhaseBarrier::default();
    barrier.init(count).unwrap();
    barrier
}

#[test]
fn a_phase_ends_with_its_last_arrival() {
    let mut b = live(2);
    assert!(b.passed(true) && !b.passed(false), "a fresh barrier: the phase before it counts as complete");
    assert_eq!(b.arrive(1), Ok(false));
    assert_eq!(b.arrive(1), Ok(true));
    assert!(b.passed(false) && !b.passed(true));
    assert_eq!((b.pending(), b.phase()), (2, 1));
    b.arrive(2).unwrap();
    assert!(!b.passed(false), "two phases on, the parity is the old one");
}

#[test]
fn bytes_hold_the_phase_and_may_come_first() {
    let mut b = live(1);
    assert_eq!(b.complete(64), Ok(false));
    assert_eq!(b.bytes(), -64);
    assert_eq!(b.expect(128), Ok(false));
    assert_eq!(b.arrive(1), Ok(false), "64 bytes are missing");
    assert_eq!(b.complete(64), Ok(true));
}

#[test]
fn too_few_expected_bytes_end_the_phase_early() {
    let mut b = live(1);
    b.expect(32).unwrap();
    b.arrive(1).unwrap();
    assert_eq!(b.complete(32), Ok(true), "though more copies are in flight: a race, not a hang");
}

#[test]
fn misuse_is_a_fault() {
    let mut b = PhaseBarrier::default();
    assert_eq!(b.arrive(1), Err(BarrierFault::NotLive));
    assert_eq!(b.init(0), Err(BarrierFault::Count(0)));
    assert_eq!(b.init(1 << 20), Err(BarrierFault::Count(1 << 20)));
    b.init(3).unwrap();
    assert_eq!(b.init(3), Err(BarrierFault::Reinitialised));
    assert_eq!(b.arrive(4), Err(BarrierFault::ArriveUnderflow { arrived: 4, pending: 3 }));
    assert_eq!(b.expect(1 << 20), Err(BarrierFault::Bytes(1 << 20)));
    assert_eq!(b.complete(1 << 20), Err(BarrierFault::Bytes(-(1 << 20))));
    b.invalidate().unwrap();
    assert_eq!(b.invalidate(), Err(BarrierFault::NotLive));
    assert_eq!(b.init(1), Ok(()));
}

#[test]
fn two_phases_on_the_hash_is_the_old_one() {
    let mut b = live(1);
    let hashes = [0, 1, 2].map(|_| {
        let hash = StateHasher::of(&b);
        b.arrive(1).unwrap();
        hash
    });
    assert!(hashes[0] == hashes[2] && hashes[0] != hashes[1]);
}

#[test]
fn dropping_lowers_later_phases_too() {
    let mut b = live(2);
    b.arrive_and_drop(1).unwrap();
    assert_eq!(b.arrive(1), Ok(true));
    assert_eq!(b.arrive(1), Ok(true), "one is left to arrive");
    let mut b = live(1);
    b.add_pending(1).unwrap();
    assert_eq!(b.arrive(1), Ok(false));
    assert_eq!(b.arrive(1), Ok(true));
    assert_eq!(b.pending(), 1);
}
