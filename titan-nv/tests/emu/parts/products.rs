//! Registers of products in flight.

use titan_nv::emu::internals::{Conflict, Products};
use titan_sim::engine::OpId;

#[test]
fn registers_are_free_after_the_wait_for_their_group() {
    let mut p = Products::new(8);
    p.write(0);
    assert_eq!(p.conflict(&[0, 1], &[2]), Some((0, Conflict::Unfenced)));
    p.fence();
    assert_eq!(p.conflict(&[0, 1], &[2]), None);
    p.issue(&[0, 1], &[2], OpId::new(0));
    p.commit();
    assert_eq!(p.conflict(&[0, 1], &[2]), None, "the same accumulator");
    p.issue(&[0, 1], &[3], OpId::new(1));
    assert_eq!(p.conflict(&[1, 0], &[]), Some((1, Conflict::OtherAccumulator)));
    assert_eq!(p.conflict(&[4, 5], &[0]), Some((0, Conflict::OtherAccumulator)));
    assert_eq!(p.conflict(&[3, 4], &[]), Some((3, Conflict::OtherAccumulator)));
    p.commit();
    assert_eq!(p.wait(1), [0_u32; 0], "the second still accumulates");
    p.write(2);
    assert_eq!(p.clobbered, None);
    p.write(3);
    assert_eq!(p.clobbered, Some(3));
    assert_eq!(p.wait(0), [0, 1]);
    assert!(!p.any_in_flight());
}

#[test]
fn what_is_not_committed_is_not_waited_for() {
    let mut p = Products::new(4);
    p.issue(&[0], &[], OpId::new(0));
    assert_eq!(p.wait(0), [0_u32; 0]);
    assert!(p.is_accumulator(0));
}
