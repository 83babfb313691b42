//! Atomic updates that return what they found.
//!
//! Here programs run one after the other, and the lanes of an update in order; on devices any order is possible, and what is returned depends
//! on it.

use super::elem::{Elem, Int, Num};
use super::gather::lane_coordinates;
use super::shape::Shape;
use super::tensor::Tensor;
use super::tile::Tile;

/// The places of an update: a tile of indices for each axis, with a tile of operands, or an `i32` for each axis, with a scalar.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not select elements of a tensor of rank {R}",
    label = "not indices",
    note = "write an `i32` for each axis, `[i, j]`, or a tile of `i32` for each, all of one shape"
)]
pub trait Lanes<T, const R: usize> {
    /// The operands, and what is found.
    type Value;
    /// Which lanes have exchanged their element.
    type Mask;
    #[doc(hidden)]
    fn coordinates(self) -> Vec<[i64; R]>;
    #[doc(hidden)]
    fn operands(value: Self::Value) -> Vec<T>;
    #[doc(hidden)]
    fn found(values: Vec<T>) -> Self::Value;
    #[doc(hidden)]
    fn mask(done: Vec<bool>) -> Self::Mask;
}

impl<T: Elem, S: Shape, const R: usize> Lanes<T, R> for [Tile<i32, S>; R] {
    type Value = Tile<T, S>;
    type Mask = Tile<bool, S>;
    fn coordinates(self) -> Vec<[i64; R]> {
        lane_coordinates(self).collect()
    }
    fn operands(value: Tile<T, S>) -> Vec<T> {
        value.values().to_vec()
    }
    fn found(values: Vec<T>) -> Tile<T, S> {
        Tile::new(values)
    }
    fn mask(done: Vec<bool>) -> Tile<bool, S> {
        Tile::new(done)
    }
}

impl<T: Elem, const R: usize> Lanes<T, R> for [i32; R] {
    type Value = T;
    type Mask = bool;
    fn coordinates(self) -> Vec<[i64; R]> {
        vec![self.map(i64::from)]
    }
    fn operands(value: T) -> Vec<T> {
        vec![value]
    }
    fn found(values: Vec<T>) -> T {
        values.first().copied().unwrap_or_default()
    }
    fn mask(done: Vec<bool>) -> bool {
        done == [true]
    }
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    fn fetch<L: Lanes<T, R>>(&mut self, at: L, value: L::Value, f: impl Fn(T, T) -> T) -> L::Value {
        let operands = L::operands(value);
        let found = self.replace(at.coordinates().into_iter(), |i, old| f(old, operands[i]));
        L::found(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Adds to one element per lane, atomically, and returns what was there before. Out of range: zero.
    pub fn fetch_add<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Num,
    {
        self.fetch(at, value, T::plus)
    }

    /// Raises one element per lane, atomically, and returns what was there before. Out of range: zero.
    pub fn fetch_max<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Num,
    {
        self.fetch(at, value, T::greater)
    }

    /// Lowers one element per lane, atomically, and returns what was there before. Out of range: zero.
    pub fn fetch_min<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Num,
    {
        self.fetch(at, value, T::lesser)
    }

    /// Bitwise and of one element per lane, atomically; returns what was there before. Out of range: zero.
    pub fn fetch_and<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Int,
    {
        self.fetch(at, value, T::and)
    }

    /// Bitwise or of one element per lane, atomically; returns what was there before. Out of range: zero.
    pub fn fetch_or<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Int,
    {
        self.fetch(at, value, T::or)
    }

    /// Bitwise exclusive or of one element per lane, atomically; returns what was there before. Out of range: zero.
    pub fn fetch_xor<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Int,
    {
        self.fetch(at, value, T::xor)
    }

    /// Stores one element per lane, atomically, and returns what was there before. Out of range: zero.
    pub fn atomic_swap<L: Lanes<T, R>>(&mut self, at: L, value: L::Value) -> L::Value
    where
        T: Num,
    {
        self.fetch(at, value, |_, new| new)
    }

    /// Stores `new` to one element per lane where it has the bits of `current`, atomically. Returns what was there before, and where it has
    /// stored. Out of range: zero and `false`.
    pub fn compare_exchange<L: Lanes<T, R>>(&mut self, at: L, current: L::Value, new: L::Value) -> (L::Value, L::Mask)
    where
        T: Num,
    {
        let (current, new) = (L::operands(current), L::operands(new));
        let same = |i: usize, old: T| old.raw() == current[i].raw();
        let found = self.replace(at.coordinates().into_iter(), |i, old| if same(i, old) { new[i] } else { old });
        let done = found.iter().enumerate().map(|(i, old)| old.is_some_and(|old| same(i, old))).collect();
        (L::found(found.into_iter().map(Option::unwrap_or_default).collect()), L::mask(done))
    }
}
