//! The arguments of launches for tensors: the tensor, a view of it, or any other pointer to it.
//!
//! Launch functions are generic in these traits and do not take `&Tensor`, because deref coercion applies only if both types are
//! known: `kernel(&x.slice::<0>(0..2)?, ..)` would not compile otherwise.
//!
//! Types that borrow memory never return a `&mut Tensor`: `mem::replace` would move the tensor out, and it would outlive the borrow.
//! Exclusive access is an [`Exclusive`], through which nothing can be moved.

use super::tensor::Tensor;
use super::view::ViewMut;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Exclusive access to a tensor `X`, for a launch. It dereferences to `&X`, never to `&mut X`.
pub struct Exclusive<'a, X> {
    tensor: &'a mut X,
}

impl<'a, X> Exclusive<'a, X> {
    /// Access to this tensor.
    pub fn new(tensor: &'a mut X) -> Self {
        Exclusive { tensor }
    }

    /// The same access, for a shorter time.
    pub fn reborrow(&mut self) -> Exclusive<'_, X> {
        Exclusive { tensor: self.tensor }
    }

    /// The tensor, for code of this crate that moves nothing out of it.
    pub(super) fn into_mut(self) -> &'a mut X {
        self.tensor
    }
}

impl<X> Deref for Exclusive<'_, X> {
    type Target = X;
    fn deref(&self) -> &X {
        self.tensor
    }
}

impl<X: fmt::Debug> fmt::Debug for Exclusive<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

/// A type that gives shared access to a tensor `X`: a [`Tensor`], a [`View`](crate::View), a `ViewMut`, an `Arc<Tensor>`, a guard.
///
/// Inputs of launches are `&impl AsTensor<Tensor<T, R>>`.
#[diagnostic::on_unimplemented(
    message = "the kernel takes a `{X}` here, not a `{Self}`",
    label = "neither a `{X}` nor a view of one"
)]
pub trait AsTensor<X> {
    /// The tensor.
    fn as_tensor(&self) -> &X;
}

/// A type that gives exclusive access to a tensor `X`: a [`Tensor`], a [`ViewMut`], a guard of a lock.
///
/// Outputs of launches are `&mut impl AsTensorMut<Tensor<T, R>>`.
#[diagnostic::on_unimplemented(
    message = "the kernel writes a `{X}` here, not a `{Self}`",
    label = "neither a `{X}` nor a view of one that can be written"
)]
pub trait AsTensorMut<X> {
    /// Exclusive access to the tensor.
    fn as_tensor_mut(&mut self) -> Exclusive<'_, X>;
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize> AsTensor<Tensor<T, R>> for Tensor<T, R> {
    fn as_tensor(&self) -> &Tensor<T, R> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize, P: Deref<Target = Tensor<T, R>>> AsTensor<Tensor<T, R>> for P {
    fn as_tensor(&self) -> &Tensor<T, R> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize> AsTensorMut<Tensor<T, R>> for Tensor<T, R> {
    fn as_tensor_mut(&mut self) -> Exclusive<'_, Tensor<T, R>> {
        Exclusive::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize> AsTensorMut<Tensor<T, R>> for ViewMut<'_, T, R> {
    fn as_tensor_mut(&mut self) -> Exclusive<'_, Tensor<T, R>> {
        Exclusive::new(self.tensor_mut())
    }
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize, P: DerefMut<Target = Tensor<T, R>>> AsTensorMut<Tensor<T, R>> for P {
    fn as_tensor_mut(&mut self) -> Exclusive<'_, Tensor<T, R>> {
        Exclusive::new(self)
    }
}
