//! Asynchronous stores from slots in shared memory.

use std::fmt;
use std::marker::PhantomData;

use super::bundle::{Bundle, Smem};
use crate::lang::access::origin;
use crate::lang::elem::Elem;
use crate::lang::own::Own;
use crate::lang::shape::{D1, D2, D3, D4, Shape};
use crate::lang::tensor::{Tensor, coordinates};
use crate::lang::tile::Tile;

/// `D` slots in shared memory through which tiles are stored.
///
/// In kernels: `Staging::<Smem<f16, 128, 256>, 2>::new()`, at the top of the kernel.
pub struct Staging<B: Bundle, const D: i32>(PhantomData<B>);

impl<T: Elem, S: Shape, const D: i32> Staging<Smem<T, S>, D> {
    /// Creates a staging ring whose slots are all free.
    #[expect(clippy::new_without_default, reason = "kernels create them by this name, in one place")]
    #[must_use]
    pub fn new() -> Self {
        Staging(PhantomData)
    }

    /// Waits for the next slot, until its last store has read it.
    pub fn acquire(&self) -> StagingSlot<'_, T, S> {
        StagingSlot(PhantomData)
    }
}

impl<B: Bundle, const D: i32> fmt::Debug for Staging<B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("slots", &D).finish_non_exhaustive()
    }
}

/// A free slot, to write once.
#[must_use = "an acquired slot must be written and stored: `slot.write(tile).store(c, [m, n])`"]
#[derive(Debug)]
pub struct StagingSlot<'r, T, S>(PhantomData<(&'r (), T, S)>);

impl<'r, T: Elem, S: Shape> StagingSlot<'r, T, S> {
    /// Writes a tile from registers to the slot.
    pub fn write(self, tile: Tile<T, S>) -> Written<'r, T, S> {
        Written { tile, ring: PhantomData }
    }
}

/// A slot that has been written and not yet stored.
#[must_use = "a written slot must be stored: `written.store(c, [m, n])`"]
pub struct Written<'r, T, S> {
    tile: Tile<T, S>,
    ring: PhantomData<&'r ()>,
}

impl<'r, T: Elem, S: Shape> Written<'r, T, S> {
    /// Starts the store to the tile with this tile index. Outside: dropped.
    pub fn store<const R: usize>(self, to: &mut Tensor<T, R>, index: [i32; R]) -> Store<'r>
    where
        S: OfRank<R>,
    {
        to.write(coordinates::<S, R>(origin::<S, R>(index)), &self.tile.values(), |_, new| new);
        Store(PhantomData)
    }

    /// Starts the store to the tile that starts at this element. Outside: dropped.
    pub fn store_at<const R: usize>(self, to: &mut Tensor<T, R>, first: [i32; R]) -> Store<'r>
    where
        S: OfRank<R>,
    {
        to.write(coordinates::<S, R>(first.map(i64::from)), &self.tile.values(), |_, new| new);
        Store(PhantomData)
    }
}

/// A shape of rank `R`.
#[diagnostic::on_unimplemented(
    message = "a slot of `{Self}` cannot be stored to a tensor of rank {R}",
    label = "ranks differ",
    note = "a slot of shape `D1<A>` to `D4<A, B, C, D>` is stored to a tensor of rank 1 to 4"
)]
pub trait OfRank<const R: usize>: Shape {}

macro_rules! ranks {
    ($($rank:literal $shape:ident $($n:ident)*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$(const $n: i32),*> OfRank<$rank> for $shape<$($n),*> {}
    )*};
}
ranks! { 1 D1 A; 2 D2 A B; 3 D3 A B C; 4 D4 A B C D; }

impl<T, S> fmt::Debug for Written<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

impl<T: Elem, const R: usize, S: Shape> Own<'_, T, R, S> {
    /// Starts the store of a written staging slot to this tile.
    pub fn store_from<'r>(self, written: Written<'r, T, S>) -> Store<'r> {
        self.store(written.tile);
        Store(PhantomData)
    }
}

/// A store in flight.
#[must_use = "a store in flight must be waited for: `store.wait()`"]
#[derive(Debug)]
pub struct Store<'r>(PhantomData<&'r ()>);

impl Store<'_> {
    /// Waits until the store has read the slot, which may then be written again.
    pub fn wait(self) {}
}
