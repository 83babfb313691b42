//! `Tensor<T, R>`: in kernels, device memory with run-time extents and strides; here, a view of host memory.
//!
//! | file | methods |
//! |---|---|
//! | `tensor.rs` | `dim`, `get`, `set`, `shared`, and the basis of the others |
//! | `view.rs` | `index`, `slice`, `segment` and their `_mut` forms |
//! | `access.rs` | tiles: `load_tile`, `load_at`, `store_tile`, `store_at`, `atomic_add_tile` and the like |
//! | `gather.rs` | elements and rows by index tiles: `gather`, `gather_rows`, `scatter`, `atomic_add` and the like |
//! | `atomic.rs` | atomic updates that return what they found: `fetch_add`, `compare_exchange` and the like |
//! | `own.rs` | output tiles of a program: `tiles`, `ragged`, `work` |
//! | `pipeline/source.rs` | sources of copies: `tile`, `tile_at`, `rows` |
//!
//! Addresses and coordinates are computed in `i64`, without overflow.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::elem::Elem;
use super::pipeline::once;
use super::program::trap;
use super::shape::Shape;
use super::tile::Tile;
use super::view::ViewMut;

/// Host memory that tensors share.
pub struct Shared<T>(Arc<Mutex<Vec<T>>>);

impl<T> Shared<T> {
    /// Allocates memory with these elements.
    #[must_use]
    pub fn new(elements: Vec<T>) -> Self {
        Shared(Arc::new(Mutex::new(elements)))
    }

    /// A copy of the current elements.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.lock().clone()
    }

    /// The elements: moved out if no tensor uses them any more, otherwise copied.
    #[must_use]
    pub fn into_vec(self) -> Vec<T>
    where
        T: Clone,
    {
        match Arc::try_unwrap(self.0) {
            Ok(memory) => memory.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(shared) => Shared(shared).to_vec(),
        }
    }

    /// A trap may unwind while the lock is held; the elements are valid nevertheless.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} elements)", self.lock().len())
    }
}

/// A tensor of rank `R`.
pub struct Tensor<T, const R: usize> {
    pub(super) memory: Shared<T>,
    pub(super) offset: i64,
    pub(super) extents: [i32; R],
    pub(super) strides: [i64; R],
    /// Whether every coordinate is outside, as in the view of an index that is out of range.
    pub(super) nowhere: bool,
}

impl<T, const R: usize> fmt::Debug for Tensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor").field("extents", &self.extents).field("strides", &self.strides).finish_non_exhaustive()
    }
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// A tensor over `memory`: element `[i, j, …]` lies at `offset + i * strides[0] + j * strides[1] + …`.
    ///
    /// # Panics
    /// If an extent is negative or an element would lie outside `memory`.
    #[must_use]
    pub fn from_host(memory: Shared<T>, offset: i64, extents: [i32; R], strides: [i64; R]) -> Self {
        assert!(extents.iter().all(|n| *n >= 0), "extents {extents:?} are not negative");
        if !extents.contains(&0) {
            let (mut first, mut last) = (i128::from(offset), i128::from(offset));
            for (n, stride) in extents.iter().zip(strides) {
                let span = i128::from(n - 1) * i128::from(stride);
                *(if span < 0 { &mut first } else { &mut last }) += span;
            }
            let len = memory.lock().len() as i128;
            assert!(0 <= first && last < len, "elements {first} to {last} are not within 0..{len}");
        }
        Tensor { memory, offset, extents, strides, nowhere: false }
    }

    /// The extent of an axis.
    #[must_use]
    #[track_caller]
    pub fn dim(&self, axis: usize) -> i32 {
        self.extents.get(axis).copied().unwrap_or_else(|| trap(format!("a tensor of rank {R} has no axis {axis}")))
    }

    /// One element. Outside the tensor: a trap.
    #[must_use]
    #[track_caller]
    pub fn get(&self, at: [i32; R]) -> T {
        let Some(place) = self.place(at.map(i64::from)) else { self.outside("get", at) };
        once(|| self.memory.lock()[place])
    }

    /// Stores one element. Outside the tensor: a trap.
    #[track_caller]
    pub fn set(&mut self, at: [i32; R], value: T) {
        let Some(place) = self.place(at.map(i64::from)) else { self.outside("set", at) };
        once(|| self.memory.lock()[place] = value);
    }

    /// A mutable view for stores that no rule proves disjoint.
    ///
    /// # Safety
    /// No two programs of the launch access one element through such views unless both only read it.
    #[expect(unsafe_code, reason = "on devices, racing stores are undefined behaviour, which the caller must rule out")]
    pub unsafe fn shared(&mut self) -> ViewMut<'_, T, R> {
        ViewMut::of(self.alias())
    }

    #[track_caller]
    fn outside(&self, what: &str, at: [i32; R]) -> ! {
        let extents = self.extents;
        trap(format!("`{what}` at {at:?} is outside the tensor of extents {extents:?}"))
    }

    /// Another handle to the same elements.
    pub(super) fn alias(&self) -> Self {
        let Tensor { offset, extents, strides, nowhere, .. } = *self;
        Tensor { memory: self.memory.clone(), offset, extents, strides, nowhere }
    }

    /// The position of an element, if the coordinates are inside.
    pub(super) fn place(&self, at: [i64; R]) -> Option<usize> {
        let mut place = self.offset;
        for ((i, n), stride) in at.into_iter().zip(self.extents).zip(self.strides) {
            if !(0..i64::from(n)).contains(&i) {
                return None;
            }
            place += i * stride;
        }
        if self.nowhere { None } else { usize::try_from(place).ok() }
    }

    /// The elements at these coordinates, `pad` outside of the tensor.
    pub(super) fn read<S: Shape>(&self, at: impl Iterator<Item = [i64; R]>, pad: T) -> Tile<T, S> {
        once(|| {
            let memory = self.memory.lock();
            Tile::new(at.map(|at| self.place(at).map_or(pad, |place| memory[place])).collect())
        })
    }

    /// Replaces the elements at these coordinates by `f` of their number and what they were, one after the other, and returns what they were:
    /// `None` outside of the tensor.
    pub(super) fn replace(&mut self, at: impl Iterator<Item = [i64; R]>, f: impl Fn(usize, T) -> T) -> Vec<Option<T>> {
        once(|| {
            let mut memory = self.memory.lock();
            let mut one = |(i, at): (usize, [i64; R])| {
                let place = self.place(at)?;
                let new = f(i, memory[place]);
                Some(std::mem::replace(&mut memory[place], new))
            };
            at.enumerate().map(&mut one).collect()
        })
    }

    /// Replaces the elements at these coordinates by `f` of the old and the new value.
    pub(super) fn write(&mut self, at: impl Iterator<Item = [i64; R]>, values: &[T], f: impl Fn(T, T) -> T) {
        once(|| {
            let mut memory = self.memory.lock();
            for (at, new) in at.zip(values) {
                if let Some(place) = self.place(at) {
                    memory[place] = f(memory[place], *new);
                }
            }
        });
    }
}

/// The coordinates of a tile's elements, in row-major order, from the first element's.
pub(super) fn coordinates<S: Shape, const R: usize>(origin: [i64; R]) -> impl Iterator<Item = [i64; R]> {
    let extents: Vec<i64> = S::DIMS.iter().map(|n| i64::from(*n)).collect();
    (0_i64..).take(S::LEN).map(move |mut i| {
        let mut at = origin;
        for (axis, n) in extents.iter().enumerate().rev() {
            at[axis] += i % n;
            i /= n;
        }
        at
    })
}
