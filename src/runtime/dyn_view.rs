//! Views whose element type and rank are known only at run time: what is borrowed of frameworks, and the shape that a kernel takes it in.
//!
//! A [`DynView`] is to a [`DynTensor`] what a [`View`] is to a tensor: it borrows its origin, a tensor or foreign memory, and `dispatch!` takes
//! it. As there, a [`DynViewMut`] dereferences to a shared reference only, because a tensor could be moved out of a `&mut DynTensor` and
//! outlive the borrow. Deliberately absent: operations on elements, for which `view` gives it a type.

use super::arg::LaunchArg;
use super::as_tensor::AnyTensorMut;
use super::dyn_tensor::{DynTensor, padded_row_major};
use super::layout::{Layout, MAX_RANK};
use super::tensor::Tensor;
use super::view::{View, ViewMut};
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use titan_core::diag::counted;
use titan_core::ir::Elem as ElemType;

/// A shared view of an element type and a rank of run time.
pub struct DynView<'a> {
    tensor: DynTensor,
    origin: PhantomData<&'a ()>,
}

/// An exclusive view of an element type and a rank of run time.
pub struct DynViewMut<'a> {
    tensor: DynTensor,
    origin: PhantomData<&'a mut ()>,
}

impl DynTensor {
    /// The whole tensor, to read; the views of a [`DynView`] reshape it.
    #[must_use]
    pub fn as_view(&self) -> DynView<'_> {
        DynView::new(self.handle())
    }

    /// The whole tensor, to write.
    #[must_use]
    pub fn as_view_mut(&mut self) -> DynViewMut<'_> {
        DynViewMut::new(self.handle())
    }

    /// The same memory under the same layout. It must not outlive the borrow.
    fn handle(&self) -> DynTensor {
        let (buffer, layout) = self.parts();
        DynTensor::of(buffer.clone(), self.rank(), *layout)
    }

    /// The same memory under another layout.
    fn with(&self, rank: usize, layout: Layout<MAX_RANK>) -> DynTensor {
        DynTensor::of(self.parts().0.clone(), rank, layout)
    }

    /// The tensor with other extents.
    fn reshaped(&self, shape: &[usize]) -> Result<DynTensor> {
        let (rank, target) = padded_row_major(self.elem(), shape)?;
        let refuse = |problem, help| Err(Error::Layout { operation: "reshape", problem, help });
        if target.len() != self.len() {
            let problem =
                format!("{shape:?} does not have the {} of {:?}", counted(self.len(), "element"), self.shape());
            return refuse(problem, "choose extents whose product is the number of elements");
        }
        match self.parts().1.reshape(target.shape) {
            Ok(layout) => Ok(self.with(rank, layout)),
            // In the words of the caller, whose tensor has fewer axes than the layout.
            Err(_) => {
                let (found, strides) = (self.shape(), self.strides());
                let problem =
                    format!("a tensor of shape {found:?} with strides {strides:?} has no such view {shape:?}");
                refuse(problem, "join only axes whose elements are equally far apart, or copy the tensor first")
            }
        }
    }

    /// The tensor with this many axes.
    fn ranked(&self, rank: usize) -> Result<DynTensor> {
        let shape = self.shape();
        if let Some(wider) = self.widened(rank) {
            return Ok(wider);
        }
        let Some(joined) = shape.len().checked_sub(rank) else {
            let ones = std::iter::repeat_n(1, rank - shape.len());
            return self.reshaped(&ones.chain(shape.iter().copied()).collect::<Vec<_>>());
        };
        if joined == 0 {
            return Ok(self.handle());
        }
        if rank == 0 {
            return self.reshaped(&[]);
        }
        let (first, rest) = shape.split_at(joined + 1);
        // The tensor exists, so its extents have a product, unless one is 0.
        let outer = first.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).unwrap_or(0);
        self.reshaped(&std::iter::once(outer).chain(rest.iter().copied()).collect::<Vec<_>>())
    }

    /// The tensor with more axes, if only axes of extent 1 in front have to be named: the layout has them already. As if it were reshaped, their
    /// stride is the distance to where another such tensor would begin.
    fn widened(&self, rank: usize) -> Option<DynTensor> {
        let mut layout = *self.parts().1;
        let first = layout.shape.iter().position(|n| *n != 1)?;
        if rank < self.rank() || rank > MAX_RANK || layout.shape[first..].iter().any(|n| *n < 2) {
            return None;
        }
        let next = layout.shape[first].checked_mul(layout.strides[first])?;
        layout.strides[..first].fill(next);
        Some(self.with(rank, layout))
    }

    /// The tensor with its axes in another order.
    fn permuted(&self, axes: &[usize]) -> Result<DynTensor> {
        let (rank, first) = (self.rank(), MAX_RANK - self.rank());
        let mut all: [usize; MAX_RANK] = std::array::from_fn(|axis| axis);
        let named = (0..rank).all(|axis| axes.contains(&axis));
        if axes.len() != rank || !named {
            let problem = format!("{axes:?} does not name each of the axes 0 to {} once", rank.saturating_sub(1));
            let help = "list every axis exactly once, in the new order";
            return Err(Error::Layout { operation: "permute", problem, help });
        }
        all[first..].iter_mut().zip(axes).for_each(|(to, axis)| *to = first + axis);
        Ok(self.with(rank, self.parts().1.permute(all)?))
    }

    /// A part of an axis.
    fn sliced(&self, axis: usize, range: Range<usize>) -> Result<DynTensor> {
        let rank = self.rank();
        if axis >= rank {
            let problem = format!("a tensor of shape {:?} has no axis {axis}", self.shape());
            return Err(Error::Layout { operation: "slice", problem, help: "pass an axis below the rank" });
        }
        let layout = self.parts().1.slice(MAX_RANK - rank + axis, range.start, range.end)?;
        Ok(self.with(rank, layout))
    }

    /// The same bytes as elements of another type, which is not wider.
    fn bits(&self, elem: ElemType) -> Result<DynTensor> {
        let layout = *self.parts().1;
        let (from, to) = (self.elem(), elem);
        let refuse = |problem, help| Err(Error::Layout { operation: "bits_as", problem, help });
        if !any_bits(from) || !any_bits(to) || to.bits() > from.bits() {
            let problem = format!("elements of type `{from}` are not elements of type `{to}`");
            return refuse(problem, "name an element type that is not wider, and of which any bits are a value");
        }
        // Both are powers of two.
        let ratio = (from.bits() / to.bits()) as usize;
        let last = MAX_RANK - 1;
        if ratio > 1 && (self.rank() == 0 || layout.shape[last] != 1 && layout.strides[last] != 1) {
            let problem = format!(
                "the last axis of shape {:?} with strides {:?} is not contiguous",
                self.shape(),
                self.strides()
            );
            return refuse(problem, "pass a tensor whose last axis has the stride 1");
        }
        let mut shape = layout.shape;
        // A tensor that repeats its elements may have more of them than its memory.
        let fits = self.len().checked_mul(ratio).is_some_and(|n| i64::try_from(n).is_ok());
        let Some(longer) = shape[last].checked_mul(ratio).filter(|_| fits) else {
            return Err(Error::TooLarge { shape: self.shape().to_vec() });
        };
        shape[last] = longer;
        let mut strides = layout.strides.map(|stride| stride.saturating_mul(ratio));
        strides[last] = if ratio > 1 { 1 } else { layout.strides[last] };
        let offset = layout.offset * ratio;
        Ok(self.with(self.rank(), Layout { elem, offset, shape, strides }.packed("bits_as")?))
    }
}

