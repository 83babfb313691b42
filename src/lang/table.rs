//! Elements of arrays at places that are known only at run time.

use super::elem::Elem;
use super::shape::Shape;
use super::tile::Tile;

/// What is chosen from an array by an `i32`: numbers and tiles.
#[diagnostic::on_unimplemented(
    message = "elements of type `{Self}` are not chosen from an array at run time",
    note = "arrays of numbers are indexed by an `i32` or a tile of them, arrays of tiles by an `i32`"
)]
pub trait Entry: Copy {
    #[doc(hidden)]
    fn nothing() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Elem> Entry for T {
    fn nothing() -> Self {
        T::default()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Elem, S: Shape> Entry for Tile<T, S> {
    fn nothing() -> Self {
        Tile::full(T::default())
    }
}

/// An index of an array with elements `T`: an `i32`, or a tile of them.
#[diagnostic::on_unimplemented(
    message = "an array of `{T}` is not indexed by `{Self}`",
    label = "neither an `i32` nor a tile of `i32`",
    note = "convert it by `.cast::<i32>()`, if all values fit; arrays of tiles are indexed by one `i32`"
)]
pub trait Place<T> {
    /// The element, or a tile of elements.
    type Of;

    #[doc(hidden)]
    fn of(self, table: &[T]) -> Self::Of;
}

impl<T: Entry> Place<T> for i32 {
    type Of = T;

    fn of(self, table: &[T]) -> T {
        usize::try_from(self).ok().and_then(|place| table.get(place)).copied().unwrap_or_else(T::nothing)
    }
}

impl<T: Elem, S: Shape> Place<T> for Tile<i32, S> {
    type Of = Tile<T, S>;

    fn of(self, table: &[T]) -> Tile<T, S> {
        self.map(|place| Place::of(place, table))
    }
}

/// `table[place]`; zero if the array has no such place.
#[must_use]
pub fn entry<T, I, O, const N: usize>(table: [T; N], place: I) -> O
where
    I: Place<T, Of = O>,
{
    place.of(&table)
}
