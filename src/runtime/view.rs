//! Views: tensors with the elements of another tensor and another layout, without a copy.
//!
//! A [`View`] borrows its origin and dereferences to the `&Tensor` that kernels take; a [`ViewMut`] borrows it exclusively, and has the
//! methods that write. It dereferences to `&Tensor` only: a tensor could be moved out of a `&mut Tensor`, and outlive the borrow. The
//! origin is a tensor, or foreign memory: a host slice or a slice of cudarc. Axes are constants, as in kernels. An invalid view is an
//! error, never a panic.

use super::as_tensor::AsTensor;
use super::pinned::{Pinned, Upload};
use super::stream::Stream;
use super::tensor::Tensor;
use crate::error::Result;
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

/// A shared view of a tensor or of foreign memory.
pub struct View<'a, T, const R: usize> {
    tensor: Tensor<T, R>,
    origin: PhantomData<&'a ()>,
}

/// An exclusive view of a tensor or of foreign memory.
pub struct ViewMut<'a, T, const R: usize> {
    tensor: Tensor<T, R>,
    origin: PhantomData<&'a mut ()>,
}

impl<T, const R: usize> View<'_, T, R> {
    /// Creates a view. The tensor must not outlive the borrow in another way.
    pub(super) fn new(tensor: Tensor<T, R>) -> Self {
        View { tensor, origin: PhantomData }
    }
}

impl<T, const R: usize> ViewMut<'_, T, R> {
    /// Creates an exclusive view. As for [`View::new`]; the view must be the only access to its elements.
    pub(super) fn new(tensor: Tensor<T, R>) -> Self {
        ViewMut { tensor, origin: PhantomData }
    }

    /// The tensor, for code of this crate that moves nothing out of it.
    pub(super) fn tensor_mut(&mut self) -> &mut Tensor<T, R> {
        &mut self.tensor
    }
}

impl<T, const R: usize> Deref for View<'_, T, R> {
    type Target = Tensor<T, R>;
    fn deref(&self) -> &Tensor<T, R> {
        &self.tensor
    }
}

impl<T, const R: usize> Deref for ViewMut<'_, T, R> {
    type Target = Tensor<T, R>;
    fn deref(&self) -> &Tensor<T, R> {
        &self.tensor
    }
}

impl<T: Elem, const R: usize> Clone for View<'_, T, R> {
    fn clone(&self) -> Self {
        View::new(self.tensor.with_layout(*self.tensor.layout()))
    }
}

impl<T: Elem, const R: usize> fmt::Debug for View<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

impl<T: Elem, const R: usize> fmt::Debug for ViewMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

/// The views of any rank, with `$lt` as the borrow of what they come from.
macro_rules! shared_views {
    ($lt:lifetime) => {
        /// The tensor with axes `A` and `B` swapped.
        ///
        /// # Errors
        /// For a 4-bit type, if one of them is the last axis.
        pub fn transpose<const A: usize, const B: usize>(&self) -> Result<View<$lt, T, R>> {
            const { assert!(A < R && B < R, "a tensor of this rank has no such axis") };
            Ok(View::new(self.with_layout(self.layout().transpose(A, B)?)))
        }

        /// The tensor with its axes reordered: axis `i` of the view is axis `axes[i]` of the tensor.
        ///
        /// # Errors
        /// If `axes` does not name every axis once.
        pub fn permute(&self, axes: [usize; R]) -> Result<View<$lt, T, R>> {
            Ok(View::new(self.with_layout(self.layout().permute(axes)?)))
        }

        /// The part of axis `AX` in `range`.
        ///
        /// # Errors
        /// If the range is not inside of the axis; for a 4-bit type, if it cuts a byte.
        pub fn slice<const AX: usize>(&self, range: Range<usize>) -> Result<View<$lt, T, R>> {
            const { assert!(AX < R, "a tensor of this rank has no such axis") };
            Ok(View::new(self.with_layout(self.layout().slice(AX, range.start, range.end)?)))
        }

        /// The two parts of the tensor before and from `at` along axis `AX`.
        ///
        /// # Errors
        /// If `at` is beyond the axis; for a 4-bit type, if it cuts a byte.
        pub fn split_at<const AX: usize>(&self, at: usize) -> Result<(View<$lt, T, R>, View<$lt, T, R>)> {
            const { assert!(AX < R, "a tensor of this rank has no such axis") };
            let (head, tail) = self.layout().split(AX, at)?;
            Ok((View::new(self.with_layout(head)), View::new(self.with_layout(tail))))
        }

        /// The tensor with other extents, for the same elements in row-major order. Any axis can be divided, such as the columns of a matrix
        /// into heads. Adjacent axes can be joined if their elements are equally far apart, as those of a row-major tensor and of its slices
        /// along axis 0.
        ///
        /// # Errors
        /// If the number of elements differs, or the axes cannot be joined: then `.copy()` first; for a 4-bit type, if it cuts a byte.
        pub fn reshape<const Q: usize>(&self, shape: [usize; Q]) -> Result<View<$lt, T, Q>> {
            Ok(View::new(self.with_layout(self.layout().reshape(shape)?)))
        }

        /// The tensor with axes of extent 1 repeated to the extents in `shape`, without using memory: their stride is 0.
        ///
        /// # Errors
        /// If another extent differs.
        pub fn broadcast(&self, shape: [usize; R]) -> Result<View<$lt, T, R>> {
            Ok(View::new(self.with_layout(self.layout().broadcast(shape)?)))
        }
    };
}

