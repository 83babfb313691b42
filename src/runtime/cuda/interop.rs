//! Device slices of cudarc as tensors, and tensors lent to its streams.
//!
//! Borrowed slices are a [`View`] or a [`ViewMut`] whose drop has no effect: each launch, when it has been enqueued, makes the slice's
//! stream wait for it and records the event by which cudarc's other streams wait for uses of the slice. Only types of cudarc are
//! accepted, because its traits are safe to implement: another type could return an address that is freed afterwards.

use super::super::as_tensor::{AsTensor, AsTensorMut};
use super::super::backend;
use super::super::buffer::Buffer;
use super::super::device::Device;
use super::super::dyn_tensor::DynTensor;
use super::super::dyn_view::{DynView, DynViewMut};
use super::super::layout::Layout;
use super::super::stored::Stored;
use super::super::stream::{Handle, Stream};
use super::super::strided::{Place, Strided};
use super::super::tensor::Tensor;
use super::super::view::{View, ViewMut};
use super::Lane;
use super::foreign::{self, Lent, cuda_context};
use crate::error::{Error, Refused, Result};
use crate::lang::Elem;
use cudarc::driver::{CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, SyncOnDrop};
use std::ffi::c_void;
use std::sync::Arc;
use titan_nv::runtime::{self as nv, Context, Follower};

/// Device memory of cudarc that can be read as a tensor: `CudaSlice`, `CudaView` and `CudaViewMut`. No other type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not device memory of cudarc",
    label = "neither a `CudaSlice` nor a view of one",
    note = "a tensor over another device pointer is made by `titan::cuda::tensor_from_raw`, which is `unsafe`"
)]
pub trait CudaMemory<T>: DevicePtr<T> + sealed::Sealed {}

/// Device memory of cudarc that can be written as a tensor: `CudaSlice` and `CudaViewMut`. No other type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not writable device memory of cudarc",
    label = "neither a `CudaSlice` nor a `CudaViewMut`",
    note = "a tensor over another device pointer is made by `titan::cuda::tensor_from_raw`, which is `unsafe`"
)]
pub trait CudaMemoryMut<T>: DevicePtrMut<T> + sealed::Sealed {}

mod sealed {
    use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};

    pub trait Sealed {}
    impl<T> Sealed for CudaSlice<T> {}
    impl<T> Sealed for CudaView<'_, T> {}
    impl<T> Sealed for CudaViewMut<'_, T> {}
}

impl<T> CudaMemory<T> for CudaSlice<T> {}
impl<T> CudaMemory<T> for CudaView<'_, T> {}
impl<T> CudaMemory<T> for CudaViewMut<'_, T> {}
impl<T> CudaMemoryMut<T> for CudaSlice<T> {}
impl<T> CudaMemoryMut<T> for CudaViewMut<'_, T> {}

/// A row-major tensor in the memory of a `CudaSlice` or a part of one (`CudaView`), to read.
///
/// Launches wait for the work on the slice's stream so far, and later work there waits for the launches; nothing is copied,
/// and no thread waits.
///
/// # Errors
/// If the device is not the slice's, if the shape has not as many elements, or if the memory is not aligned to them.
pub fn borrow<'a, T: Elem, const R: usize>(
    device: &Device,
    slice: &'a impl CudaMemory<T>,
    shape: [usize; R],
) -> Result<View<'a, T, R>> {
    let stream = slice.stream();
    let layout = row_major::<T, R>(slice.len(), shape)?;
    let (address, read) = slice.device_ptr(stream);
    tensor("borrow", device, (stream, event(&read)), address, layout).map(View::new)
}

/// A tensor with any strides in the memory of a `CudaSlice` or a part of one, to read; otherwise as [`borrow`].
///
/// # Errors
/// If an element would not be in the slice (T1114); as of [`borrow`].
pub fn borrow_strided<'a, T: Elem, const R: usize>(
    device: &Device,
    slice: &'a impl CudaMemory<T>,
    place: Strided<R>,
) -> Result<View<'a, T, R>> {
    const DOING: &str = "borrow_strided";
    let layout = place.layout(DOING, T::ELEM, slice.len(), false)?;
    let stream = slice.stream();
    let (address, read) = slice.device_ptr(stream);
    tensor(DOING, device, (stream, event(&read)), address, layout).map(View::new)
}

