//! Copy sources: parts of tensors that are copied to stages without being loaded.

use std::fmt;

use crate::lang::access::origin;
use crate::lang::elem::Elem;
use crate::lang::gather::{RowIndices, row_coordinates};
use crate::lang::shape::{D1, D2, D3, D4};
use crate::lang::tensor::{Tensor, coordinates};
use crate::lang::tile::Tile;

/// A part of a tensor, as the source of a copy. Its extents are those of the slot.
#[must_use = "a source is copied to a slot: `slot.copy(source).commit()`"]
pub struct Source<T, S>(Box<dyn Fn() -> Tile<T, S>>);

impl<T: Elem, S> Source<T, S> {
    pub(super) fn load(&self) -> Tile<T, S> {
        (self.0)()
    }
}

impl<T, S> fmt::Debug for Source<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

macro_rules! sources {
    ($($rank:literal $shape:ident $($n:ident)*;)*) => {$(
        impl<T: Elem> Tensor<T, $rank> {
            /// The tile with this tile index, for a copy. Outside: zero.
            pub fn tile<$(const $n: i32),*>(&self, index: [i32; $rank]) -> Source<T, $shape<$($n),*>> {
                let (tensor, origin) = (self.alias(), origin::<$shape<$($n),*>, $rank>(index));
                Source(Box::new(move || tensor.read(coordinates::<$shape<$($n),*>, $rank>(origin), T::default())))
            }

            /// The tile that starts at this element, for a copy. Outside: zero.
            pub fn tile_at<$(const $n: i32),*>(&self, first: [i32; $rank]) -> Source<T, $shape<$($n),*>> {
                let (tensor, first) = (self.alias(), first.map(i64::from));
                Source(Box::new(move || tensor.read(coordinates::<$shape<$($n),*>, $rank>(first), T::default())))
            }
        }
    )*};
}
sources! { 1 D1 A; 2 D2 A B; 3 D3 A B C; 4 D4 A B C D; }

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// N rows of W elements along the last axis, from `col` on, for a copy; `rows` indexes the other axes. Out of range: zero.
    pub fn rows<const N: i32, const W: i32>(&self, rows: impl RowIndices<N, R>, col: i32) -> Source<T, D2<N, W>> {
        let (tensor, leading) = (self.alias(), rows.leading());
        Source(Box::new(move || tensor.read(row_coordinates::<N, W, R>(&leading, col), T::default())))
    }
}
