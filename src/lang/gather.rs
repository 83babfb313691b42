//! Loads and stores of elements and rows by index tiles.
//!
//! With an index out of range, such as −1, a load returns the padding and a store is dropped, so it can be used as a mask.

use super::elem::{Elem, Num};
use super::shape::{D1, D2, Shape};
use super::tensor::Tensor;
use super::tile::Tile;

/// An index of N rows along one leading axis: an `i32` for all of them, or a `Tile<i32, N>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot index {N} rows",
    label = "not an index",
    note = "use an `i32`, one index for all rows, or a `Tile<i32, N>`, one for each of N rows"
)]
pub trait RowIndex<const N: i32> {
    #[doc(hidden)]
    fn each_row(self) -> Vec<i64>;
}

impl<const N: i32> RowIndex<N> for Tile<i32, D1<N>> {
    fn each_row(self) -> Vec<i64> {
        self.values().iter().map(|i| i64::from(*i)).collect()
    }
}

impl<const N: i32> RowIndex<N> for i32 {
    fn each_row(self) -> Vec<i64> {
        vec![i64::from(self); D1::<N>::LEN]
    }
}

/// The indices of N rows of a tensor of rank `R`: one for each axis but the last.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot index {N} rows of a tensor of rank {R}",
    label = "needs one index for every axis but the last",
    note = "write `ix` for rank 2, `(i, j)` for rank 3, `(i, j, k)` for rank 4, `(i, j, k, l)` for rank 5, each an `i32` or a `Tile<i32, N>`"
)]
pub trait RowIndices<const N: i32, const R: usize> {
    /// For every leading axis, the indices of all rows.
    #[doc(hidden)]
    fn leading(self) -> Vec<Vec<i64>>;
}

impl<const N: i32> RowIndices<N, 2> for Tile<i32, D1<N>> {
    fn leading(self) -> Vec<Vec<i64>> {
        vec![self.each_row()]
    }
}

impl<const N: i32> RowIndices<N, 2> for i32 {
    fn leading(self) -> Vec<Vec<i64>> {
        vec![RowIndex::<N>::each_row(self)]
    }
}

macro_rules! tuples {
    ($($rank:literal $($ix:ident)*;)*) => {$(
        #[expect(clippy::allow_attributes, reason = "the names are types and variables")]
        #[allow(non_snake_case, reason = "the names are types and variables")]
        impl<const N: i32, $($ix: RowIndex<N>),*> RowIndices<N, $rank> for ($($ix,)*) {
            fn leading(self) -> Vec<Vec<i64>> {
                let ($($ix,)*) = self;
                vec![$($ix.each_row()),*]
            }
        }
    )*};
}
tuples! { 2 I; 3 I J; 4 I J K; 5 I J K L; }

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// N rows of W elements along the last axis, from `col` on; `rows` indexes the other axes. Out of range: zero.
    #[must_use]
    pub fn gather_rows<const N: i32, const W: i32>(&self, rows: impl RowIndices<N, R>, col: i32) -> Tile<T, D2<N, W>> {
        self.gather_rows_or(rows, col, T::default())
    }

    /// As [`Tensor::gather_rows`]. Out of range: `pad`.
    #[must_use]
    pub fn gather_rows_or<const N: i32, const W: i32>(
        &self,
        rows: impl RowIndices<N, R>,
        col: i32,
        pad: T,
    ) -> Tile<T, D2<N, W>> {
        self.read(row_coordinates::<N, W, R>(&rows.leading(), col), pad)
    }

    /// Stores N rows of W elements as [`Tensor::gather_rows`] reads them. Out of range: dropped. If a row is stored several times, one of
    /// the values remains.
    pub fn scatter_rows<const N: i32, const W: i32>(
        &mut self,
        rows: impl RowIndices<N, R>,
        col: i32,
        tile: Tile<T, D2<N, W>>,
    ) {
        self.write(row_coordinates::<N, W, R>(&rows.leading(), col), &tile.values(), |_, new| new);
    }

    /// One element per lane. Out of range: zero.
    #[must_use]
    pub fn gather<S: Shape>(&self, at: [Tile<i32, S>; R]) -> Tile<T, S> {
        self.gather_or(at, T::default())
    }

    /// One element per lane. Out of range: `pad`.
    #[must_use]
    pub fn gather_or<S: Shape>(&self, at: [Tile<i32, S>; R], pad: T) -> Tile<T, S> {
        self.read(lane_coordinates(at), pad)
    }

    /// Stores one element per lane. Out of range: dropped. If an element is stored several times, one of the values remains.
    pub fn scatter<S: Shape>(&mut self, at: [Tile<i32, S>; R], tile: Tile<T, S>) {
        self.write(lane_coordinates(at), &tile.values(), |_, new| new);
    }

    /// Adds one element per lane, atomically. Out of range: dropped.
    pub fn atomic_add<S: Shape>(&mut self, at: [Tile<i32, S>; R], tile: Tile<T, S>)
    where
        T: Num,
    {
        self.write(lane_coordinates(at), &tile.values(), T::plus);
    }

    /// Raises one element per lane, atomically. Out of range: dropped.
    pub fn atomic_max<S: Shape>(&mut self, at: [Tile<i32, S>; R], tile: Tile<T, S>)
    where
        T: Num,
    {
        self.write(lane_coordinates(at), &tile.values(), T::greater);
    }

    /// Lowers one element per lane, atomically. Out of range: dropped.
    pub fn atomic_min<S: Shape>(&mut self, at: [Tile<i32, S>; R], tile: Tile<T, S>)
    where
        T: Num,
    {
        self.write(lane_coordinates(at), &tile.values(), T::lesser);
    }
}

pub(super) fn row_coordinates<const N: i32, const W: i32, const R: usize>(
    leading: &[Vec<i64>],
    col: i32,
) -> impl Iterator<Item = [i64; R]> {
    let last = (i64::from(col)..).take(D1::<W>::LEN);
    (0..D1::<N>::LEN).flat_map(move |row| {
        last.clone().map(move |col| std::array::from_fn(|axis| leading.get(axis).map_or(col, |ix| ix[row])))
    })
}

pub(super) fn lane_coordinates<S: Shape, const R: usize>(at: [Tile<i32, S>; R]) -> impl Iterator<Item = [i64; R]> {
    let at = at.map(Tile::values);
    (0..S::LEN).map(move |lane| std::array::from_fn(|axis| i64::from(at[axis][lane])))
}
