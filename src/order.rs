//! Order in kernels: sorted rows of tiles, and the greatest or least elements of each row.
//!
//! All are stable: of equal elements, the one with the lower index comes first. NaN comes after all numbers, in either order; −0 and 0 are equal. The
//! results are the same on every device, and in the body that runs as plain Rust. They are device functions of the language, made of reductions
//! and comparisons; a vector is a row: `x.reshape::<1, N>()`.
//!
//! | function | cost for each row of N elements |
//! |---|---|
//! | [`top_k`], [`bottom_k`] | K rounds of four reductions of N elements: for a small K, such as the experts of a token |
//! | [`sort`] | four reductions of N² elements, which are held in registers: for rows of up to about 64 elements |
//!
//! Deliberately absent: sorting more elements than a program holds, which takes several launches.
//!
//! ```
//! use titan::order::top_k;
//! use titan::prelude::*;
//!
//! /// The two best experts of each token, and how much of each.
//! #[titan::kernel(instances((BT, E) in [(4, 8)]), grid(cdiv(TOK, BT)), require(EXPERTS == E))]
//! fn route<const BT: i32, const E: i32>(
//!     #[shape(TOK, EXPERTS)] logits: &Tensor<f32, 2>,
//!     #[shape(TOK, 2)] weight: &mut Tensor<f32, 2>,
//!     #[shape(TOK, 2)] expert: &mut Tensor<i32, 2>,
//! ) {
//!     let t = program_id(0);
//!     let (best, at) = top_k::<f32, BT, E, 2>(logits.load_tile::<BT, E>([t, 0]));
//!     let e = (best - best.reduce_max::<1>().col()).exp();
//!     weight.store_tile([t, 0], e / e.reduce_sum::<1>().col());
//!     expert.store_tile([t, 0], at);
//! }
//!
//! # fn main() -> titan::Result<()> {
//! let dev = Device::cpu();
//! let logits = dev.tensor(&[0.0, 3.0, 1.0, 3.0, -1.0, 2.0, 0.5, 0.0], [1, 8])?;
//! let (mut weight, mut expert) = (dev.zeros([1, 2])?, dev.zeros([1, 2])?);
//! route(&logits, &mut weight, &mut expert).sync()?;
//! assert_eq!((weight.to_vec()?, expert.to_vec()?), (vec![0.5, 0.5], vec![1, 3]));
//! # Ok(())
//! # }
//! ```

use crate::prelude::*;

/// The K greatest elements of each row, the greatest first, and their indices.
#[crate::device]
pub fn top_k<T: Num, const M: i32, const N: i32, const K: i32>(x: Tile<T, M, N>) -> (Tile<T, M, K>, Tile<i32, M, K>) {
    first_k::<T, M, N, K, true>(x)
}

/// The K least elements of each row, the least first, and their indices.
#[crate::device]
pub fn bottom_k<T: Num, const M: i32, const N: i32, const K: i32>(
    x: Tile<T, M, N>,
) -> (Tile<T, M, K>, Tile<i32, M, K>) {
    first_k::<T, M, N, K, false>(x)
}

/// One element after the other: the extremum of those that are left, and of its occurrences the first.
#[doc(hidden)]
#[crate::device]
pub fn first_k<T: Num, const M: i32, const N: i32, const K: i32, const GREATEST: bool>(
    x: Tile<T, M, N>,
) -> (Tile<T, M, K>, Tile<i32, M, K>) {
    static_assert!(K <= N, "a row has at least K elements");
    let (place, slot) = (iota::<N>().broadcast::<0, M>(), iota::<K>().broadcast::<0, M>());
    // What is in the place of elements that have been taken: not before any that is left.
    let last = if GREATEST { x.reduce_min::<1>() } else { x.reduce_max::<1>() };
    let mut left = place >= 0;
    let mut values = Tile::<T, M, K>::zeros();
    let mut indices = Tile::<i32, M, K>::zeros();
    for k in 0..K {
        // NaN is not at most itself.
        let numbers = left & (x <= x);
        let rest = select(numbers, x, last.col());
        let best = if GREATEST { rest.reduce_max::<1>() } else { rest.reduce_min::<1>() };
        let equal = numbers & (x >= best.col()) & (x <= best.col());
        let number = select(equal, place, N).reduce_min::<1>();
        // If no number is left, the first NaN.
        let is_number = number < N;
        let at = select(is_number, number, select(left, place, N).reduce_min::<1>());
        // The element itself, which may be another zero than the extremum.
        let here = place == at.broadcast::<1, N>();
        let picked = select(here, x, last.col());
        let picked = if GREATEST { picked.reduce_max::<1>() } else { picked.reduce_min::<1>() };
        // The quotient of zeros is NaN, and of integers 0, which have no NaN.
        let none = picked - picked;
        let value = select(is_number, picked, none / none);
        values = select(slot == k, value.broadcast::<1, K>(), values);
        indices = select(slot == k, at.broadcast::<1, K>(), indices);
        left = left & !here;
    }
    (values, indices)
}

/// The elements of each row in ascending order, and where each was.
#[crate::device]
pub fn sort<T: Num, const M: i32, const N: i32>(x: Tile<T, M, N>) -> (Tile<T, M, N>, Tile<i32, M, N>) {
    // Of the elements i and j of a row, at [row, i, j].
    let (a, b) = (x.broadcast::<2, N>(), x.broadcast::<1, N>());
    let place = iota::<N>().broadcast::<0, M>();
    let (i, j) = (place.broadcast::<2, N>(), place.broadcast::<1, N>());
    let (number_a, number_b) = (a <= a, b <= b);
    let before = (b < a) | (number_b & !number_a);
    let after = (a < b) | (number_a & !number_b);
    let equal = !(before | after);
    // As many elements are before element i as its place in the order.
    let rank = (before | (equal & (j < i))).cast::<i32>().reduce_sum::<2>();
    // The element i goes to the place j.
    let here = rank.broadcast::<2, N>() == j;
    let indices = select(here, i, 0).reduce_sum::<1>();
    let least = x.reduce_min::<1>();
    let rest = least.broadcast::<1, N>().broadcast::<2, N>();
    let picked = select(here, a, rest).reduce_max::<1>();
    let is_number = (here & number_a).any::<1>();
    let none = picked - picked;
    (select(is_number, picked, none / none), indices)
}
