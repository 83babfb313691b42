//! Which stores asynchronous copies see.

use std::collections::BTreeSet;
use titan_nv::emu::internals::{Reach, Stores, View};

fn seen(s: &Stores, reader: u64, current: u8) -> Option<u8> {
    let mut view = View::default();
    s.read(reader, 0, 8, 1, &mut view);
    let (mut value, mut written) = ([current], [true]);
    view.correct(0, 8, &mut value, &mut written);
    written[0].then_some(value[0])
}

#[test]
fn a_store_is_seen_after_a_fence_of_the_writer_or_the_reader() {
    let mut s = Stores::default();
    s.store(6, 0, 8, (&[1], &[true]));
    assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(1), Some(1)]);
    s.fence(5, Reach::Block, 0);
    assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(2), Some(1)]);
    s.fence(6, Reach::Block, 0);
    assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(2), Some(2)]);
    assert!(s.is_empty());
}

#[test]
fn a_fence_reaches_what_it_says() {
    let mut s = Stores::default();
    s.store(6, 0, 8, (&[1], &[true]));
    s.fence(6, Reach::Global, 0);
    s.fence(6, Reach::Block, 1);
    assert_eq!(seen(&s, 7, 2), Some(1), "neither global memory nor another block");
    s.fence(6, Reach::Cluster, 1);
    assert_eq!(seen(&s, 7, 2), Some(2));
}

#[test]
fn a_fence_before_the_store_is_none() {
    let mut s = Stores::default();
    s.fence(6, Reach::All, 0);
    s.fence(7, Reach::All, 0);
    s.store(6, 0, 8, (&[1], &[false]));
    assert_eq!(seen(&s, 7, 2), None, "it was never written as far as the copy engine knows");
}

#[test]
fn each_of_several_stores_needs_a_fence() {
    let mut s = Stores::default();
    s.store(5, 0, 8, (&[1], &[true]));
    s.fence(7, Reach::All, 0);
    s.store(6, 0, 8, (&[2], &[true]));
    assert_eq!(seen(&s, 7, 3), Some(2), "the first is seen, the second is not");
    assert_eq!(seen(&s, 8, 3), Some(1));
    s.fence(5, Reach::All, 0);
    assert_eq!(seen(&s, 8, 3), Some(2));
}

#[test]
fn an_unfenced_store_may_come_after_a_copy() {
    let mut s = Stores::default();
    s.store(5, 0, 8, (&[1], &[true]));
    let mut view = View::default();
    s.write(7, 0, 7, 2, &mut view);
    assert_eq!(view.hidden, BTreeSet::from([(0, 8)]));
    s.written((0, 8), 80, true);
    assert_eq!(seen(&s, 7, 2), Some(80));
    s.written((0, 8), 90, false);
    assert!(s.is_empty());
}
