//! When strong correctness is impossible, against trying all coordinates.

use crate::brute::pick;
use titan_nv::tma::{Counterexample, fttc};
use titan_sim::engine::Rng;

/// A dimension: its size, the box, the element stride.
type Shape = (i64, i64, i64);

/// What a copy that starts at `x` brings: element `p` as `p + 1`, and zeros.
fn brought((size, _, stride): Shape, x: i64, position: i64) -> i64 {
    let p = x + position * stride;
    if (0..size).contains(&p) { p + 1 } else { 0 }
}

/// What a strongly correct copy brings at a position of the tile of a box and a stride index.
fn wanted((size, boxed, stride): Shape, coordinate: i64, s: i64, position: i64) -> i64 {
    let in_box = position * stride + s;
    let p = coordinate * boxed + in_box;
    if in_box < boxed && p < size { p + 1 } else { 0 }
}

/// Whether some start gives a tile what it should have.
fn possible(shape: Shape, coordinate: i64, s: i64) -> bool {
    let (size, boxed, stride) = shape;
    let tile = (boxed + stride - 1) / stride;
    // Farther away, everything is out of bounds, as it is at the ends of this range.
    let mut starts = -boxed - stride..=size;
    starts.any(|x| (0..tile).all(|i| brought(shape, x, i) == wanted(shape, coordinate, s, i)))
}

/// The first tile that no start makes right.
fn by_trying(shape: Shape) -> Option<(i64, i64)> {
    let (size, boxed, stride) = shape;
    let tiles = (0..(size + boxed - 1) / boxed).flat_map(|c| (0..stride).map(move |s| (c, s)));
    tiles.into_iter().find(|(c, s)| !possible(shape, *c, *s))
}

fn compare(shape: Shape) -> bool {
    let (size, boxed, stride) = shape;
    match (fttc(2, Some(size), boxed, stride), by_trying(shape)) {
        (Ok(()), None) => false,
        (Err(counterexample), Some(_)) => {
            let Counterexample { dim, x, position, element, .. } = counterexample;
            assert_eq!((dim, counterexample.size), (2, size));
            // The tile of coordinate 0 that starts there: no start is right, and its own start brings this element for a zero.
            assert!((0..stride).contains(&x) && !possible(shape, 0, x), "{counterexample}");
            assert_eq!(wanted(shape, 0, x, position), 0, "{counterexample}");
            assert_eq!(brought(shape, x, position), element + 1, "{counterexample}");
            true
        }
        (decided, tried) => panic!("{shape:?}: {decided:?}, but {tried:?}"),
    }
}

#[test]
fn the_decision_is_what_trying_finds_for_all_small_shapes() {
    let mut impossible = 0;
    let (mut count, small) = (0, |n: i64| 1..=n);
    for (size, boxed, stride) in small(40).flat_map(|s| small(24).flat_map(move |b| small(24).map(move |e| (s, b, e))))
    {
        impossible += u32::from(compare((size, boxed, stride)));
        count += 1;
    }
    assert_eq!(count, 23_040);
    assert!(impossible > 1000, "{impossible}");
}

#[test]
fn the_decision_is_what_trying_finds_for_random_shapes() {
    let mut rng = Rng::new(20);
    let mut impossible = 0;
    for _ in 0..20_000 {
        let shape = (pick(&mut rng, 1..=90), pick(&mut rng, 1..=40), pick(&mut rng, 1..=8));
        impossible += u32::from(compare(shape));
    }
    assert!((3000..17_000).contains(&impossible), "{impossible}");
}

#[test]
fn a_size_of_the_launch_may_be_any() {
    for (boxed, stride) in (1..=24).flat_map(|b| (1..=8).map(move |e| (b, e))) {
        let some = (1..=60).any(|size| fttc(0, Some(size), boxed, stride).is_err());
        let unknown = fttc(0, None, boxed, stride);
        assert_eq!(unknown.is_err(), some);
        // The size that it tells is one that breaks it.
        assert!(unknown.err().is_none_or(|c| fttc(0, Some(c.size), boxed, stride).is_err()));
    }
}
