//! Tensors: typed handles to device memory, with extents and strides.

use super::buffer::{Access, Buffer, run_here};
use super::device::Device;
use super::footprint;
use super::layout::Layout;
use super::transfer;
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use titan_core::ir::Elem as ElemType;

/// Elements of type `T` in the memory of a device, under `R` axes.
///
/// A new tensor is row-major: the last axis is contiguous. There is no `Clone`, because a `&mut Tensor` is exclusive access to its
/// elements: [`Tensor::copy`] makes a tensor with new memory, and views (`slice`, `transpose`, …) borrow. The memory is freed when the
/// tensor has been dropped and every launch that uses it has ended.
///
/// Reads and writes by the host wait for the launches that use the tensor.
///
/// ```
/// let dev = titan::Device::cpu();
/// let x = dev.from_fn([2, 3], |[i, j]| 10 * i as i32 + j as i32)?;
/// assert_eq!(x.slice::<1>(1..3)?.transpose::<0, 1>()?.to_vec()?, [1, 11, 2, 12]);
/// # Ok::<(), titan::Error>(())
/// ```
pub struct Tensor<T, const R: usize> {
    buffer: Buffer,
    layout: Layout<R>,
    elem: PhantomData<fn() -> T>,
}

impl<T: Elem, const R: usize> Tensor<T, R> {
    /// Zeros under a row-major layout.
    pub(crate) fn zeroed(device: &Device, layout: Layout<R>) -> Result<Self> {
        Ok(Tensor::of(Buffer::zeroed(device, T::ELEM.bytes_for(layout.len()))?, layout))
    }

    /// Undefined elements under a row-major layout, for callers that write all of them next.
    pub(crate) fn unwritten(device: &Device, layout: Layout<R>) -> Result<Self> {
        Ok(Tensor::of(Buffer::unwritten(device, T::ELEM.bytes_for(layout.len()))?, layout))
    }

    /// The elements of a buffer under a layout, which lies inside of it.
    pub(crate) fn of(buffer: Buffer, layout: Layout<R>) -> Self {
        Tensor { buffer, layout, elem: PhantomData }
    }

    /// The same memory under another layout, which lies inside of this one's.
    pub(crate) fn with_layout<const Q: usize>(&self, layout: Layout<Q>) -> Tensor<T, Q> {
        Tensor { buffer: self.buffer.clone(), layout, elem: PhantomData }
    }

    /// The element type as a value, for `dispatch!`.
    #[must_use]
    pub fn elem(&self) -> ElemType {
        T::ELEM
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> [usize; R] {
        self.layout.shape
    }

    /// The distance of the next element along each axis, in elements; 0 along a broadcast axis.
    #[must_use]
    pub fn strides(&self) -> [usize; R] {
        self.layout.strides
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether an extent is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements are contiguous, in row-major order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// The device whose memory holds the elements.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// All elements in row-major order, for any layout. Waits for the launches that write the tensor.
    ///
    /// # Errors
    /// The failure of such a launch, unless it has been reported.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        run_here("`to_vec`", &[self.access(false)], || transfer::read(self.buffer.storage(), &self.layout))
    }

    /// Overwrites all elements with these, given in row-major order. Waits for the launches that use the tensor.
    ///
    /// # Errors
    /// If the number of elements differs, or the failure of such a launch, unless it has been reported; then nothing is
    /// written.
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        if data.len() != self.len() {
            let shape = self.shape().to_vec();
            return Err(Error::ElementCount { found: data.len(), shape, expected: self.len() });
        }
        run_here("`write`", &[self.access(true)], || transfer::write(self.buffer.storage(), &self.layout, data))
    }

    /// A row-major tensor with the same elements in new memory.
    ///
    /// # Errors
    /// The same as of [`Tensor::to_vec`]; also if there is not enough memory.
    pub fn copy(&self) -> Result<Tensor<T, R>> {
        self.to_device(self.device())
    }

    /// Copies as [`Tensor::copy`] does, to another device or the same one.
    ///
    /// # Errors
    /// The same as of [`Tensor::to_vec`]; also if there is not enough memory.
    pub fn to_device(&self, device: &Device) -> Result<Tensor<T, R>> {
        device.tensor(&self.to_vec()?, self.shape())
    }

    pub(crate) fn layout(&self) -> &Layout<R> {
        &self.layout
    }

    pub(crate) fn access(&self, write: bool) -> Access {
        Access { buffer: self.buffer.clone(), footprint: footprint::of(&self.layout), write }
    }
}

impl<T: Elem, const R: usize> fmt::Debug for Tensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?}", T::ELEM, self.shape())?;
        if !self.is_contiguous() {
            write!(f, " with strides {:?}", self.strides())?;
        }
        write!(f, " on {}", self.device())
    }
}
