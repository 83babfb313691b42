//! The tokens of roles that read a ring: pending waits, stages, and parts of stages.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use super::bundle::Bundle;
use super::ring::{Contents, Times};
use crate::lang::program::trap;
use crate::lang::shape::D1;

/// A pending wait for one stage.
#[must_use = "a pending wait for a stage must be completed: `ready.wait()`"]
pub struct Ready<'r, B: Bundle> {
    pub(super) times: &'r Times<B>,
    pub(super) time: u64,
}

impl<'r, B: Bundle> Ready<'r, B> {
    /// Waits until the stage is ready. It must not be poisoned.
    #[track_caller]
    pub fn wait(self) -> Stage<'r, B> {
        match self.wait_filled() {
            Some(stage) => stage,
            None => trap("a poisoned stage is read: wait for it by `wait_filled`"),
        }
    }

    /// Waits until the stage is ready; returns `None` if it is poisoned, and releases it then.
    #[track_caller]
    pub fn wait_filled(self) -> Option<Stage<'r, B>> {
        match self.times.borrow().stages.get(&self.time) {
            Some(Contents::Poison) => None,
            Some(Contents::Copy(source)) => Some(Stage::of(B::load(source))),
            Some(Contents::Zeros) => Some(Stage::of(B::zeros())),
            None => trap(format!("a role waits for stage {} of a ring, which no role fills", self.time)),
        }
    }
}

impl<B: Bundle> fmt::Debug for Ready<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ready of time {}", self.time)
    }
}

/// A stage that may be read. It must be released once, when nothing reads it any more.
#[must_use = "a stage must be released, or given to an `Acc`"]
pub struct Stage<'r, B: Bundle> {
    pub(super) tiles: B::Tiles,
    ring: PhantomData<&'r ()>,
}

impl<'r, B: Bundle> Stage<'r, B> {
    pub(super) fn of(tiles: B::Tiles) -> Self {
        Stage { tiles, ring: PhantomData }
    }

    /// Releases the stage, so that its slot may be filled again.
    pub fn release(self) {}

    /// Splits the stage into parts for several readers, which must be joined again. In kernels: `stage.split::<2>()`.
    pub fn split<N: Readers>(self) -> N::Of<Part<'r, B>> {
        let whole = Rc::new(());
        N::each(|| Part { tiles: self.tiles, whole: Rc::clone(&whole), count: N::COUNT, ring: PhantomData })
    }

    /// Joins all parts of a stage again.
    #[track_caller]
    pub fn join<const N: usize>(parts: [Part<'r, B>; N]) -> Self {
        let [first, ..] = &parts[..] else { trap("a stage is joined from its parts, but none were given") };
        if parts.iter().any(|p| !Rc::ptr_eq(&p.whole, &first.whole)) {
            trap("parts of different stages are joined");
        }
        if first.count != N {
            trap(format!("{N} of {} parts of a stage are joined", first.count));
        }
        Stage::of(first.tiles)
    }
}

/// A part of a stage, for one of several readers.
#[must_use = "the parts of a stage must be joined: `Stage::join([..])`"]
pub struct Part<'r, B: Bundle> {
    pub(super) tiles: B::Tiles,
    whole: Rc<()>,
    count: usize,
    ring: PhantomData<&'r ()>,
}

/// The number of readers for which a stage is split.
#[diagnostic::on_unimplemented(
    message = "a stage cannot be split for `{Self}`",
    label = "not a number of readers",
    note = "a stage can be split for 2 to 16 readers: `stage.split::<2>()`"
)]
pub trait Readers {
    /// An array of this length.
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

impl<B: Bundle> fmt::Debug for Stage<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl<B: Bundle> fmt::Debug for Part<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part of {}", self.count)
    }
}