/// The exclusive views of a tensor, and of an exclusive view.
macro_rules! exclusive_views {
    () => {
        /// The whole tensor, to write.
        #[must_use]
        pub fn view_mut(&mut self) -> ViewMut<'_, T, R> {
            ViewMut::new(self.with_layout(*self.layout()))
        }

        /// The exclusive counterpart of [`Tensor::transpose`], for writing.
        ///
        /// # Errors
        /// The same as of [`Tensor::transpose`].
        pub fn transpose_mut<const A: usize, const B: usize>(&mut self) -> Result<ViewMut<'_, T, R>> {
            const { assert!(A < R && B < R, "a tensor of this rank has no such axis") };
            Ok(ViewMut::new(self.with_layout(self.layout().transpose(A, B)?)))
        }

        /// The exclusive counterpart of [`Tensor::permute`], for writing.
        ///
        /// # Errors
        /// The same as of [`Tensor::permute`].
        pub fn permute_mut(&mut self, axes: [usize; R]) -> Result<ViewMut<'_, T, R>> {
            Ok(ViewMut::new(self.with_layout(self.layout().permute(axes)?)))
        }

        /// The exclusive counterpart of [`Tensor::slice`], for writing.
        ///
        /// # Errors
        /// The same as of [`Tensor::slice`].
        pub fn slice_mut<const AX: usize>(&mut self, range: Range<usize>) -> Result<ViewMut<'_, T, R>> {
            const { assert!(AX < R, "a tensor of this rank has no such axis") };
            Ok(ViewMut::new(self.with_layout(self.layout().slice(AX, range.start, range.end)?)))
        }

        /// The exclusive counterpart of [`Tensor::split_at`], for writing: the parts share no element, so one launch may write both.
        ///
        /// # Errors
        /// The same as of [`Tensor::split_at`].
        pub fn split_at_mut<const AX: usize>(&mut self, at: usize) -> Result<(ViewMut<'_, T, R>, ViewMut<'_, T, R>)> {
            const { assert!(AX < R, "a tensor of this rank has no such axis") };
            let (head, tail) = self.layout().split(AX, at)?;
            Ok((ViewMut::new(self.with_layout(head)), ViewMut::new(self.with_layout(tail))))
        }

        /// The exclusive counterpart of [`Tensor::reshape`], for writing.
        ///
        /// # Errors
        /// The same as of [`Tensor::reshape`].
        pub fn reshape_mut<const Q: usize>(&mut self, shape: [usize; Q]) -> Result<ViewMut<'_, T, Q>> {
            Ok(ViewMut::new(self.with_layout(self.layout().reshape(shape)?)))
        }
    };
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// The whole tensor.
    #[must_use]
    pub fn view(&self) -> View<'_, T, R> {
        View::new(self.with_layout(*self.layout()))
    }

    shared_views!('_);
    exclusive_views!();
}

impl<T: Elem, const R: usize> ViewMut<'_, T, R> {
    exclusive_views!();

    /// Writes all elements, as [`Tensor::write`] does.
    ///
    /// # Errors
    /// The same as of [`Tensor::write`].
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        self.tensor.write(data)
    }

    /// Overwrites all elements with those of another tensor or view, as [`Tensor::copy_from`] does.
    ///
    /// # Errors
    /// The same as of [`Tensor::copy_from`].
    pub fn copy_from(&mut self, source: &(impl AsTensor<Tensor<T, R>> + ?Sized)) -> Result<()> {
        self.tensor.copy_from(source)
    }

    /// Overwrites all elements with this value, as [`Tensor::fill`] does.
    ///
    /// # Errors
    /// The same as of [`Tensor::fill`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.tensor.fill(value)
    }

    /// Copies elements of pinned memory without waiting, as [`Tensor::upload`] does.
    ///
    /// # Errors
    /// The same as of [`Tensor::upload`].
    pub fn upload(&mut self, from: Pinned<T>, stream: &Stream) -> Result<Upload<T>> {
        self.tensor.upload(from, stream)
    }
}

