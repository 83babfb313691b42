//! The domains that are protected by the copy engine's own bounds check, and the steps that make holes.
//!
//! The engine compares the index of each partitioned domain with the size of its dimension. A domain is *protected* if that check
//! cannot pass while its index is out of bounds, given that the domains that are not protected are in bounds:
//!
//! | a domain is protected if it is | because |
//! |---|---|
//! | partitioned | the engine checks it |
//! | the outer result of a split of a protected one | an outer index out of bounds makes an input index out of bounds |
//! | the result of a merge whose outer input is protected | the same |
//! | the result of a resize of a protected one that narrows neither side | what is inside of the input is inside of the result |
//! | the X result of a swizzle whose X input is protected | it is the same index |
//!
//! Source: "TMA Modeling In Depth", definition 1 and theorem 4 (docs/tma.md).

use super::domain::{Domains, Id, Step};

/// The protected domains, by [`Id`].
#[must_use]
pub fn protected(domains: &Domains) -> Vec<bool> {
    let mut is = vec![false; domains.len()];
    for axis in domains.axes() {
        is[axis.partitioned.0] = true;
    }
    for step in domains.steps() {
        match *step {
            Step::Split { input, outer, .. } => is[outer.0] = is[input.0],
            Step::Merge { outer, output, .. } => is[output.0] = is[outer.0],
            Step::Resize { input, output, left, right } => is[output.0] = is[input.0] && left >= 0 && right >= 0,
            Step::Swizzle { x, out_x, .. } => is[out_x.0] = is[x.0],
        }
    }
    is
}

/// The domains that are overrun, as the inputs of steps that make holes: splits that are not known to divide, and
/// resizes that widen.
pub fn overrun(domains: &Domains) -> impl Iterator<Item = Id> {
    domains.steps().iter().filter_map(|step| match *step {
        Step::Split { input, factor, .. } => {
            domains.extent(input).is_none_or(|extent| extent % factor != 0).then_some(input)
        }
        Step::Resize { input, left, right, .. } => (left > 0 || right > 0).then_some(input),
        Step::Merge { .. } | Step::Swizzle { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tma::domain::{Dim, DomainError};

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
        assert_eq!(extents.map(|id| is[id.0]), [true, true, false, false, false]);
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
        let got = [outer, inner, wide, both, narrow].map(|id| is[id.0]);
        assert_eq!(got, [true, false, true, true, false]);
        assert_eq!(overrun(&domains).collect::<Vec<_>>(), [coordinate, outer, both]);
    }

    #[test]
    fn sizes_of_the_launch_are_taken_to_divide_nothing() {
        let domains = Domains::new(&[Dim { size: None, boxed: 1, stride: 1 }]).unwrap();
        assert_eq!(overrun(&domains).collect::<Vec<_>>(), [domains.axes()[0].partitioned]);
    }

    #[test]
    fn steps_that_are_not_possible_say_why() {
        use DomainError as E;
        let mut domains = of(64, 8, 2);
        let axis = domains.axes()[0];
        assert_eq!(domains.split(axis.boxed, 2), Err(E::Consumed(axis.boxed)));
        assert_eq!(domains.split(Id(99), 2), Err(E::Consumed(Id(99))));
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
        assert_eq!(
            Domains::new(&[Dim { size: Some(0), boxed: 1, stride: 1 }]).unwrap_err(),
            E::Size { dim: 0, size: 0 }
        );
        assert_eq!(
            Domains::new(&[Dim { size: None, boxed: 257, stride: 1 }]).unwrap_err(),
            E::Box { dim: 0, boxed: 257 }
        );
        assert_eq!(
            Domains::new(&[Dim { size: None, boxed: 1, stride: 9 }]).unwrap_err(),
            E::Stride { dim: 0, stride: 9 }
        );
        let mut unknown = Domains::new(&[Dim { size: None, boxed: 8, stride: 1 }]).unwrap();
        let axis = unknown.axes()[0];
        assert_eq!(unknown.merge(axis.stride, axis.coordinate), Err(E::Unknown(axis.coordinate)));
        let (_, huge) = unknown.split(axis.coordinate, 1 << 40).unwrap();
        assert_eq!(unknown.merge(huge, huge), Err(E::Same(huge)));
        assert_eq!(unknown.split(huge, 1).map(|_| ()), Ok(()));
    }
}
