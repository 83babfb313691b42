//! The indices of elements, as expressions of those of loops.

use titan_nv::tma::{Dim, Domains, Op, indices};

#[test]
fn a_swizzle_is_undone_and_a_widening_makes_negative_indices() {
    let mut domains = Domains::new(&[Dim { size: Some(32), boxed: 2, stride: 1 }]).unwrap();
    let coordinate = domains.axes()[0].coordinate;
    let wide = domains.resize(coordinate, 2, 2).unwrap();
    let (x, y) = domains.split(wide, 4).unwrap();
    let (out_x, out_y) = domains.swizzle(x, y).unwrap();
    let (values, of) = indices(&domains);
    let ranges = values.ranges(&domains);
    for (i, j) in (0..5).flat_map(|i| (0..4).map(move |j| (i, j))) {
        let index = |id| {
            if id == out_x {
                i
            } else if id == out_y {
                j
            } else {
                1
            }
        };
        let got = values.eval(index);
        let wide = 4 * i + (j ^ (i % 4));
        assert_eq!(got[of[coordinate.number()].number()], wide - 2);
        assert_eq!(got[of[domains.axes()[0].partitioned.number()].number()], 2 * (wide - 2) + 1);
        assert!(got.iter().zip(&ranges).all(|(v, range)| range.is_none_or(|(low, high)| (low..=high).contains(v))));
    }
}

#[test]
fn what_is_not_needed_is_left_out() {
    let domains = Domains::new(&[Dim { size: Some(32), boxed: 2, stride: 1 }; 2]).unwrap();
    let (values, of) = indices(&domains);
    let mut root = of[domains.axes()[1].coordinate.number()];
    let kept = values.keep([&mut root]);
    assert_eq!(kept.ops(), [Op::Index(domains.axes()[1].coordinate)]);
    assert_eq!(root.number(), 0);
}