/// Whether any bits are a value of the type.
fn any_bits(elem: ElemType) -> bool {
    match elem {
        ElemType::Bool | ElemType::Tf32 => false,
        ElemType::F64
        | ElemType::F32
        | ElemType::F16
        | ElemType::Bf16
        | ElemType::E4m3
        | ElemType::E5m2
        | ElemType::I64
        | ElemType::I32
        | ElemType::I16
        | ElemType::I8
        | ElemType::I4
        | ElemType::U64
        | ElemType::U32
        | ElemType::U16
        | ElemType::U8
        | ElemType::U4 => true,
    }
}

impl<'a> DynView<'a> {
    /// A view of this tensor, which must not outlive the borrow in another way.
    pub(super) fn new(tensor: DynTensor) -> Self {
        DynView { tensor, origin: PhantomData }
    }

    /// The tensor as one of its element type and rank.
    ///
    /// # Errors
    /// If they are others (T1102).
    pub fn view<T: Elem, const R: usize>(&self) -> Result<View<'a, T, R>> {
        self.tensor.handle().into_tensor().map(View::new)
    }

    /// The tensor with other extents, for the same elements in row-major order: see [`Tensor::reshape`].
    ///
    /// # Errors
    /// If the number of elements differs, or axes are joined whose elements are not equally far apart; if the rank is more than 8.
    pub fn reshape(&self, shape: &[usize]) -> Result<DynView<'a>> {
        self.tensor.reshaped(shape).map(DynView::new)
    }

    /// The tensor with this many axes: axes of extent 1 before the others, or the first axes joined, such as batch and sequence.
    ///
    /// # Errors
    /// As of [`DynView::reshape`].
    pub fn with_rank(&self, rank: usize) -> Result<DynView<'a>> {
        self.tensor.ranked(rank).map(DynView::new)
    }

    /// The tensor with its axes reordered: axis `i` of the view is axis `axes[i]` of the tensor.
    ///
    /// # Errors
    /// If `axes` does not name every axis once; for a 4-bit type, if it moves the last axis.
    pub fn permute(&self, axes: &[usize]) -> Result<DynView<'a>> {
        self.tensor.permuted(axes).map(DynView::new)
    }

    /// The part of an axis in `range`.
    ///
    /// # Errors
    /// If there is no such axis, or the range is not inside of it; for a 4-bit type, if it cuts a byte.
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<DynView<'a>> {
        self.tensor.sliced(axis, range).map(DynView::new)
    }

    /// The same bytes as elements of another type that is not wider, such as bytes that hold 8-bit floats, or pairs of 4-bit codes with the
    /// lower index low. The last axis gets longer by the ratio of the widths.
    ///
    /// # Errors
    /// If the type is wider, or one of the two is `bool` or `tf32`, of which not all bits are values; if the last axis is not contiguous and the
    /// type is narrower.
    pub fn bits_as(&self, elem: ElemType) -> Result<DynView<'a>> {
        self.tensor.bits(elem).map(DynView::new)
    }
}

