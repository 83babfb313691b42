//! Schedules of the document and of a public test, with the answers that they must have.

use crate::brute::{World, every};
use titan_nv::tma::{
    Check, Correctness, Dim, Direction, DomainError, Domains, Guard, Id, Level, LowerError, Op, Padding, Transfer,
    level, lower, unprotected,
};

const WEAK: Transfer = Transfer::Load { correctness: Correctness::Weak, skip_holes: false };
const SPARING: Transfer = Transfer::Load { correctness: Correctness::Weak, skip_holes: true };
const STRONG: Transfer = Transfer::Load { correctness: Correctness::Strong(Padding::Zero), skip_holes: false };

fn dim(size: i64, boxed: i64, stride: i64) -> Dim {
    Dim { size: Some(size), boxed, stride }
}

/// The coordinates of 12 elements in boxes of 2, split by 2 and then by 3: figure 2.
fn figure_2() -> (Domains, Id, Id) {
    let mut domains = Domains::new(&[dim(12, 2, 1)]).unwrap();
    let (_, i5) = domains.split(domains.axes()[0].coordinate, 2).unwrap();
    let (_, i7) = domains.split(i5, 3).unwrap();
    (domains, i5, i7)
}

#[test]
fn a_predicate_and_coordinates_before_the_tensor() {
    let (domains, i5, i7) = figure_2();
    assert_eq!(level(&domains), Level::Two(vec![i5]));
    let lowering = lower(&domains, STRONG).unwrap();
    let Guard::OutOfBounds(checks, before) = &lowering.guard else { panic!("{lowering:?}") };
    let [Check { value, extent: 2 }] = checks[..] else { panic!("{checks:?}") };
    assert_eq!(lowering.values.ops()[value.number()], Op::Index(i7));
    assert_eq!(before[..], [-2]);
    assert_eq!(lower(&domains, WEAK).unwrap().guard, Guard::Always);
    let sparing = lower(&domains, SPARING).unwrap().guard;
    assert!(matches!(&sparing, Guard::Skip(checks) if checks.len() == 1), "{sparing:?}");
}

/// A plane of 2 × 8 elements in boxes of 2 × 4: figures 5 and 6.
fn figure_5(stride: i64) -> Domains {
    Domains::new(&[dim(2, 2, 1), dim(8, 4, stride)]).unwrap()
}

#[test]
fn an_element_stride_that_does_not_divide_its_box() {
    let three = figure_5(3);
    let Err(LowerError::Impossible(why)) = lower(&three, STRONG) else { panic!("{three:?}") };
    assert_eq!((why.dim, why.x, why.position, why.element), (1, 1, 1, 4));
    assert_eq!(lower(&three, Transfer::Store), Err(LowerError::Impossible(why)));
    assert_eq!(lower(&three, WEAK).unwrap().guard, Guard::Always);
    // Nothing can be checked: the engine runs through the tile.
    assert_eq!(lower(&three, SPARING).unwrap().guard, Guard::Always);
    // What is loaded then: the element where the box has ended.
    let lowering = lower(&three, WEAK).unwrap();
    let mut world = World::new(&three, &lowering);
    world.run(&three, &lowering, Direction::Load);
    assert_eq!(world.judged(&three), (true, false));
}

#[test]
fn an_element_stride_beyond_its_box_is_checked() {
    let five = figure_5(5);
    let axis = five.axes()[1];
    assert_eq!(level(&five), Level::Two(vec![axis.boxed]));
    let lowering = lower(&five, STRONG).unwrap();
    let Guard::OutOfBounds(checks, before) = &lowering.guard else { panic!("{lowering:?}") };
    let [Check { value, extent: 4 }] = checks[..] else { panic!("{checks:?}") };
    assert_eq!(lowering.values.ops()[value.number()], Op::Index(axis.stride));
    assert_eq!(before[..], [-2, -4]);
}

/// 32 elements in boxes of 16, the coordinates split by 1 and that by 2: a hole between the two boxes, into which a copy without a
/// predicate loads elements 17 to 32 once more.
#[test]
fn the_row_between_two_boxes_is_zero() {
    let mut domains = Domains::new(&[dim(32, 16, 1)]).unwrap();
    let (_, one) = domains.split(domains.axes()[0].coordinate, 1).unwrap();
    domains.split(one, 2).unwrap();
    let rows = |transfer| {
        let lowering = lower(&domains, transfer).unwrap();
        let mut world = World::new(&domains, &lowering);
        world.run(&domains, &lowering, Direction::Load);
        world.shared
    };
    let (low, high, zeros) = ((1..=16).collect::<Vec<u16>>(), (17..=32).collect::<Vec<u16>>(), vec![0; 16]);
    assert_eq!(rows(STRONG), [&low[..], &zeros, &high, &zeros].concat());
    assert_eq!(rows(WEAK), [&low[..], &high, &high, &zeros].concat());
}

