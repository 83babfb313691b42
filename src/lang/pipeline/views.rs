//! The tiles of a stage, where they lie.

use std::fmt;
use std::marker::PhantomData;

use super::bundle::{Bundle, Smem};
use super::stage::{Part, Stage};
use crate::lang::elem::Elem;
use crate::lang::layout::Transpose;
use crate::lang::shape::{D2, D3, Shape};
use crate::lang::tile::Tile;

/// The names of a stage's tiles, as types.
#[expect(non_camel_case_types, reason = "rustc names them in its messages, so they are spelled like the methods")]
pub mod field {
    /// The first tile of several.
    #[derive(Debug)]
    pub enum a {}
    /// The second tile.
    #[derive(Debug)]
    pub enum b {}
    /// The third tile.
    #[derive(Debug)]
    pub enum c {}
    /// The fourth tile.
    #[derive(Debug)]
    pub enum d {}
    /// The only tile.
    #[derive(Debug)]
    pub enum get {}
}

/// A stage of this bundle has a tile of the name `F`, with elements `T` and extents `S`.
#[diagnostic::on_unimplemented(
    message = "a stage of `{Self}` has no tile `{F}`",
    label = "no such tile in the stage",
    note = "a stage of one tile has `.get()`; a stage of several has `.a()`, `.b()`, `.c()`, `.d()`, in the order of the ring's type"
)]
pub trait Has<F, T, S>: Bundle {
    #[doc(hidden)]
    fn tile(tiles: &Self::Tiles) -> Tile<T, S>;
}

// Written out, because rustc shows where a bound stands.

impl<B: Bundle> Stage<'_, B> {
    /// Its first tile of several.
    #[must_use]
    pub fn a<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::a, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// Its second tile.
    #[must_use]
    pub fn b<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::b, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// Its third tile.
    #[must_use]
    pub fn c<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::c, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// Its fourth tile.
    #[must_use]
    pub fn d<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::d, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// Its only tile.
    #[must_use]
    pub fn get<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::get, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }
}

impl<B: Bundle> Part<'_, B> {
    /// The stage's first tile of several.
    #[must_use]
    pub fn a<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::a, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// The stage's second tile.
    #[must_use]
    pub fn b<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::b, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// The stage's third tile.
    #[must_use]
    pub fn c<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::c, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// The stage's fourth tile.
    #[must_use]
    pub fn d<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::d, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }

    /// The stage's only tile.
    #[must_use]
    pub fn get<T: Elem, S: Shape>(&self) -> SmemRef<'_, T, S>
    where
        B: Has<field::get, T, S>,
    {
        SmemRef::of(B::tile(&self.tiles))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Elem, S: Shape> Has<field::get, T, S> for Smem<T, S> {
    fn tile(tiles: &Tile<T, S>) -> Tile<T, S> {
        *tiles
    }
}

/// Which tiles stages of several have: of each bundle its type, its parameters, and the name, elements, extents and place of its tiles.
macro_rules! tiles {
    ($bundle:ty [$($t:ident $s:ident)*]) => {};
    ($bundle:ty [$($t:ident $s:ident)*] $field:ident $ft:ident $fs:ident $at:tt $($rest:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($t: Elem, $s: Shape),*> Has<field::$field, $ft, $fs> for $bundle {
            fn tile(tiles: &Self::Tiles) -> Tile<$ft, $fs> {
                tiles.$at
            }
        }
        tiles! { $bundle [$($t $s)*] $($rest)* }
    };
}
tiles! { (Smem<T0, S0>, Smem<T1, S1>) [T0 S0 T1 S1] a T0 S0 0 b T1 S1 1 }
tiles! { (Smem<T0, S0>, Smem<T1, S1>, Smem<T2, S2>) [T0 S0 T1 S1 T2 S2] a T0 S0 0 b T1 S1 1 c T2 S2 2 }
tiles! {
    (Smem<T0, S0>, Smem<T1, S1>, Smem<T2, S2>, Smem<T3, S3>) [T0 S0 T1 S1 T2 S2 T3 S3]
    a T0 S0 0 b T1 S1 1 c T2 S2 2 d T3 S3 3
}

/// A tile of a stage, where it lies. The stage cannot be given back while this is in use.
pub struct SmemRef<'s, T, S> {
    pub(super) tile: Tile<T, S>,
    stage: PhantomData<&'s ()>,
}

impl<T, S> Clone for SmemRef<'_, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for SmemRef<'_, T, S> {}

impl<'s, T: Elem, S: Shape> SmemRef<'s, T, S> {
    /// Its last two axes exchanged, without a copy: of rank 2 and 3.
    #[must_use]
    pub fn t(self) -> <Self as Transpose>::Out
    where
        Self: Transpose,
    {
        self.transpose()
    }

    /// Its elements, in registers.
    #[must_use]
    pub fn load(self) -> Tile<T, S> {
        self.tile
    }

    fn of(tile: Tile<T, S>) -> SmemRef<'s, T, S> {
        SmemRef { tile, stage: PhantomData }
    }
}

impl<T, S> fmt::Debug for SmemRef<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmemRef")
    }
}

impl<'s, T: Elem, const A: i32, const B: i32> Transpose for SmemRef<'s, T, D2<A, B>> {
    type Out = SmemRef<'s, T, D2<B, A>>;

    fn transpose(self) -> Self::Out {
        SmemRef::of(self.tile.t())
    }
}

impl<'s, T: Elem, const A: i32, const B: i32, const C: i32> Transpose for SmemRef<'s, T, D3<A, B, C>> {
    type Out = SmemRef<'s, T, D3<A, C, B>>;

    fn transpose(self) -> Self::Out {
        SmemRef::of(self.tile.t())
    }
}