/// The exclusive counterpart of [`borrow_strided`], for writing.
///
/// # Errors
/// As of [`borrow_strided`], and if two elements would be the same one of the slice (T1114).
pub fn borrow_strided_mut<'a, T: Elem, const R: usize>(
    device: &Device,
    slice: &'a mut impl CudaMemoryMut<T>,
    place: Strided<R>,
) -> Result<ViewMut<'a, T, R>> {
    const DOING: &str = "borrow_strided_mut";
    let layout = place.layout(DOING, T::ELEM, slice.len(), true)?;
    let stream = Arc::clone(slice.stream());
    let (address, written) = slice.device_ptr_mut(&stream);
    tensor(DOING, device, (&stream, event(&written)), address, layout).map(ViewMut::new)
}

/// The exclusive counterpart of [`borrow`], for writing.
///
/// # Errors
/// The same as of [`borrow`].
pub fn borrow_mut<'a, T: Elem, const R: usize>(
    device: &Device,
    slice: &'a mut impl CudaMemoryMut<T>,
    shape: [usize; R],
) -> Result<ViewMut<'a, T, R>> {
    let layout = row_major::<T, R>(slice.len(), shape)?;
    let stream = Arc::clone(slice.stream());
    let (address, written) = slice.device_ptr_mut(&stream);
    tensor("borrow_mut", device, (&stream, event(&written)), address, layout).map(ViewMut::new)
}

/// A tensor of any rank and strides in the memory of a `CudaSlice` or a part of one, to read: the tensor of a framework, whose element type and
/// rank are known at run time. Bytes become elements of another type, such as 8-bit floats, by [`DynView::bits_as`]; with the feature `float8`,
/// slices of that crate's types are borrowed as they are.
///
/// # Errors
/// As of [`borrow_strided`], and if the rank is more than 8.
pub fn borrow_dyn<'a, T: Stored>(
    device: &Device,
    slice: &'a impl CudaMemory<T>,
    place: Place<'_>,
) -> Result<DynView<'a>> {
    const DOING: &str = "borrow_dyn";
    let (rank, layout) = place.layout(DOING, T::ELEM, slice.len(), false)?;
    let stream = slice.stream();
    let (address, read) = slice.device_ptr(stream);
    let (buffer, layout) = memory::<T, _>(DOING, device, (stream, event(&read)), address, layout)?;
    Ok(DynView::new(DynTensor::of(buffer, rank, layout)))
}

/// The exclusive counterpart of [`borrow_dyn`], for writing.
///
/// # Errors
/// As of [`borrow_strided_mut`], and if the rank is more than 8.
pub fn borrow_dyn_mut<'a, T: Stored>(
    device: &Device,
    slice: &'a mut impl CudaMemoryMut<T>,
    place: Place<'_>,
) -> Result<DynViewMut<'a>> {
    const DOING: &str = "borrow_dyn_mut";
    let (rank, layout) = place.layout(DOING, T::ELEM, slice.len(), true)?;
    let stream = Arc::clone(slice.stream());
    let (address, written) = slice.device_ptr_mut(&stream);
    let (buffer, layout) = memory::<T, _>(DOING, device, (&stream, event(&written)), address, layout)?;
    Ok(DynViewMut::new(DynTensor::of(buffer, rank, layout)))
}

/// A stream of cudarc's as a stream for launches: they run on it in the order of its other work, without another stream that waits for it.
///
/// # Errors
/// If the stream is of another device.
pub fn stream_of(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    const DOING: &str = "stream_of";
    let context = cuda_context(DOING, device)?;
    let lane = backend::Lane::Cuda(Lane(own_stream(DOING, device, context, stream)?));
    Ok(Stream::of(device, Handle::over(lane)))
}

/// The row-major layout of a whole slice.
fn row_major<T: Elem, const R: usize>(len: usize, shape: [usize; R]) -> Result<Layout<R>> {
    let layout = Layout::row_major(T::ELEM, shape)?;
    if layout.len() != len {
        return Err(Error::ElementCount { found: len, shape: shape.to_vec(), expected: layout.len() });
    }
    Ok(layout)
}

/// Lets `stream` read a tensor: it waits for the launches that write it, and launches that write it later wait for the work that
/// the stream has when the guard is dropped.
///
/// If a launch traps, its outputs are partly written; this is not reported to the stream.
///
/// # Errors
/// If the stream is of another device, or the failure of earlier work that wrote the tensor, unless it has been reported.
pub fn lend<'a, T: Elem, const R: usize>(
    tensor: &'a (impl AsTensor<Tensor<T, R>> + ?Sized),
    stream: &Arc<CudaStream>,
) -> Result<Lent<'a>> {
    let tensor = tensor.as_tensor();
    let context = cuda_context("lend", tensor.device())?;
    foreign::lent("lend", tensor, own_stream("lend", tensor.device(), context, stream)?, false)
}

