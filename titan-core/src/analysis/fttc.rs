//! The condition under which strong correctness is impossible: the fundamental theorem of TMA correctness (FTTC).
//!
//! Along a dimension of `S` elements in boxes of `B`, of which every `e`-th is copied, there is a copy without strongly correct
//! coordinates if and only if `e < B < S` and `e` does not divide `B`.
//!
//! The reason: if `e` does not divide `B`, the tile has `ceil(B / e)` positions, and the last one may lie beyond the box. It should be
//! zero then, but the engine knows the end of the tensor and not that of the box. It fills with zero only if that element is outside
//! of the tensor, which is always the case if `B >= S`. If `e >= B`, the tile has one position, which is either in the box or
//! beyond it, and the program can choose other coordinates for the copy.
//!
//! Example: `S = 8`, `B = 4`, `e = 3`. The copies that start at 1 take the elements 1 and 4. Element 4 is the first of
//! the *next* box, so its position must be 0. No other start gives 1 and 0. The reported counterexample is of this kind:
//! with `t = ceil(B / e) - 1`, the copy that starts at `B - t * e` has the element `B` at position `t`.
//!
//! The copies that the compiler makes start at multiples of their boxes and have no element strides. The condition is needed for
//! barrier programs that state such a copy (`crate::verify`, rule 79), and for the schedules of `titan_nv::tma`.
//!
//! Source: "TMA Modeling In Depth", theorem 6 (docs/tma.md); the closed form equals brute force (titan-nv/tests/tma).

use std::fmt;

/// A copy for which no coordinates are correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counterexample {
    /// The dimension, from the innermost.
    pub dim: usize,
    /// The number of elements of the dimension; if it is known only at a launch, a number for which the copy is wrong.
    pub size: i64,
    /// The box along the dimension, in elements.
    pub boxed: i64,
    /// The element stride.
    pub stride: i64,
    /// The coordinate at which the copy starts.
    pub x: i64,
    /// The position in the tile whose value is wrong.
    pub position: i64,
    /// The element of the tensor that the copy puts there, where zero is wanted.
    pub element: i64,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counterexample { dim, size, boxed, stride, x, position, element } = self;
        write!(
            f,
            "along dimension {dim}, of {size} elements in boxes of {boxed}, one in every {stride} is copied: the copy that starts at \
             {x} has element {element} at position {position} of its tile, where the box has ended and zero is wanted"
        )
    }
}

/// Whether every copy along a dimension has coordinates that make it correct.
///
/// # Errors
/// A copy for which there are none. A size that is known only at a launch may be any.
pub fn fttc(dim: usize, size: Option<i64>, boxed: i64, stride: i64) -> Result<(), Counterexample> {
    let size = size.unwrap_or(boxed + 1);
    if stride >= boxed || boxed >= size || boxed % stride == 0 {
        return Ok(());
    }
    let position = boxed / stride;
    Err(Counterexample { dim, size, boxed, stride, x: boxed - position * stride, position, element: boxed })
}
