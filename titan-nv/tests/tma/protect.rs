//! Indices that copies protect, and those that they overrun.

use titan_nv::tma::{Dim, DomainError, Domains, Id, overrun, protected};

fn of(size: i64, boxed: i64, stride: i64) -> Domains {
    Domains::new(&[Dim { size: Some(size), boxed, stride }]).unwrap()
}

/// The domains of the document's figure 5: 8 elements in boxes of 4, of which every third is copied.
#[test]
fn a_box_that_the_element_stride_does_not_divide_is_overrun_and_not_protected() {
    let domains = of(8, 4, 3);
    let axis = domains.axes()[0];
    let extents = [axis.partitioned, axis.coordinate, axis.boxed, axis.tile, axis.stride];
    assert_eq!(extents.map(|id| domains.extent(id).unwrap()), [8, 2, 4, 2, 3]);
    let is = protected(&domains);
    assert_eq!(extents.map(|id| is[id.number()]), [true, true, false, false, false]);
    assert_eq!(overrun(&domains).collect::<Vec<_>>(), [axis.boxed]);
}

#[test]
fn protection_follows_outer_results() {
    let mut domains = of(64, 8, 1);
    let coordinate = domains.axes()[0].coordinate;
    let (outer, inner) = domains.split(coordinate, 3).unwrap();
    let wide = domains.resize(outer, 1, 0).unwrap();
    let both = domains.merge(wide, inner).unwrap();
    let narrow = domains.resize(both, -1, 2).unwrap();
    let is = protected(&domains);
    let got = [outer, inner, wide, both, narrow].map(|id| is[id.number()]);
    assert_eq!(got, [true, false, true, true, false]);
    assert_eq!(overrun(&domains).collect::<Vec<_>>(), [coordinate, outer, both]);
}

#[test]
fn sizes_of_the_launch_are_taken_to_divide_nothing() {
    let domains = Domains::new(&[Dim { size: None, boxed: 1, stride: 1 }]).unwrap();
    assert_eq!(overrun(&domains).collect::<Vec<_>>(), [domains.axes()[0].partitioned]);
}

/// A domain with a number that only large schedules have.
fn far() -> Id {
    let mut domains = of(64, 8, 1);
    let mut last = domains.axes()[0].coordinate;
    while last.number() < 99 {
        (last, _) = domains.split(last, 1).unwrap();
    }
    last
}

#[test]
fn steps_that_are_not_possible_say_why() {
    use DomainError as E;
    let mut domains = of(64, 8, 2);
    let axis = domains.axes()[0];
    assert_eq!(domains.split(axis.boxed, 2), Err(E::Consumed(axis.boxed)));
    let far = far();
    assert_eq!(domains.split(far, 2), Err(E::Consumed(far)));
    assert_eq!(domains.split(axis.tile, 3), Err(E::Tile(axis.tile)));
    assert_eq!(domains.resize(axis.tile, 0, 1), Err(E::Tile(axis.tile)));
    assert_eq!(domains.split(axis.coordinate, 0), Err(E::Factor(0)));
    assert_eq!(domains.merge(axis.coordinate, axis.tile), Err(E::Owners(axis.tile, axis.coordinate)));
    assert_eq!(domains.swizzle(axis.tile, axis.stride), Err(E::Owners(axis.tile, axis.stride)));
    assert_eq!(domains.merge(axis.stride, axis.stride), Err(E::Same(axis.stride)));
    assert_eq!(domains.resize(axis.coordinate, -4, -4), Err(E::Extent(0)));
    let (_, three) = domains.split(axis.coordinate, 3).unwrap();
    assert_eq!(domains.swizzle(axis.stride, three), Err(E::Power(three)));
    assert_eq!(Domains::new(&[]).unwrap_err(), E::Rank(0));
    assert_eq!(Domains::new(&[Dim { size: Some(0), boxed: 1, stride: 1 }]).unwrap_err(), E::Size { dim: 0, size: 0 });
    assert_eq!(Domains::new(&[Dim { size: None, boxed: 257, stride: 1 }]).unwrap_err(), E::Box { dim: 0, boxed: 257 });
    assert_eq!(Domains::new(&[Dim { size: None, boxed: 1, stride: 9 }]).unwrap_err(), E::Stride { dim: 0, stride: 9 });
    let mut unknown = Domains::new(&[Dim { size: None, boxed: 8, stride: 1 }]).unwrap();
    let axis = unknown.axes()[0];
    assert_eq!(unknown.merge(axis.stride, axis.coordinate), Err(E::Unknown(axis.coordinate)));
    let (_, huge) = unknown.split(axis.coordinate, 1 << 40).unwrap();
    assert_eq!(unknown.merge(huge, huge), Err(E::Same(huge)));
    assert_eq!(unknown.split(huge, 1).map(|_| ()), Ok(()));
}