impl<'a> DynViewMut<'a> {
    /// An exclusive view of this tensor. As for [`DynView::new`]; the view must be the only access to its elements.
    pub(super) fn new(tensor: DynTensor) -> Self {
        DynViewMut { tensor, origin: PhantomData }
    }

    /// The view, to read from now on.
    #[must_use]
    pub fn into_shared(self) -> DynView<'a> {
        DynView::new(self.tensor)
    }

    /// The tensor as one of its element type and rank, to write.
    ///
    /// # Errors
    /// If they are others (T1102).
    pub fn view_mut<T: Elem, const R: usize>(&mut self) -> Result<ViewMut<'_, T, R>> {
        self.tensor.handle().into_tensor().map(ViewMut::new)
    }

    /// The exclusive counterpart of [`DynView::reshape`], for writing.
    ///
    /// # Errors
    /// As of [`DynView::reshape`].
    pub fn reshape_mut(&mut self, shape: &[usize]) -> Result<DynViewMut<'_>> {
        self.tensor.reshaped(shape).map(DynViewMut::new)
    }

    /// The exclusive counterpart of [`DynView::with_rank`], for writing.
    ///
    /// # Errors
    /// As of [`DynView::with_rank`].
    pub fn with_rank_mut(&mut self, rank: usize) -> Result<DynViewMut<'_>> {
        self.tensor.ranked(rank).map(DynViewMut::new)
    }

    /// The exclusive counterpart of [`DynView::permute`], for writing.
    ///
    /// # Errors
    /// As of [`DynView::permute`].
    pub fn permute_mut(&mut self, axes: &[usize]) -> Result<DynViewMut<'_>> {
        self.tensor.permuted(axes).map(DynViewMut::new)
    }

    /// The exclusive counterpart of [`DynView::bits_as`], for writing.
    ///
    /// # Errors
    /// As of [`DynView::bits_as`].
    pub fn bits_as_mut(&mut self, elem: ElemType) -> Result<DynViewMut<'_>> {
        self.tensor.bits(elem).map(DynViewMut::new)
    }

    /// The exclusive counterpart of [`DynView::slice`], for writing.
    ///
    /// # Errors
    /// As of [`DynView::slice`].
    pub fn slice_mut(&mut self, axis: usize, range: Range<usize>) -> Result<DynViewMut<'_>> {
        self.tensor.sliced(axis, range).map(DynViewMut::new)
    }
}

impl Deref for DynView<'_> {
    type Target = DynTensor;
    fn deref(&self) -> &DynTensor {
        &self.tensor
    }
}

impl Deref for DynViewMut<'_> {
    type Target = DynTensor;
    fn deref(&self) -> &DynTensor {
        &self.tensor
    }
}

impl Clone for DynView<'_> {
    fn clone(&self) -> Self {
        DynView::new(self.tensor.handle())
    }
}

impl<'a, T: Elem, const R: usize> From<View<'a, T, R>> for DynView<'a> {
    fn from(view: View<'a, T, R>) -> Self {
        DynView::new(typed(&view).into())
    }
}

impl<'a, T: Elem, const R: usize> From<ViewMut<'a, T, R>> for DynViewMut<'a> {
    fn from(view: ViewMut<'a, T, R>) -> Self {
        DynViewMut::new(typed(&view).into())
    }
}

/// Another handle of the same tensor, for one that the caller drops.
fn typed<T: Elem, const R: usize>(tensor: &Tensor<T, R>) -> Tensor<T, R> {
    tensor.with_layout(*tensor.layout())
}

#[diagnostic::do_not_recommend]
impl<E, const R: usize> AnyTensorMut<E, R> for DynViewMut<'_> {
    fn elem(&self) -> ElemType {
        self.tensor.elem()
    }
    fn launch_arg_mut(&mut self) -> LaunchArg<'_> {
        (&mut self.tensor).into()
    }
}

impl fmt::Debug for DynView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

impl fmt::Debug for DynViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}
