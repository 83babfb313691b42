//! The contents of a stage of a ring: one tile in shared memory, or a tuple of two to four.

use std::marker::PhantomData;

use super::source::Source;
use crate::lang::elem::Elem;
use crate::lang::shape::Shape;
use crate::lang::tile::Tile;

/// A tile in shared memory, as the contents of a stage or a part of them. In kernels: `Smem<f16, 128, 64>`.
#[derive(Debug)]
pub struct Smem<T, S>(PhantomData<(T, S)>);

/// The contents of a stage.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a stage",
    label = "not tiles in shared memory",
    note = "a stage holds one `Smem<T, A, B>`, or a tuple of two to four of them"
)]
pub trait Bundle: Sized + 'static {
    /// The copy sources of a stage: one for each tile.
    type Source: 'static;
    /// The tiles of a stage.
    #[doc(hidden)]
    type Tiles: Copy;

    #[doc(hidden)]
    fn load(source: &Self::Source) -> Self::Tiles;
    #[doc(hidden)]
    fn zeros() -> Self::Tiles;
}

impl<T: Elem, S: Shape> Bundle for Smem<T, S> {
    type Source = Source<T, S>;
    type Tiles = Tile<T, S>;

    fn load(source: &Self::Source) -> Tile<T, S> {
        source.load()
    }

    fn zeros() -> Tile<T, S> {
        Tile::zeros()
    }
}

macro_rules! bundles {
    ($([$($t:ident $s:ident $n:tt)*])*) => {$(
        impl<$($t: Elem, $s: Shape),*> Bundle for ($(Smem<$t, $s>,)*) {
            type Source = ($(Source<$t, $s>,)*);
            type Tiles = ($(Tile<$t, $s>,)*);

            fn load(source: &Self::Source) -> Self::Tiles {
                ($(source.$n.load(),)*)
            }

            fn zeros() -> Self::Tiles {
                ($(Tile::<$t, $s>::zeros(),)*)
            }
        }
    )*};
}
bundles! {
    [T0 S0 0 T1 S1 1]
    [T0 S0 0 T1 S1 1 T2 S2 2]
    [T0 S0 0 T1 S1 1 T2 S2 2 T3 S3 3]
}
