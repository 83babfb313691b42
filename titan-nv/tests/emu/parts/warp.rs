//! Threads of a warp that separate and meet.

use titan_nv::emu::internals::{Meet, Warp};

/// Where all threads come that do not end.
fn at(pc: u32) -> Option<Meet> {
    Some(Meet { pc, loose: false })
}

fn masks(w: &Warp) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = w.fragments.iter().map(|f| (f.pc, f.mask)).collect();
    all.sort_unstable();
    all
}

#[test]
fn separated_threads_meet() {
    let mut w = Warp::new(0, 0, 0, 32);
    w.split(0, at(9), &[(1, 0xF), (5, !0xF)]);
    assert_eq!(masks(&w), [(1, 0xF), (5, !0xF)]);
    let f = w.fragments.iter().position(|f| f.pc == 1).unwrap();
    w.advance(f, 9);
    assert_eq!(masks(&w), [(5, !0xF)]);
    w.advance(0, 9);
    assert_eq!(masks(&w), [(9, u32::MAX)]);
}

#[test]
fn loops_leave_one_by_one_and_meet_once() {
    let mut w = Warp::new(0, 0, 0, 4);
    // In each round one more thread leaves the loop: the loop begins at 2, and its exit is at 7.
    for lane in 0..3 {
        let f = w.fragments.iter().position(|f| f.pc != 7).unwrap();
        let mask = w.fragments[f].mask;
        w.split(f, at(7), &[(7, 1 << lane), (2, mask & !(1 << lane))]);
        assert_eq!(w.fragments.len(), 1);
    }
    assert!(w.joins() <= 1, "one join serves all rounds");
    w.advance(0, 7);
    assert_eq!(masks(&w), [(7, 0xF)]);
}

#[test]
fn nested_joins_at_one_place_cascade() {
    let mut w = Warp::new(0, 0, 0, 4);
    w.split(0, at(9), &[(1, 0b0011), (5, 0b1100)]);
    let f = w.fragments.iter().position(|f| f.pc == 1).unwrap();
    w.split(f, at(8), &[(2, 0b0001), (3, 0b0010)]);
    for pc in [2, 3] {
        let f = w.fragments.iter().position(|f| f.pc == pc).unwrap();
        w.advance(f, 8);
    }
    let f = w.fragments.iter().position(|f| f.pc == 8).unwrap();
    w.advance(f, 9);
    w.advance(0, 9);
    assert_eq!(masks(&w), [(9, 0xF)]);
}

#[test]
fn who_ends_is_not_waited_for() {
    let mut w = Warp::new(0, 0, 0, 4);
    w.split(0, at(9), &[(1, 0b0011), (5, 0b1100)]);
    let f = w.fragments.iter().position(|f| f.pc == 1).unwrap();
    w.advance(f, 9);
    assert_eq!(masks(&w), [(5, 0b1100)]);
    w.exit(0, 0b1100);
    assert_eq!((masks(&w), w.live), (vec![(9, 0b0011)], 0b0011));
    w.exit(0, 0b0001);
    w.exit(0, 0b0010);
    assert!(w.fragments.is_empty() && w.live == 0);
}

#[test]
fn threads_go_on_from_a_loose_point_alone() {
    for loose in [true, false] {
        let mut w = Warp::new(0, 0, 0, 4);
        w.split(0, Some(Meet { pc: 9, loose }), &[(1, 0b0011), (5, 0b1100)]);
        let f = w.fragments.iter().position(|f| f.pc == 5).unwrap();
        w.advance(f, 9);
        assert!(!w.part_early(0b0011), "none of these is there");
        assert_eq!(w.part_early(0b0100), loose);
        let mut expected = vec![(1, 0b0011)];
        expected.extend(loose.then_some((9, 0b1100)));
        assert_eq!(masks(&w), expected);
        // The others meet among themselves.
        let f = w.fragments.iter().position(|f| f.pc == 1).unwrap();
        w.advance(f, 9);
        let after = if loose { vec![(9, 0b0011), (9, 0b1100)] } else { vec![(9, 0b1111)] };
        assert_eq!(masks(&w), after);
    }
}