/// The exclusive counterpart of [`lend`], for writing.
///
/// # Errors
/// The same as of [`lend`].
pub fn lend_mut<'a, T: Elem, const R: usize>(
    tensor: &'a mut (impl AsTensorMut<Tensor<T, R>> + ?Sized),
    stream: &Arc<CudaStream>,
) -> Result<Lent<'a>> {
    let tensor = tensor.as_tensor_mut();
    let context = cuda_context("lend_mut", tensor.device())?;
    foreign::lent("lend_mut", &tensor, own_stream("lend_mut", tensor.device(), context, stream)?, true)
}

/// The event that cudarc records when a use of a slice ends, if it tracks uses: an event of the slice.
fn event(sync: &SyncOnDrop<'_>) -> Option<*mut c_void> {
    match sync {
        SyncOnDrop::Record(Some((event, _))) => Some(event.cu_event().cast()),
        SyncOnDrop::Record(None) | SyncOnDrop::Sync(_) => None,
    }
}

/// The tensor of a slice with this stream, event and address, under a layout inside of the slice. The caller gives it the slice's lifetime.
fn tensor<T: Elem, const R: usize>(
    doing: &'static str,
    device: &Device,
    order: (&Arc<CudaStream>, Option<*mut c_void>),
    address: u64,
    layout: Layout<R>,
) -> Result<Tensor<T, R>> {
    let (buffer, layout) = memory::<T, R>(doing, device, order, address, layout)?;
    Ok(Tensor::of(buffer, layout))
}

/// The memory of the elements of a layout inside of a slice with this stream, event and address, and their layout in it. The caller gives it
/// the slice's lifetime.
#[expect(unsafe_code, reason = "slices are memory of cudarc's")]
fn memory<T: Stored, const R: usize>(
    doing: &'static str,
    device: &Device,
    (stream, event): (&Arc<CudaStream>, Option<*mut c_void>),
    address: u64,
    layout: Layout<R>,
) -> Result<(Buffer, Layout<R>)> {
    let context = cuda_context(doing, device)?;
    if size_of::<T>() != T::ELEM.bytes_for(1) || T::ELEM.bits() < 8 {
        let problem = format!("elements of type `{}` have another layout on the device than in a slice", T::ELEM);
        let help = "borrow a slice of bytes by `borrow_dyn`, and take it as elements by `bits_as`";
        return Err(Error::Foreign(Refused { operation: doing, problem, help }));
    }
    // The memory begins with the first element.
    let address = address + T::ELEM.bytes_for(layout.offset) as u64;
    let layout = Layout { offset: 0, ..layout };
    let mut follower = Follower::new(own_stream(doing, device, context, stream)?);
    if let Some(event) = event {
        // SAFETY: it is an event of the slice, in the context of its stream. It is recorded when a launch has been given to
        // the device; launches borrow the view, and the view borrows the slice.
        follower = unsafe { follower.recording(event) };
    }
    // SAFETY: the slice is borrowed as long as launches are made; when it is dropped afterwards, cudarc frees the memory on
    // its stream, which waits for all launches.
    let buffer =
        unsafe { foreign::shared(doing, device, (context, Some(follower)), address, (T::ELEM, layout.reach())) }?;
    Ok((buffer, layout))
}

/// A stream of cudarc's, if it is one of the device's context.
#[expect(unsafe_code, reason = "streams of cudarc's")]
fn own_stream(
    operation: &'static str,
    device: &Device,
    context: &'static Context,
    stream: &Arc<CudaStream>,
) -> Result<nv::Stream> {
    if stream.context().cu_ctx().cast() != context.raw() {
        let ordinal = stream.context().ordinal();
        let whose =
            if u32::try_from(ordinal) == Ok(device.ordinal()) { "uses another context" } else { "is another device" };
        return Err(Error::Foreign(Refused {
            operation,
            problem: format!("the stream belongs to CUDA device {ordinal}, but {device} {whose}"),
            help: "use the device of the stream, with the context that `CudaContext::new` returns",
        }));
    }
    // SAFETY: a stream of this context, which lives as long as the handle that is kept.
    Ok(unsafe { nv::Stream::foreign(context, stream.cu_stream().cast(), Box::new(Arc::clone(stream))) })
}
