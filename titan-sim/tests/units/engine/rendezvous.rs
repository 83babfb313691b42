//! Barriers at which agents meet.

use titan_sim::engine::{Agent, Rendezvous, RendezvousFault};

fn agents(n: usize) -> Vec<Agent> {
    (0..n).map(Agent::new).collect()
}

#[test]
fn all_that_live_meet() {
    let (mut r, a) = (Rendezvous::default(), agents(3));
    r.arrive(a[0], None, true).unwrap();
    r.arrive(a[2], None, true).unwrap();
    assert_eq!(r.meet(3), None);
    assert_eq!(r.meet(2), Some((vec![a[0], a[2]], vec![])), "the third has ended");
    assert_eq!((r.generation(), r.meet(2)), (1, None));
}

#[test]
fn a_stated_number_meets_and_some_only_arrive() {
    let (mut r, a) = (Rendezvous::default(), agents(4));
    r.arrive(a[0], Some(2), false).unwrap();
    assert_eq!((r.arrived(), r.meet(4)), (1, None));
    r.arrive(a[3], Some(2), true).unwrap();
    assert_eq!(r.meet(4), Some((vec![a[3]], vec![a[0]])));
}

#[test]
fn misuse_is_a_fault() {
    let (mut r, a) = (Rendezvous::default(), agents(3));
    r.arrive(a[0], Some(2), true).unwrap();
    assert_eq!(r.arrive(a[1], Some(3), true), Err(RendezvousFault::Mismatch { first: Some(2), now: Some(3) }));
    assert_eq!(r.arrive(a[0], Some(2), true), Err(RendezvousFault::Twice(a[0])));
    r.arrive(a[1], Some(2), true).unwrap();
    assert_eq!(r.arrive(a[2], Some(2), true), Err(RendezvousFault::TooMany { expected: 2 }));
}
