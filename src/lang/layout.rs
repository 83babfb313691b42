//! Operations that move elements and do not compute: reshape, broadcast, transpose, interleave, split.

use super::elem::Elem;
use super::shape::{D2, D3, Insert, Shape, product};
use super::tile::Tile;

impl<T: Elem, S: Shape> Tile<T, S> {
    /// The same elements in row-major order under another shape of as many elements.
    ///
    /// In kernels: `x.reshape::<BN, BK>()`.
    #[must_use]
    pub fn reshape<R: Shape>(self) -> Tile<T, R> {
        const { assert!(S::LEN == R::LEN, "`reshape` keeps the number of elements") };
        Tile::new(self.to_vec())
    }

    /// `N` copies along a new axis `AX`.
    #[must_use]
    pub fn broadcast<const AX: usize, const N: i32>(self) -> Tile<T, S::Out>
    where
        S: Insert<AX, N>,
    {
        let values = self.values();
        let copies = product(&[N]);
        let inner = product(&S::DIMS[AX..]);
        Tile::new(values.chunks(inner).flat_map(|part| part.repeat(copies)).collect())
    }

    /// Elements of `self` and `odd` alternate along the last axis, whose extent doubles.
    ///
    /// In kernels: `lo.interleave::<BN, BK>(hi)`.
    #[must_use]
    pub fn interleave<R: Shape>(self, odd: Self) -> Tile<T, R> {
        const { assert!(doubles_last(S::DIMS, R::DIMS), "`interleave` doubles the last extent") };
        let (even, odd) = (self.values(), odd.values());
        Tile::new(even.iter().zip(odd.iter()).flat_map(|(a, b)| [*a, *b]).collect())
    }

    /// The elements at even and at odd places of the last axis, whose extent halves: the inverse of `interleave`.
    ///
    /// In kernels: `let (lo, hi) = x.split::<BN, { BK / 2 }>()`.
    #[must_use]
    pub fn split<R: Shape>(self) -> (Tile<T, R>, Tile<T, R>) {
        const { assert!(doubles_last(R::DIMS, S::DIMS), "`split` halves the last extent") };
        let values = self.values();
        let every_other = |first| Tile::new(values.iter().skip(first).step_by(2).copied().collect());
        (every_other(0), every_other(1))
    }
}

/// A tile whose last two axes can be exchanged: of rank 2 or 3.
#[diagnostic::on_unimplemented(
    message = "`.t()` transposes tiles of rank 2 and 3, not of shape `{Self}`",
    label = "not of rank 2 or 3",
    note = "a vector becomes a row or column by `.row()` or `.col()`; `.permute::<..>()` reorders the axes of a tile of rank 4"
)]
pub trait Transpose {
    #[doc(hidden)]
    type Out;

    #[doc(hidden)]
    fn transpose(self) -> Self::Out;
}

impl<T: Elem, const A: i32, const B: i32> Transpose for Tile<T, D2<A, B>> {
    type Out = Tile<T, D2<B, A>>;

    fn transpose(self) -> Self::Out {
        Tile::new(transposed(&self.values(), A, B))
    }
}

impl<T: Elem, const A: i32, const B: i32, const C: i32> Transpose for Tile<T, D3<A, B, C>> {
    type Out = Tile<T, D3<A, C, B>>;

    fn transpose(self) -> Self::Out {
        Tile::new(self.values().chunks(product(&[B, C])).flat_map(|plane| transposed(plane, B, C)).collect())
    }
}

impl<T: Elem, S: Shape> Tile<T, S> {
    /// The tile with its last two axes exchanged: of rank 2 and 3.
    #[must_use]
    pub fn t(self) -> <Self as Transpose>::Out
    where
        Self: Transpose,
    {
        self.transpose()
    }
}

fn transposed<T: Elem>(values: &[T], rows: i32, cols: i32) -> Vec<T> {
    let (rows, cols) = (product(&[rows]), product(&[cols]));
    (0..cols).flat_map(|j| (0..rows).map(move |i| values[i * cols + j])).collect()
}

const fn doubles_last(from: &[i32], to: &[i32]) -> bool {
    if from.len() != to.len() {
        return false;
    }
    let (mut i, last) = (0, from.len() - 1);
    while i < last {
        if from[i] != to[i] {
            return false;
        }
        i += 1;
    }
    to[last] == 2 * from[last]
}
