//! Instructions that the warps of a warpgroup execute together.

use titan_nv::emu::internals::Group;

#[test]
fn warps_are_compared_with_the_first() {
    let mut g = Group::default();
    assert_eq!(g.step(2, (7, [1, 0])), Ok(()));
    assert_eq!(g.step(2, (8, [1, 0])), Ok(()));
    assert_eq!(g.step(0, (7, [1, 0])), Ok(()));
    assert_eq!(g.step(1, (7, [2, 0])), Err((7, [1, 0])));
    assert_eq!(g.missed(0), Some((8, [1, 0])));
    assert_eq!(g.missed(2), None);
}

#[test]
fn what_all_have_executed_is_forgotten() {
    let mut g = Group::default();
    for round in 0..3 {
        for warp in [1, 0, 3, 2] {
            assert_eq!(g.step(warp, (round, [0; 2])), Ok(()));
        }
        assert_eq!(g.open(), 0);
    }
}
