//! Arguments of launches, with their types erased.

use super::as_tensor::Exclusive;
use super::buffer::{Access, Buffer};
use super::dyn_tensor::DynTensor;
use super::footprint::Footprint;
use super::layout::{Layout, MAX_RANK};
use super::tensor::Tensor;
use crate::lang::{Elem, bf16, f16};
use std::fmt;
use std::marker::PhantomData;
use titan_core::ir::{Const, Elem as ElemKind};
use titan_core::launch::ArgInfo;

/// One argument of a launch: a tensor by reference, an optional one, or a scalar by value.
///
/// It owns a handle to the memory, and borrows the tensor so that the launch does.
pub struct LaunchArg<'a> {
    pub(crate) value: ArgValue,
    borrow: PhantomData<&'a mut ()>,
}

/// The kind and value of an argument.
pub(crate) enum ArgValue {
    Tensor(Box<TensorArg>),
    Absent,
    Scalar(Const),
}

/// A tensor without its type.
pub(crate) struct TensorArg {
    pub(crate) buffer: Buffer,
    pub(crate) footprint: Footprint,
    pub(crate) elem: ElemKind,
    /// Whether the tensor was passed by `&mut`.
    pub(crate) exclusive: bool,
    /// The position of the first element, in bytes.
    pub(crate) offset: usize,
    rank: usize,
    extents: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
}

impl TensorArg {
    fn of<T: Elem, const R: usize>(tensor: &Tensor<T, R>, exclusive: bool) -> Self {
        let layout = tensor.layout();
        TensorArg::new(tensor.access(exclusive), T::ELEM, layout.offset, (&layout.shape, &layout.strides))
    }

    /// The part `access` of a buffer: elements from element `offset` on with these extents and strides.
    fn new(access: Access, elem: ElemKind, offset: usize, (shape, strides): (&[usize], &[usize])) -> Self {
        // Numbers of elements fit in `i64`: layouts refuse larger ones.
        let numbers = |from: &[usize]| {
            let mut padded = [0; MAX_RANK];
            padded.iter_mut().zip(from).for_each(|(p, n)| *p = i64::try_from(*n).unwrap_or(i64::MAX));
            padded
        };
        let Access { buffer, footprint, write } = access;
        TensorArg {
            buffer,
            footprint,
            elem,
            exclusive: write,
            offset: elem.bytes_for(offset),
            rank: shape.len(),
            extents: numbers(shape),
            strides: numbers(strides),
        }
    }

    /// The tensor, for the reference: a handle to the same memory. The launch has been checked, so that type and rank are the argument's.
    pub(super) fn tensor<T: Elem, const R: usize>(&self) -> Tensor<T, R> {
        let numbers =
            |from: &[i64]| std::array::from_fn(|i| from.get(i).map_or(0, |n| usize::try_from(*n).unwrap_or(0)));
        // Elements of less than a byte begin at a whole one.
        let offset = self.offset * 8 / T::ELEM.bits() as usize;
        let layout = Layout { elem: T::ELEM, offset, shape: numbers(self.extents()), strides: numbers(self.strides()) };
        Tensor::of(self.buffer.clone(), layout)
    }

    pub(crate) fn extents(&self) -> &[i64] {
        &self.extents[..self.rank]
    }

    pub(crate) fn strides(&self) -> &[i64] {
        &self.strides[..self.rank]
    }
}

impl ArgValue {
    /// The information for the check against the signature.
    pub(crate) fn info(&self) -> ArgInfo<'_> {
        match self {
            ArgValue::Tensor(t) => ArgInfo::Tensor { elem: t.elem, extents: t.extents(), strides: t.strides() },
            ArgValue::Absent => ArgInfo::Absent,
            ArgValue::Scalar(value) => ArgInfo::Scalar(*value),
        }
    }

    /// The tensor, if it is one.
    pub(crate) fn tensor(&self) -> Option<&TensorArg> {
        match self {
            ArgValue::Tensor(tensor) => Some(tensor),
            ArgValue::Absent | ArgValue::Scalar(_) => None,
        }
    }
}

