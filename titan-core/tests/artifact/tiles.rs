//! Assumptions about the bytes of tiles, and about the distances of rows.

use super::Args;
use titan_core::artifact::Assumption;

#[test]
fn the_bytes_of_a_tile_are_counted_from_its_first_element() {
    let holds = |tile: &[u32], extents, strides| {
        Assumption::Reach { param: 0, tile: tile.to_vec() }.holds(&Args { extents, strides, address: 0 })
    };
    let far = (1 << 31) / 2 / 128; // Rows of so many elements of two bytes.
    assert!(holds(&[128, 64], [1 << 40, 64], [64, 1]) && holds(&[128, 64], [1 << 40, 64], [far, 1]));
    assert!(!holds(&[129, 64], [1 << 40, 64], [far, 1]) && holds(&[1024, 64], [128, 64], [far, 1]));
    assert!(!holds(&[128, 64], [128, 64], [-64, 1]), "a tile goes on from its first element");
    assert!(holds(&[128, 64], [1, 64], [i64::MIN, 1]) && holds(&[2, 2], [0, 0], [i64::MAX, 1]), "nothing between");
    assert!(!holds(&[128, 64], [1, 1 << 31], [1, 1]), "a row of 2^32 bytes");
    assert!(!holds(&[128], [1, 64], [64, 1]) && !holds(&[2, 2], [i64::MAX, i64::MAX], [i64::MAX, 1]));
}

#[test]
fn rows_that_overlap_or_are_far_away_are_told_from_others() {
    let holds = |axis: u32, extents, strides| {
        Assumption::Apart { param: 0, axis, rows: 64 }.holds(&Args { extents, strides, address: 0 })
    };
    let far = (1 << 31) / 2 / 64; // Rows of so many elements of two bytes.
    assert!(holds(0, [128, 64], [64, 1]) && holds(0, [128, 64], [far, 1]) && holds(0, [0, 0], [0, 1]));
    assert!(!holds(0, [128, 64], [63, 1]) && !holds(0, [128, 64], [0, 1]) && !holds(0, [128, 64], [-64, 1]));
    assert!(!holds(0, [128, 64], [far + 1, 1]) && !holds(0, [1, 64], [0, 1]), "the distance counts also for one row");
    assert!(!holds(0, [1, 64], [far + 1, 1]) && !holds(0, [20, 64], [1 << 29, 1]), "and for rows that there are not");
    assert!(!holds(2, [128, 64], [64, 1]) && !holds(0, [128, i64::MAX], [i64::MAX, i64::MAX]));
}
