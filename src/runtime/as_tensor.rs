//! The arguments of launches for tensors: the tensor, a view of it, or any other pointer to it; for `dispatch!` also a tensor whose
//! element type is known only at run time.
//!
//! Launch functions are generic in these traits and do not take `&Tensor`, because deref coercion applies only if both types are
//! known: `kernel(&x.slice::<0>(0..2)?, ..)` would not compile otherwise.
//!
//! Types that borrow memory never return a `&mut Tensor`: `mem::replace` would move the tensor out, and it would outlive the borrow.
//! Exclusive access is an [`Exclusive`], through which nothing can be moved.

use super::arg::LaunchArg;
use super::dyn_tensor::DynTensor;
use super::tensor::Tensor;
use super::view::ViewMut;
use crate::lang::Elem;
use std::fmt;
use std::ops::{Deref, DerefMut};
use titan_core::ir::Elem as ElemType;

/// Exclusive access to a tensor `X`, for a launch. It dereferences to `&X`, never to `&mut X`.
pub struct Exclusive<'a, X> {
    tensor: &'a mut X,
}

impl<'a, X> Exclusive<'a, X> {
    /// Access to this tensor.
    #[must_use]
    pub fn new(tensor: &'a mut X) -> Self {
        Exclusive { tensor }
    }

    /// The same access, for a shorter time.
    #[must_use]
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

/// What keeps other crates from implementing the traits of `dispatch!`, whose methods change.
mod sealed {
    use super::{Absent, Deref, DynTensor, Tensor};

    pub trait Pointer {}
    impl<T, const R: usize> Pointer for Tensor<T, R> {}
    impl Pointer for DynTensor {}
    impl<P: Deref> Pointer for P {}

    pub trait Optional {}
    impl Optional for Absent {}
    impl<X> Optional for Option<X> {}
}

/// Any element type, in [`AnyTensor`].
#[derive(Clone, Copy, Debug)]
pub enum AnyElem {}

/// A type that gives shared access to a tensor for `dispatch!`: what [`AsTensor`] takes, and a [`DynTensor`]. `E` is the element
/// type that the parameter has, or [`AnyElem`] where it depends on the instance.
///
/// A `DynTensor` is accepted for every `E` and `R`; the launch checks its element type and rank. Types implement it by dereferencing to one that
/// does.
#[diagnostic::on_unimplemented(
    message = "the kernel takes a tensor of rank {R} here, of elements `{E}`, not a `{Self}`",
    label = "not such a tensor, a view of one, or a `DynTensor`"
)]
pub trait AnyTensor<E, const R: usize>: sealed::Pointer {
    /// The element type.
    fn elem(&self) -> ElemType;

    #[doc(hidden)]
    fn launch_arg(&self) -> LaunchArg<'_>;
}

/// A type that gives exclusive access to a tensor for `dispatch!`: what [`AsTensorMut`] takes, and a [`DynTensor`]. `E` and `R` are
/// those of [`AnyTensor`].
#[diagnostic::on_unimplemented(
    message = "the kernel writes a tensor of rank {R} here, of elements `{E}`, not a `{Self}`",
    label = "not such a tensor, a view of one that can be written, or a `DynTensor`"
)]
pub trait AnyTensorMut<E, const R: usize>: sealed::Pointer {
    /// The element type.
    fn elem(&self) -> ElemType;

    #[doc(hidden)]
    fn launch_arg_mut(&mut self) -> LaunchArg<'_>;
}

/// An optional tensor for `dispatch!`: `Some` of a reference to what [`AnyTensor`] takes, or `None`.
#[diagnostic::on_unimplemented(
    message = "the kernel takes an optional tensor of rank {R} here, of elements `{E}`, not a `{Self}`",
    label = "neither `None` nor `Some(&tensor)` of such a tensor"
)]
pub trait AnyOption<'a, E, const R: usize>: sealed::Optional {
    #[doc(hidden)]
    fn launch_arg(self) -> LaunchArg<'a>;
}

