//! Views: a part of a tensor, or a tensor with one axis fixed, used like a tensor.
//!
//! A view of a view borrows what the first one borrows, so `w.index::<1>(kh).index::<1>(kw)` is one expression. Mutable
//! views borrow each other as slices do: bind the first one by `let` if the second is used later.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use super::elem::Elem;
use super::program::trap;
use super::sealed::Sealed;
use super::tensor::Tensor;

/// The rank of a tensor, for bounds on its axes.
#[derive(Debug)]
pub struct Rank<const R: usize>;

impl<const R: usize> Sealed for Rank<R> {}

/// A rank with an axis `AX`.
#[diagnostic::on_unimplemented(
    message = "a tensor of rank {R} has no axis {AX}",
    label = "axis out of range",
    note = "axes count from 0"
)]
pub trait HasAxis<const AX: usize, const R: usize>: Sealed {}

macro_rules! axes {
    ($($rank:literal: $($axis:literal)*;)*) => {$($(
        #[diagnostic::do_not_recommend]
        impl HasAxis<$axis, $rank> for Rank<$rank> {}
    )*)*};
}
axes! { 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; }

/// A read-only view; dereferences to a tensor.
#[derive(Debug)]
pub struct View<'a, T, const R: usize> {
    shown: Tensor<T, R>,
    of: PhantomData<&'a T>,
}

/// A mutable view; dereferences to a tensor.
#[derive(Debug)]
pub struct ViewMut<'a, T, const R: usize> {
    shown: Tensor<T, R>,
    of: PhantomData<&'a mut T>,
}

impl<T: Elem, const R: usize> View<'_, T, R> {
    fn of(shown: Tensor<T, R>) -> Self {
        View { shown, of: PhantomData }
    }
}

impl<T: Elem, const R: usize> ViewMut<'_, T, R> {
    pub(super) fn of(shown: Tensor<T, R>) -> Self {
        ViewMut { shown, of: PhantomData }
    }
}

impl<T: Elem, const R: usize> Clone for View<'_, T, R> {
    fn clone(&self) -> Self {
        View::of(self.shown.alias())
    }
}

impl<T, const R: usize> Deref for View<'_, T, R> {
    type Target = Tensor<T, R>;

    fn deref(&self) -> &Tensor<T, R> {
        &self.shown
    }
}

impl<T, const R: usize> Deref for ViewMut<'_, T, R> {
    type Target = Tensor<T, R>;

    fn deref(&self) -> &Tensor<T, R> {
        &self.shown
    }
}

impl<T, const R: usize> DerefMut for ViewMut<'_, T, R> {
    fn deref_mut(&mut self) -> &mut Tensor<T, R> {
        &mut self.shown
    }
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// Elements `lo..hi` of axis `AX`, clipped to the tensor; an inverted range is empty.
    #[must_use]
    pub fn slice<const AX: usize>(&self, range: Range<i32>) -> View<'_, T, R>
    where
        Rank<R>: HasAxis<AX, R>,
    {
        View::of(self.clipped::<AX>(&range))
    }

    /// The exclusive counterpart of [`Tensor::slice`], for stores.
    #[must_use]
    pub fn slice_mut<const AX: usize>(&mut self, range: Range<i32>) -> ViewMut<'_, T, R>
    where
        Rank<R>: HasAxis<AX, R>,
    {
        ViewMut::of(self.clipped::<AX>(&range))
    }

    /// Rows `off[e]..off[e + 1]`. Traps unless `0 <= off[e] <= off[e + 1] <= ` the extent of axis 0.
    #[must_use]
    #[track_caller]
    pub fn segment(&self, off: &Tensor<i32, 1>, e: i32) -> View<'_, T, R> {
        View::of(self.part(off, e))
    }

    /// The exclusive counterpart of [`Tensor::segment`], for stores.
    #[must_use]
    #[track_caller]
    pub fn segment_mut(&mut self, off: &Tensor<i32, 1>, e: i32) -> ViewMut<'_, T, R> {
        ViewMut::of(self.part(off, e))
    }

    fn clipped<const AX: usize>(&self, range: &Range<i32>) -> Self {
        let lo = range.start.max(0);
        let hi = range.end.min(self.extents[AX]);
        let mut view = self.alias();
        view.extents[AX] = if lo < hi { hi - lo } else { 0 };
        if lo < hi {
            view.offset += i64::from(lo) * self.strides[AX];
        }
        view
    }

    #[track_caller]
    pub(super) fn part(&self, off: &Tensor<i32, 1>, e: i32) -> Self {
        let next = e.wrapping_add(1);
        let [lo, hi] = [off.get([e]), off.get([next])];
        let extent = self.extents[0];
        if !(0 <= lo && lo <= hi && hi <= extent) {
            trap(format!("segment {e} is {lo}..{hi}, which does not lie within 0..{extent}"));
        }
        self.clipped::<0>(&(lo..hi))
    }
}

impl<'a, T: Elem, const R: usize> View<'a, T, R> {
    /// The same as [`Tensor::slice`], but valid for as long as the tensor may be read.
    #[must_use]
    pub fn slice<const AX: usize>(&self, range: Range<i32>) -> View<'a, T, R>
    where
        Rank<R>: HasAxis<AX, R>,
    {
        View::of(self.clipped::<AX>(&range))
    }

    /// The same as [`Tensor::segment`], but valid for as long as the tensor may be read.
    #[must_use]
    #[track_caller]
    pub fn segment(&self, off: &Tensor<i32, 1>, e: i32) -> View<'a, T, R> {
        View::of(self.part(off, e))
    }
}

macro_rules! index {
    ($($rank:literal to $rest:literal;)*) => {$(
        impl<T: Elem> Tensor<T, $rank> {
            /// The tensor with axis `AX` fixed at `i`: one rank lower. Outside the axis, every coordinate of it is outside.
            #[must_use]
            pub fn index<const AX: usize>(&self, i: i32) -> View<'_, T, $rest>
            where
                Rank<$rank>: HasAxis<AX, $rank>,
            {
                View::of(self.fixed::<AX>(i))
            }

            /// The exclusive counterpart of `index`, for stores.
            #[must_use]
            pub fn index_mut<const AX: usize>(&mut self, i: i32) -> ViewMut<'_, T, $rest>
            where
                Rank<$rank>: HasAxis<AX, $rank>,
            {
                ViewMut::of(self.fixed::<AX>(i))
            }

            fn fixed<const AX: usize>(&self, i: i32) -> Tensor<T, $rest> {
                let kept = |axis: usize| if axis < AX { axis } else { axis + 1 };
                let inside = (0..self.extents[AX]).contains(&i);
                Tensor {
                    memory: self.memory.clone(),
                    offset: if inside { self.offset + i64::from(i) * self.strides[AX] } else { self.offset },
                    extents: std::array::from_fn(|axis| self.extents[kept(axis)]),
                    strides: std::array::from_fn(|axis| self.strides[kept(axis)]),
                    nowhere: self.nowhere || !inside,
                }
            }
        }

        impl<'a, T: Elem> View<'a, T, $rank> {
            /// The same as `index` of the tensor, but valid for as long as the tensor may be read.
            #[must_use]
            pub fn index<const AX: usize>(&self, i: i32) -> View<'a, T, $rest>
            where
                Rank<$rank>: HasAxis<AX, $rank>,
            {
                View::of(self.fixed::<AX>(i))
            }
        }
    )*};
}
index! { 2 to 1; 3 to 2; 4 to 3; 5 to 4; }
