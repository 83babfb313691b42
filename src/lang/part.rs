//! Parts of tiles, tiles that are put together, picked elements.

use super::elem::Elem;
use super::shape::{Shape, product};
use super::tile::Tile;

/// The row-major number of an element; `None` outside of the extents.
fn number(dims: &[i32], at: &[i64]) -> Option<usize> {
    dims.iter().zip(at).try_fold(0usize, |sum, (n, i)| {
        let i = usize::try_from(*i).ok().filter(|i| *i < n.unsigned_abs() as usize)?;
        Some(sum * n.unsigned_abs() as usize + i)
    })
}

impl<T: Elem, S: Shape> Tile<T, S> {
    /// The part of extents `R` whose first element is at these coordinates.
    ///
    /// In kernels: `x.slice::<4, 16>([0, 32])`, with constant coordinates.
    #[must_use]
    pub fn slice<R: Shape>(self, from: impl AsRef<[i32]>) -> Tile<T, R> {
        let (values, from) = (self.values(), from.as_ref());
        let place = |mut i: usize| {
            let mut at = vec![0; R::DIMS.len()];
            for (axis, n) in R::DIMS.iter().enumerate().rev() {
                let n = n.unsigned_abs() as usize;
                at[axis] = i64::from(from.get(axis).copied().unwrap_or(0)) + (i % n) as i64;
                i /= n;
            }
            number(S::DIMS, &at)
        };
        Tile::new((0..R::LEN).map(|i| place(i).map_or_else(T::default, |place| values[place])).collect())
    }

    /// The elements of `self` and then those of `other`, along the axis in which the result has those of both.
    ///
    /// In kernels: `a.concat::<8, 16>(b)`.
    #[must_use]
    pub fn concat<R: Shape>(self, other: Tile<T, impl Shape>) -> Tile<T, R> {
        let (a, b) = (self.values(), other.values());
        let axis = (0..R::DIMS.len()).find(|axis| S::DIMS.get(*axis) != R::DIMS.get(*axis)).unwrap_or(0);
        let adjacent = |dims: &[i32]| product(dims.get(axis..).unwrap_or_default()).max(1);
        let line = adjacent(S::DIMS);
        let more = (adjacent(R::DIMS) - line.min(adjacent(R::DIMS))).max(1);
        Tile::new(a.chunks(line).zip(b.chunks(more)).flat_map(|(a, b)| [a, b].concat()).collect())
    }

    /// One element; zero outside of the tile.
    #[must_use]
    pub fn at<const N: usize>(self, at: [i32; N]) -> T {
        let values = self.values();
        number(S::DIMS, &at.map(i64::from)).map_or_else(T::default, |place| values[place])
    }
}
