//! Output tiles: tile i of an output belongs to program `i % num_programs(0)`, so each belongs to one program only. They are affine
//! values: each is stored once or skipped.

use std::marker::PhantomData;

use super::access::origin;
use super::elem::Elem;
use super::program::{num_programs, program_id, regroup, trap};
use super::shape::{D1, D2, D3, D4, Shape, cdiv};
use super::tensor::{Tensor, coordinates};
use super::tile::Tile;

/// An output tile that only this program may access.
#[derive(Debug)]
#[must_use = "an output tile must be stored with `.store(v)` or skipped with `.skip()`"]
pub struct Own<'a, T, const R: usize, S> {
    /// The segment that contains the tile, or the whole output.
    within: Tensor<T, R>,
    index: [i32; R],
    group: i32,
    of: PhantomData<(&'a mut T, S)>,
}

impl<T: Elem, const R: usize, S: Shape> Own<'_, T, R, S> {
    /// The index of the tile; in a ragged output, within its segment.
    #[must_use]
    pub fn index(&self) -> [i32; R] {
        self.index
    }

    /// The number of the tile's segment in a ragged output; 0 in other outputs.
    #[must_use]
    pub fn group(&self) -> i32 {
        self.group
    }

    /// The contents of the tile. Outside the output: zero.
    #[must_use]
    pub fn load(&self) -> Tile<T, S> {
        self.within.read(coordinates::<S, R>(origin::<S, R>(self.index)), T::default())
    }

    /// Stores the tile. Outside the output: dropped.
    pub fn store(mut self, tile: Tile<T, S>) {
        self.within.write(coordinates::<S, R>(origin::<S, R>(self.index)), &tile.values(), |_, new| new);
    }

    /// Leaves the tile unchanged.
    pub fn skip(self) {}
}

/// The output tiles of this program, the same for every role of a pipeline.
#[derive(Debug)]
#[must_use = "loop over `.indices()` or `.tiles()` of it"]
pub struct Work<'a, T, const R: usize, S> {
    output: Tensor<T, R>,
    /// The number of rows of tiles in a group.
    group: i32,
    of: PhantomData<(&'a mut T, S)>,
}

impl<'a, T: Elem, const R: usize, S: Shape> Work<'a, T, R, S> {
    fn new(output: &'a mut Tensor<T, R>, group: i32) -> Self {
        Work { output: output.alias(), group, of: PhantomData }
    }

    /// The indices of this program's tiles, for roles that do not store.
    pub fn indices(&self) -> impl Iterator<Item = [i32; R]> + use<'a, T, R, S> {
        let (counts, group) = (counts::<S, R>(self.output.extents), self.group);
        let extents = counts.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
        mine(counts).map(move |i| regroup(unflatten(i, counts), extents, group))
    }

    /// This program's tiles, for the one role that stores.
    pub fn tiles(self) -> impl Iterator<Item = Own<'a, T, R, S>> + use<'a, T, R, S> {
        let output = self.output.alias();
        self.indices().map(move |index| Own { within: output.alias(), index, group: 0, of: PhantomData })
    }
}

/// The number of tiles along each axis.
fn counts<S: Shape, const R: usize>(extents: [i32; R]) -> [i64; R] {
    std::array::from_fn(|axis| i64::from(cdiv(extents[axis], S::DIMS[axis])))
}

/// The numbers of this program's tiles.
fn mine<const R: usize>(counts: [i64; R]) -> impl Iterator<Item = i64> {
    let step = usize::try_from(num_programs(0)).unwrap_or(1).max(1);
    (i64::from(program_id(0))..counts.iter().product()).step_by(step)
}

fn unflatten<const R: usize>(mut i: i64, counts: [i64; R]) -> [i32; R] {
    let mut index = [0; R];
    for axis in (0..R).rev() {
        index[axis] = i32::try_from(i % counts[axis]).unwrap_or(i32::MAX);
        i /= counts[axis];
    }
    index
}

macro_rules! dealt {
    ($($rank:literal $shape:ident $($n:ident)*;)*) => {$(
        impl<T: Elem> Tensor<T, $rank> {
            /// This program's tiles of the output.
            pub fn tiles<$(const $n: i32),*>(
                &mut self,
            ) -> impl Iterator<Item = Own<'_, T, $rank, $shape<$($n),*>>> + use<'_, T, $($n),*> {
                self.work().tiles()
            }

            /// This program's tiles, to share between roles.
            pub fn work<$(const $n: i32),*>(&mut self) -> Work<'_, T, $rank, $shape<$($n),*>> {
                Work::new(self, 1)
            }

            /// This program's tiles of an output whose rows are cut into segments `off[g]..off[g + 1]`, each of which
            /// starts a new tile. Traps unless the segments do not decrease and lie within the output.
            #[track_caller]
            pub fn ragged<$(const $n: i32),*>(
                &mut self,
                off: &Tensor<i32, 1>,
            ) -> impl Iterator<Item = Own<'_, T, $rank, $shape<$($n),*>>> + use<'_, T, $($n),*> {
                self.deal_segments(off)
            }
        }
    )*};
}
dealt! { 1 D1 A; 2 D2 A B; 3 D3 A B C; 4 D4 A B C D; }

macro_rules! dealt_in_groups {
    ($($rank:literal $shape:ident $($n:ident)*;)*) => {$(
        impl<T: Elem> Tensor<T, $rank> {
            /// This program's tiles of the output, in the order of [`unflatten_grouped`] of their last two indices.
            ///
            /// [`unflatten_grouped`]: super::unflatten_grouped
            pub fn tiles_grouped<$(const $n: i32,)* const G: i32>(
                &mut self,
            ) -> impl Iterator<Item = Own<'_, T, $rank, $shape<$($n),*>>> + use<'_, T, $($n,)* G> {
                self.work_grouped::<$($n,)* G>().tiles()
            }

            /// This program's tiles in that order, to share between roles.
            pub fn work_grouped<$(const $n: i32,)* const G: i32>(&mut self) -> Work<'_, T, $rank, $shape<$($n),*>> {
                Work::new(self, G)
            }
        }
    )*};
}
dealt_in_groups! { 2 D2 A B; 3 D3 A B C; 4 D4 A B C D; }

impl<T: Elem, const R: usize> Tensor<T, R> {
    #[track_caller]
    fn deal_segments<'a, S: Shape>(&'a mut self, off: &Tensor<i32, 1>) -> std::vec::IntoIter<Own<'a, T, R, S>> {
        if off.extents[0] < 1 {
            trap("`ragged` needs one more offset than there are segments, so at least one");
        }
        let step = i64::from(num_programs(0).max(1));
        let (mut next, mut first) = (i64::from(program_id(0)), 0);
        let mut mine = Vec::new();
        for group in 0..off.extents[0] - 1 {
            let segment = self.part(off, group);
            let counts = counts::<S, R>(segment.extents);
            let end = first + counts.iter().product::<i64>();
            while next < end {
                let index = unflatten(next - first, counts);
                mine.push(Own { within: segment.alias(), index, group, of: PhantomData });
                next += step;
            }
            first = end;
        }
        mine.into_iter()
    }
}
