//! Sets of address ranges.

use titan_nv::emu::Ranges;

#[test]
fn ranges_join_and_meet() {
    let mut a = Ranges::default();
    for i in (0..100).rev() {
        a.add(i * 8, 4);
        a.add(i * 8 + 4, 4);
    }
    a.settle();
    assert_eq!(a.iter().collect::<Vec<_>>(), [(0, 800)]);
    let mut b = Ranges::one(800, 4);
    b.settle();
    assert_eq!(a.overlap(&b), None);
    b.add(796, 5);
    b.settle();
    assert_eq!(a.overlap(&b), Some((796, 800)));
}
