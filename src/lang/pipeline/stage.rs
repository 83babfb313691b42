//! The side of a ring that reads: stages, parts of the right to read one, and the tiles in it.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use super::bundle::{Bundle, Field, field};
use super::ring::{Contents, Times};
use crate::lang::elem::Elem;
use crate::lang::layout::Transpose;
use crate::lang::program::trap;
use crate::lang::shape::{D1, D2, D3, Shape};
use crate::lang::tile::Tile;

/// The right to wait for one stage, once.
#[must_use = "a claimed stage must be waited for: `ready.wait()`"]
pub struct Ready<'r, B: Bundle> {
    pub(super) times: &'r Times<B>,
    pub(super) time: u64,
}

impl<'r, B: Bundle> Ready<'r, B> {
    /// Waits until the bytes are there. The stage must not be poison.
    #[track_caller]
    pub fn wait(self) -> Stage<'r, B> {
        match self.wait_filled() {
            Some(stage) => stage,
            None => trap("a stage is read that holds nothing: `wait_filled` asks"),
        }
    }

    /// Waits; `None` if the stage is poison, which then has been given back.
    #[track_caller]
    pub fn wait_filled(self) -> Option<Stage<'r, B>> {
        match self.times.borrow().stages.get(&self.time) {
            Some(Contents::Poison) => None,
            Some(Contents::Copy(source)) => Some(Stage::of(B::load(source))),
            Some(Contents::Zeros) => Some(Stage::of(B::zeros())),
            None => trap(format!("stage {} of a ring is waited for, which no role fills", self.time)),
        }
    }
}

impl<B: Bundle> fmt::Debug for Ready<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready of time {}", self.time)
    }
}

/// The right to read one stage. It is given back once, when nothing reads it any more.
#[must_use = "a stage must be released, or given to an `Acc`"]
pub struct Stage<'r, B: Bundle> {
    tiles: B::Tiles,
    ring: PhantomData<&'r ()>,
}

impl<'r, B: Bundle> Stage<'r, B> {
    pub(super) fn of(tiles: B::Tiles) -> Self {
        Stage { tiles, ring: PhantomData }
    }

    /// Gives the stage back: its slot may be filled again.
    pub fn release(self) {}

    /// The right to read for each of several readers, to be joined again. In kernels: `stage.split::<2>()`.
    pub fn split<N: Readers>(self) -> N::Of<Part<'r, B>> {
        let whole = Rc::new(());
        N::each(|| Part { tiles: self.tiles, whole: Rc::clone(&whole), count: N::COUNT, ring: PhantomData })
    }

    /// The whole right to read again, of all its parts.
    #[track_caller]
    pub fn join<const N: usize>(parts: [Part<'r, B>; N]) -> Self {
        let [first, ..] = &parts[..] else { trap("a stage is joined of its parts, not of none") };
        if parts.iter().any(|p| !Rc::ptr_eq(&p.whole, &first.whole)) {
            trap("parts of different stages are joined");
        }
        if first.count != N {
            trap(format!("{N} of {} parts of a stage are joined", first.count));
        }
        Stage::of(first.tiles)
    }
}

/// Part of the right to read one stage, for one of several readers.
#[must_use = "the parts of a stage must be joined: `Stage::join([..])`"]
pub struct Part<'r, B: Bundle> {
    tiles: B::Tiles,
    whole: Rc<()>,
    count: usize,
    ring: PhantomData<&'r ()>,
}

/// How many readers a stage is split for.
#[diagnostic::on_unimplemented(
    message = "a stage is not split for `{Self}`",
    label = "not a number of readers",
    note = "a stage is split for 2 to 16 readers: `stage.split::<2>()`"
)]
pub trait Readers {
    /// An array of as many.
    type Of<P>;
    #[doc(hidden)]
    const COUNT: usize;

    #[doc(hidden)]
    fn each<P>(make: impl FnMut() -> P) -> Self::Of<P>;
}

macro_rules! readers {
    ($($n:literal)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Readers for D1<$n> {
            type Of<P> = [P; $n];
            const COUNT: usize = $n;

            fn each<P>(mut make: impl FnMut() -> P) -> [P; $n] {
                std::array::from_fn(|_| make())
            }
        }
    )*};
}
readers! { 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 }

macro_rules! views {
    ($($token:ident: $($(#[$doc:meta])* $name:ident)*;)*) => {$(
        impl<B: Bundle> $token<'_, B> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(
                    &self,
                ) -> SmemRef<'_, <B as Field<field::$name>>::Elem, <B as Field<field::$name>>::Shape>
                where
                    B: Field<field::$name>,
                {
                    SmemRef { tile: <B as Field<field::$name>>::tile(&self.tiles), stage: PhantomData }
                }
            )*
        }

        impl<B: Bundle> fmt::Debug for $token<'_, B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($token))
            }
        }
    )*};
}
views! {
    Stage:
        /// Its first tile of several.
        a
        /// Its second tile.
        b
        /// Its third tile.
        c
        /// Its fourth tile.
        d
        /// Its only tile.
        get;
    Part:
        /// The stage's first tile of several.
        a
        /// The stage's second tile.
        b
        /// The stage's third tile.
        c
        /// The stage's fourth tile.
        d
        /// The stage's only tile.
        get;
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
