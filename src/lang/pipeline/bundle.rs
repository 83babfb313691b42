//! What a stage of a ring holds: one tile in shared memory, or a tuple of two to four.

use std::marker::PhantomData;

use super::source::Source;
use crate::lang::elem::Elem;
use crate::lang::shape::Shape;
use crate::lang::tile::Tile;

/// A tile in shared memory, as a part of a stage. In kernels: `Smem<f16, 128, 64>`.
#[derive(Debug)]
pub struct Smem<T, S>(PhantomData<(T, S)>);

/// What a stage holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a stage holds",
    label = "not tiles in shared memory",
    note = "a stage holds one `Smem<T, A, B>`, or a tuple of two to four of them"
)]
pub trait Bundle: Sized + 'static {
    /// What is copied to a stage: a source for each tile.
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

/// The names of a stage's tiles, as types.
#[expect(non_camel_case_types, reason = "they are named like the methods that rustc speaks of")]
#[allow(missing_docs)]
pub mod field {
    #[derive(Debug)]
    pub enum a {}
    #[derive(Debug)]
    pub enum b {}
    #[derive(Debug)]
    pub enum c {}
    #[derive(Debug)]
    pub enum d {}
    #[derive(Debug)]
    pub enum get {}
}

/// A bundle with a tile of this name.
#[diagnostic::on_unimplemented(
    message = "a stage of `{Self}` has no tile `{F}`",
    label = "no such tile in the stage",
    note = "the one tile of a stage is `.get()`; several are `.a()`, `.b()`, `.c()`, `.d()`, in the order of the ring's type"
)]
pub trait Field<F>: Bundle {
    /// Its elements.
    type Elem: Elem;
    /// Its extents.
    type Shape: Shape;

    #[doc(hidden)]
    fn tile(tiles: &Self::Tiles) -> Tile<Self::Elem, Self::Shape>;
}

#[diagnostic::do_not_recommend]
impl<T: Elem, S: Shape> Field<field::get> for Smem<T, S> {
    type Elem = T;
    type Shape = S;

    fn tile(tiles: &Tile<T, S>) -> Tile<T, S> {
        *tiles
    }
}

macro_rules! bundles {
    ($([$($t:ident $s:ident $n:tt)*] $($field:ident $et:ident $es:ident $at:tt)*;)*) => {$(
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
        fields! { [$($t $s)*] $($field $et $es $at)* }
    )*};
}
macro_rules! fields {
    ([$($t:ident $s:ident)*]) => {};
    ([$($t:ident $s:ident)*] $field:ident $et:ident $es:ident $at:tt $($rest:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($t: Elem, $s: Shape),*> Field<field::$field> for ($(Smem<$t, $s>,)*) {
            type Elem = $et;
            type Shape = $es;

            fn tile(tiles: &Self::Tiles) -> Tile<$et, $es> {
                tiles.$at
            }
        }
        fields! { [$($t $s)*] $($rest)* }
    };
}
bundles! {
    [T0 S0 0 T1 S1 1] a T0 S0 0 b T1 S1 1;
    [T0 S0 0 T1 S1 1 T2 S2 2] a T0 S0 0 b T1 S1 1 c T2 S2 2;
    [T0 S0 0 T1 S1 1 T2 S2 2 T3 S3 3] a T0 S0 0 b T1 S1 1 c T2 S2 2 d T3 S3 3;
}
