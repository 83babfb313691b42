//! Loads and stores of whole tiles.
//!
//! `_tile` methods count in tiles, `_at` methods in elements; coordinates may be negative. A load outside the tensor gives
//! the padding, a store outside is dropped.

use super::elem::{Elem, Num};
use super::shape::{D1, D2, D3, D4, Shape};
use super::tensor::{Tensor, coordinates};
use super::tile::Tile;

/// The first element of the tile with this index.
pub(super) fn origin<S: Shape, const R: usize>(index: [i32; R]) -> [i64; R] {
    std::array::from_fn(|axis| i64::from(index[axis]) * i64::from(S::DIMS[axis]))
}

macro_rules! access {
    ($($rank:literal $shape:ident $($n:ident)*;)*) => {$(
        impl<T: Elem> Tensor<T, $rank> {
            /// The tile with this tile index. Outside: zero.
            #[must_use]
            pub fn load_tile<$(const $n: i32),*>(&self, index: [i32; $rank]) -> Tile<T, $shape<$($n),*>> {
                self.load_tile_or(index, T::default())
            }

            /// The tile with this tile index. Outside: `pad`.
            #[must_use]
            pub fn load_tile_or<$(const $n: i32),*>(&self, index: [i32; $rank], pad: T) -> Tile<T, $shape<$($n),*>> {
                self.read(coordinates::<$shape<$($n),*>, $rank>(origin::<$shape<$($n),*>, $rank>(index)), pad)
            }

            /// The tile that starts at this element. Outside: zero.
            #[must_use]
            pub fn load_at<$(const $n: i32),*>(&self, first: [i32; $rank]) -> Tile<T, $shape<$($n),*>> {
                self.load_at_or(first, T::default())
            }

            /// The tile that starts at this element. Outside: `pad`.
            #[must_use]
            pub fn load_at_or<$(const $n: i32),*>(&self, first: [i32; $rank], pad: T) -> Tile<T, $shape<$($n),*>> {
                self.read(coordinates::<$shape<$($n),*>, $rank>(first.map(i64::from)), pad)
            }

            /// Stores the tile with this tile index. Outside: dropped.
            pub fn store_tile<$(const $n: i32),*>(&mut self, index: [i32; $rank], tile: Tile<T, $shape<$($n),*>>) {
                self.combine_tile(index, tile, |_, new| new);
            }

            /// Stores the tile that starts at this element. Outside: dropped.
            pub fn store_at<$(const $n: i32),*>(&mut self, first: [i32; $rank], tile: Tile<T, $shape<$($n),*>>) {
                let at = coordinates::<$shape<$($n),*>, $rank>(first.map(i64::from));
                self.write(at, &tile.values(), |_, new| new);
            }

            fn combine_tile<$(const $n: i32),*>(
                &mut self,
                index: [i32; $rank],
                tile: Tile<T, $shape<$($n),*>>,
                f: fn(T, T) -> T,
            ) {
                let at = coordinates::<$shape<$($n),*>, $rank>(origin::<$shape<$($n),*>, $rank>(index));
                self.write(at, &tile.values(), f);
            }
        }

        impl<T: Elem> Tensor<T, $rank> {
            /// Adds a tile to the one with this tile index, each element atomically. Outside: dropped.
            pub fn atomic_add_tile<$(const $n: i32),*>(
                &mut self, index: [i32; $rank], tile: Tile<T, $shape<$($n),*>>,
            ) where
                T: Num,
            {
                self.combine_tile(index, tile, T::plus);
            }

            /// Raises the tile with this tile index to `tile`, each element atomically. Outside: dropped.
            pub fn atomic_max_tile<$(const $n: i32),*>(
                &mut self, index: [i32; $rank], tile: Tile<T, $shape<$($n),*>>,
            ) where
                T: Num,
            {
                self.combine_tile(index, tile, T::greater);
            }

            /// Lowers the tile with this tile index to `tile`, each element atomically. Outside: dropped.
            pub fn atomic_min_tile<$(const $n: i32),*>(
                &mut self, index: [i32; $rank], tile: Tile<T, $shape<$($n),*>>,
            ) where
                T: Num,
            {
                self.combine_tile(index, tile, T::lesser);
            }
        }
    )*};
}
access! { 1 D1 A; 2 D2 A B; 3 D3 A B C; 4 D4 A B C D; }
