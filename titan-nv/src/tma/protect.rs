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