impl LaunchArg<'_> {
    fn new(value: ArgValue) -> Self {
        LaunchArg { value, borrow: PhantomData }
    }

    /// An optional tensor that is absent.
    pub(super) fn absent() -> Self {
        LaunchArg::new(ArgValue::Absent)
    }
}

impl<'a, T: Elem, const R: usize> From<&'a Tensor<T, R>> for LaunchArg<'a> {
    fn from(tensor: &'a Tensor<T, R>) -> Self {
        LaunchArg::new(ArgValue::Tensor(Box::new(TensorArg::of(tensor, false))))
    }
}

impl<'a, T: Elem, const R: usize> From<&'a mut Tensor<T, R>> for LaunchArg<'a> {
    fn from(tensor: &'a mut Tensor<T, R>) -> Self {
        LaunchArg::new(ArgValue::Tensor(Box::new(TensorArg::of(tensor, true))))
    }
}

impl<'a, T: Elem, const R: usize> From<Exclusive<'a, Tensor<T, R>>> for LaunchArg<'a> {
    fn from(tensor: Exclusive<'a, Tensor<T, R>>) -> Self {
        LaunchArg::from(tensor.into_mut())
    }
}

impl<'a> From<&'a DynTensor> for LaunchArg<'a> {
    fn from(tensor: &'a DynTensor) -> Self {
        let whole =
            TensorArg::new(tensor.access(false), tensor.elem(), tensor.offset(), (tensor.shape(), tensor.strides()));
        LaunchArg::new(ArgValue::Tensor(Box::new(whole)))
    }
}

impl<'a> From<&'a mut DynTensor> for LaunchArg<'a> {
    fn from(tensor: &'a mut DynTensor) -> Self {
        let whole =
            TensorArg::new(tensor.access(true), tensor.elem(), tensor.offset(), (tensor.shape(), tensor.strides()));
        LaunchArg::new(ArgValue::Tensor(Box::new(whole)))
    }
}

impl<'a, T: Elem, const R: usize> From<Option<&'a Tensor<T, R>>> for LaunchArg<'a> {
    fn from(tensor: Option<&'a Tensor<T, R>>) -> Self {
        tensor.map_or_else(LaunchArg::absent, LaunchArg::from)
    }
}

impl<'a, T: Elem, const R: usize> From<Option<&'a mut Tensor<T, R>>> for LaunchArg<'a> {
    fn from(tensor: Option<&'a mut Tensor<T, R>>) -> Self {
        tensor.map_or_else(LaunchArg::absent, LaunchArg::from)
    }
}

macro_rules! scalars {
    ($case:ident $via:ty: $($t:ty)*) => {$(
        impl From<$t> for LaunchArg<'_> {
            fn from(value: $t) -> Self {
                LaunchArg::new(ArgValue::Scalar(Const::$case(<$t>::ELEM, <$via>::from(value))))
            }
        }
    )*};
}
scalars!(Int i64: i64 i32 i16 i8 u32 u16 u8 bool);
scalars!(Float f64: f64 f32 f16 bf16);

impl From<u64> for LaunchArg<'_> {
    /// The bits: `Const` has one integer type.
    fn from(value: u64) -> Self {
        LaunchArg::new(ArgValue::Scalar(Const::Int(u64::ELEM, value.cast_signed())))
    }
}

impl fmt::Debug for LaunchArg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            ArgValue::Tensor(t) => {
                write!(f, "{}{}{:?}", if t.exclusive { "mut " } else { "" }, t.elem, t.extents())
            }
            ArgValue::Absent => f.write_str("None"),
            ArgValue::Scalar(Const::Int(elem, v)) => write!(f, "{v}{elem}"),
            ArgValue::Scalar(Const::Float(elem, v)) => write!(f, "{v}{elem}"),
        }
    }
}