impl<'a, T: Elem, const R: usize> View<'a, T, R> {
    shared_views!('a);
}

/// The views that change the rank, from `$R` to `$Q` axes and back.
macro_rules! rank_views {
    ($($R:literal $Q:literal;)*) => {$(
        impl<T: Elem> Tensor<T, $R> {
            /// The view with axis `AX` fixed at `i`: one rank lower.
            ///
            /// # Errors
            /// If `i` is outside of the axis; for a 4-bit type, if the axis is the last one.
            pub fn index<const AX: usize>(&self, i: usize) -> Result<View<'_, T, $Q>> {
                const { assert!(AX < $R, "a tensor of this rank has no such axis") };
                Ok(View::new(self.with_layout(self.layout().index(AX, i)?)))
            }

            /// The exclusive counterpart of `index`, for writing.
            ///
            /// # Errors
            /// The same as of `index`.
            pub fn index_mut<const AX: usize>(&mut self, i: usize) -> Result<ViewMut<'_, T, $Q>> {
                const { assert!(AX < $R, "a tensor of this rank has no such axis") };
                Ok(ViewMut::new(self.with_layout(self.layout().index(AX, i)?)))
            }
        }

        impl<T: Elem> ViewMut<'_, T, $R> {
            /// The exclusive counterpart of `index`, for writing.
            ///
            /// # Errors
            /// The same as of `index`.
            pub fn index_mut<const AX: usize>(&mut self, i: usize) -> Result<ViewMut<'_, T, $Q>> {
                const { assert!(AX < $R, "a tensor of this rank has no such axis") };
                Ok(ViewMut::new(self.with_layout(self.layout().index(AX, i)?)))
            }
        }

        impl<'a, T: Elem> View<'a, T, $R> {
            /// The view with axis `AX` fixed at `i`: one rank lower.
            ///
            /// # Errors
            /// If `i` is outside of the axis; for a 4-bit type, if the axis is the last one.
            pub fn index<const AX: usize>(&self, i: usize) -> Result<View<'a, T, $Q>> {
                const { assert!(AX < $R, "a tensor of this rank has no such axis") };
                Ok(View::new(self.with_layout(self.layout().index(AX, i)?)))
            }
        }

        impl<T: Elem> Tensor<T, $Q> {
            /// The view with a new axis of extent 1 before axis `AX`, or after the last one: one rank higher.
            ///
            /// # Errors
            /// For a 4-bit type, if the new axis is the last one.
            pub fn unsqueeze<const AX: usize>(&self) -> Result<View<'_, T, $R>> {
                const { assert!(AX < $R, "a new axis goes before an axis or after the last one") };
                Ok(View::new(self.with_layout(self.layout().unsqueeze(AX)?)))
            }

            /// The exclusive counterpart of `unsqueeze`, for writing.
            ///
            /// # Errors
            /// The same as of `unsqueeze`.
            pub fn unsqueeze_mut<const AX: usize>(&mut self) -> Result<ViewMut<'_, T, $R>> {
                const { assert!(AX < $R, "a new axis goes before an axis or after the last one") };
                Ok(ViewMut::new(self.with_layout(self.layout().unsqueeze(AX)?)))
            }
        }

        impl<T: Elem> ViewMut<'_, T, $Q> {
            /// The exclusive counterpart of `unsqueeze`, for writing.
            ///
            /// # Errors
            /// The same as of `unsqueeze`.
            pub fn unsqueeze_mut<const AX: usize>(&mut self) -> Result<ViewMut<'_, T, $R>> {
                const { assert!(AX < $R, "a new axis goes before an axis or after the last one") };
                Ok(ViewMut::new(self.with_layout(self.layout().unsqueeze(AX)?)))
            }
        }

        impl<'a, T: Elem> View<'a, T, $Q> {
            /// The view with a new axis of extent 1 before axis `AX`, or after the last one: one rank higher.
            ///
            /// # Errors
            /// For a 4-bit type, if the new axis is the last one.
            pub fn unsqueeze<const AX: usize>(&self) -> Result<View<'a, T, $R>> {
                const { assert!(AX < $R, "a new axis goes before an axis or after the last one") };
                Ok(View::new(self.with_layout(self.layout().unsqueeze(AX)?)))
            }
        }
    )*};
}
rank_views! { 2 1; 3 2; 4 3; 5 4; 6 5; }