/// A box that is larger than the tensor needs no check, unless its coordinate is widened to the left.
#[test]
fn a_widened_coordinate_is_checked_instead_of_its_box() {
    let mut domains = Domains::new(&[dim(1, 1, 1), dim(4, 5, 3)]).unwrap();
    assert_eq!(lower(&domains, STRONG).unwrap().guard, Guard::Always);
    let axis = domains.axes()[1];
    domains.resize(axis.coordinate, 1, 0).unwrap();
    assert_eq!(unprotected(&domains), [axis.boxed]);
    let lowering = lower(&domains, STRONG).unwrap();
    let Guard::OutOfBounds(checks, _) = &lowering.guard else { panic!("{lowering:?}") };
    assert!(matches!(checks[..], [Check { extent: 1, .. }]), "{checks:?}");
    let judged = |transfer| {
        let lowering = lower(&domains, transfer).unwrap();
        let mut world = World::new(&domains, &lowering);
        world.run(&domains, &lowering, Direction::Load);
        world.judged(&domains)
    };
    assert_eq!((judged(STRONG), judged(WEAK)), ((true, true), (true, false)));
}

/// Rows of a matrix product whose sizes are known only at a launch.
#[test]
fn sizes_of_the_launch_need_no_predicate_in_a_plain_tiling() {
    let unknown = Dim { size: None, boxed: 64, stride: 1 };
    let domains = Domains::new(&[unknown, Dim { boxed: 128, ..unknown }]).unwrap();
    let lowering = lower(&domains, STRONG).unwrap();
    assert_eq!((&lowering.level, &lowering.guard), (&Level::One, &Guard::Always));
    assert_eq!(lowering.reach, [None, None]);
    assert_eq!((&lowering.box_extents[..], &lowering.element_strides[..]), (&[64, 128][..], &[1, 1][..]));
    let x = lowering.values.eval(|id| if id == domains.axes()[0].coordinate { 3 } else { 5 });
    assert_eq!(lowering.coordinates.iter().map(|c| x[c.number()]).collect::<Vec<_>>(), [192, 640]);
    let mut loops = 0;
    let fixed = Domains::new(&[dim(100, 64, 1), dim(200, 128, 1)]).unwrap();
    every(&fixed, &fixed.loops().collect::<Vec<_>>(), |_| loops += 1);
    assert_eq!(loops, 4);
}

#[test]
fn what_cannot_be_shown_is_an_error() {
    let unknown = Dim { size: None, boxed: 4, stride: 1 };
    // A stride that divides some boxes and not this one, of a tensor of any size.
    let domains = Domains::new(&[unknown, Dim { stride: 3, ..unknown }]).unwrap();
    assert!(matches!(lower(&domains, STRONG), Err(LowerError::Impossible(c)) if c.dim == 1 && c.size == 5));
    // A check against an unknown extent.
    let mut domains = Domains::new(&[unknown]).unwrap();
    let narrow = domains.resize(domains.axes()[0].coordinate, -1, 0).unwrap();
    domains.split(narrow, 2).unwrap();
    assert_eq!(lower(&domains, STRONG), Err(LowerError::Extent(narrow)));
    assert_eq!(lower(&domains, Transfer::Store), Err(LowerError::Extent(narrow)));
    assert_eq!(lower(&domains, SPARING).unwrap().guard, Guard::Always);
    // Coordinates beyond 32 bits, by one element of the box.
    let high = (1_i64 << 31) - 1;
    let of = |size, boxed| lower(&Domains::new(&[dim(size, boxed, 1)]).unwrap(), WEAK).map(|l| l.reach);
    assert_eq!(of(high, 1), Ok(vec![Some((0, high - 1))]));
    assert_eq!(of(high + 1, 1), Ok(vec![Some((0, high))]));
    assert_eq!(of(high + 2, 1), Err(LowerError::Coordinate { dim: 0, low: 0, high: high + 1 }));
    assert_eq!(of(high + 2, 4), Err(LowerError::Coordinate { dim: 0, low: 0, high: high + 4 }));
    let innermost = Domains::new(&[dim(8, 4, 2)]).unwrap();
    assert_eq!(lower(&innermost, WEAK), Err(LowerError::InnermostStride(2)));
    let mut tiled = Domains::new(&[dim(8, 4, 1)]).unwrap();
    let tile = tiled.axes()[0].tile;
    assert_eq!(tiled.split(tile, 3), Err(DomainError::Tile(tile)));
    assert!(tiled.split(tile, 2).is_ok());
}
