//! Tensors: typed handles to device memory, with extents and strides.

use super::as_tensor::AsTensor;
use super::buffer::{Access, Buffer, run_here};
use super::device::Device;
use super::footprint;
use super::layout::Layout;
use super::transfer;
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use titan_core::diag::counted;
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

    /// Elements without defined values under a row-major layout; the caller of the program answers for what is read.
    pub(crate) fn undefined(device: &Device, layout: Layout<R>) -> Result<Self> {
        Ok(Tensor::of(Buffer::undefined(device, T::ELEM.bytes_for(layout.len()))?, layout))
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

    /// Copies all elements to a slice, in row-major order, for any layout: [`Tensor::to_vec`] without new memory for the elements. Waits for
    /// the launches that write the tensor.
    ///
    /// # Errors
    /// If the slice has another number of elements (T1111); or the failure of such a launch, unless it has been reported. Of the slice, some
    /// elements may be overwritten then.
    pub fn read_into(&self, out: &mut [T]) -> Result<()> {
        if out.len() != self.len() {
            let problem = format!(
                "the slice has {}, but the tensor of shape {:?} has {}",
                counted(out.len(), "element"),
                self.shape(),
                self.len()
            );
            return Err(Error::Copy { operation: "read_into", problem, help: "pass a slice of as many elements" });
        }
        let read = || transfer::read_into(self.buffer.storage(), &self.layout, out);
        run_here("`read_into`", &[self.access(false)], read)
    }

    /// Overwrites all elements with those of another tensor or view of the same shape, of any layouts. The source may be on another
    /// device. Waits for the launches that use the tensor, and for those that write the source.
    ///
    /// ```
    /// let dev = titan::Device::cpu();
    /// let mut cache = dev.zeros::<f32, 2>([4, 3])?;
    /// let row = dev.tensor([1.0, 2.0, 3.0], [1, 3])?;
    /// cache.slice_mut::<0>(2..3)?.copy_from(&row)?;
    /// assert_eq!(cache.index::<0>(2)?.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), titan::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes differ (T1111), then nothing is written; or the failure of such a launch, unless it has been reported.
    pub fn copy_from(&mut self, source: &(impl AsTensor<Tensor<T, R>> + ?Sized)) -> Result<()> {
        let source = source.as_tensor();
        if source.shape() != self.shape() {
            let problem =
                format!("the source has the shape {:?}, but the tensor has {:?}", source.shape(), self.shape());
            let help = "copy from or to a part of the same shape, such as a `slice`, or `broadcast` the source";
            return Err(Error::Copy { operation: "copy_from", problem, help });
        }
        let accesses = [source.access(false), self.access(true)];
        let (from, to) = ((source.buffer.storage(), &source.layout), (self.buffer.storage(), &self.layout));
        run_here("`copy_from`", &accesses, || transfer::copy::<T, R>(from, to))
    }

    /// Overwrites all elements with this value. Waits for the launches that use the tensor.
    ///
    /// # Errors
    /// The failure of such a launch, unless it has been reported; then nothing is written.
    pub fn fill(&mut self, value: T) -> Result<()> {
        run_here("`fill`", &[self.access(true)], || transfer::fill(self.buffer.storage(), &self.layout, value))
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
