//! What a launch takes for a tensor: the tensor, a view of it, or any other pointer to it.
//!
//! Launch functions are generic in this rather than in `&Tensor`, because Rust looks through `Deref` only where it knows
//! both types: `kernel(&x.slice::<0>(0..2)?, ..)` would not compile otherwise.

use super::tensor::Tensor;
use std::ops::{Deref, DerefMut};

/// Something that shows a tensor `X`: a [`Tensor`], a [`View`](crate::View), a `ViewMut`, an `Arc<Tensor>`, a guard.
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

/// Something that shows a tensor `X` and lets it be written: a [`Tensor`], a [`ViewMut`](crate::ViewMut), a guard.
///
/// Outputs of launches are `&mut impl AsTensorMut<Tensor<T, R>>`.
#[diagnostic::on_unimplemented(
    message = "the kernel writes a `{X}` here, not a `{Self}`",
    label = "neither a `{X}` nor a view of one that can be written"
)]
pub trait AsTensorMut<X> {
    /// The tensor.
    fn as_tensor_mut(&mut self) -> &mut X;
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
    fn as_tensor_mut(&mut self) -> &mut Tensor<T, R> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T, const R: usize, P: DerefMut<Target = Tensor<T, R>>> AsTensorMut<Tensor<T, R>> for P {
    fn as_tensor_mut(&mut self) -> &mut Tensor<T, R> {
        self
    }
}