/// An optional output for `dispatch!`: `Some` of an exclusive reference to what [`AnyTensorMut`] takes, or `None`.
#[diagnostic::on_unimplemented(
    message = "the kernel writes an optional tensor of rank {R} here, of elements `{E}`, not a `{Self}`",
    label = "neither `None` nor `Some(&mut tensor)` of such a tensor"
)]
pub trait AnyOptionMut<'a, E, const R: usize>: sealed::Optional {
    #[doc(hidden)]
    fn launch_arg_mut(self) -> LaunchArg<'a>;
}

/// `None` as it is written as an argument of `dispatch!`: the type of the tensor does not matter.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Absent;

#[diagnostic::do_not_recommend]
impl<'a, E, const R: usize> AnyOption<'a, E, R> for Absent {
    fn launch_arg(self) -> LaunchArg<'a> {
        LaunchArg::absent()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, E, const R: usize> AnyOptionMut<'a, E, R> for Absent {
    fn launch_arg_mut(self) -> LaunchArg<'a> {
        LaunchArg::absent()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, E, const R: usize, X: AnyTensorMut<E, R> + ?Sized> AnyOptionMut<'a, E, R> for Option<&'a mut X> {
    fn launch_arg_mut(self) -> LaunchArg<'a> {
        self.map_or_else(LaunchArg::absent, AnyTensorMut::launch_arg_mut)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, E, const R: usize, X: AnyTensor<E, R> + ?Sized> AnyOption<'a, E, R> for Option<&'a X> {
    fn launch_arg(self) -> LaunchArg<'a> {
        self.map_or_else(LaunchArg::absent, AnyTensor::launch_arg)
    }
}

/// The traits of tensors and of types that dereference to them, for an element type parameter that is `$elem`.
macro_rules! any_tensor {
    ($elem:ty) => {
        #[diagnostic::do_not_recommend]
        impl<T: Elem, const R: usize> AnyTensor<$elem, R> for Tensor<T, R> {
            fn elem(&self) -> ElemType {
                T::ELEM
            }
            fn launch_arg(&self) -> LaunchArg<'_> {
                self.into()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Elem, const R: usize> AnyTensorMut<$elem, R> for Tensor<T, R> {
            fn elem(&self) -> ElemType {
                T::ELEM
            }
            fn launch_arg_mut(&mut self) -> LaunchArg<'_> {
                self.into()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Elem, const R: usize> AnyTensorMut<$elem, R> for ViewMut<'_, T, R> {
            fn elem(&self) -> ElemType {
                T::ELEM
            }
            fn launch_arg_mut(&mut self) -> LaunchArg<'_> {
                self.tensor_mut().into()
            }
        }
    };
}
any_tensor!(T);
any_tensor!(AnyElem);

#[diagnostic::do_not_recommend]
impl<E, const R: usize> AnyTensor<E, R> for DynTensor {
    fn elem(&self) -> ElemType {
        DynTensor::elem(self)
    }
    fn launch_arg(&self) -> LaunchArg<'_> {
        self.into()
    }
}

#[diagnostic::do_not_recommend]
impl<E, const R: usize> AnyTensorMut<E, R> for DynTensor {
    fn elem(&self) -> ElemType {
        DynTensor::elem(self)
    }
    fn launch_arg_mut(&mut self) -> LaunchArg<'_> {
        self.into()
    }
}

#[diagnostic::do_not_recommend]
impl<E, const R: usize, P: Deref<Target: AnyTensor<E, R>>> AnyTensor<E, R> for P {
    fn elem(&self) -> ElemType {
        (**self).elem()
    }
    fn launch_arg(&self) -> LaunchArg<'_> {
        (**self).launch_arg()
    }
}

#[diagnostic::do_not_recommend]
impl<E, const R: usize, P: DerefMut<Target: AnyTensorMut<E, R>>> AnyTensorMut<E, R> for P {
    fn elem(&self) -> ElemType {
        (**self).elem()
    }
    fn launch_arg_mut(&mut self) -> LaunchArg<'_> {
        (**self).launch_arg_mut()
    }
}
