//! The depths of pipelined loops.

use titan_core::pipeline::depth::{Depth, depths};

fn slots(stage: u64, shared: u64, trips: Option<i64>) -> Vec<u32> {
    depths(stage, shared, trips, 4).into_iter().map(|d| d.slots).collect()
}

#[test]
fn as_many_as_fit_and_no_more_than_iterations() {
    assert_eq!(slots(16 << 10, 99 << 10, None), [4, 3, 2]);
    assert_eq!(slots(48 << 10, 99 << 10, None), [2]);
    assert_eq!(slots(60 << 10, 99 << 10, None), [0u32; 0]);
    assert_eq!(slots(16 << 10, 99 << 10, Some(3)), [3, 2]);
    assert_eq!(slots(16 << 10, 99 << 10, Some(1)), [0u32; 0]);
    assert_eq!(Depth { slots: 4 }.distance(), 3);
}
