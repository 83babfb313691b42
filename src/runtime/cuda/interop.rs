//! Tensors in memory of others, and tensors lent to others.
//!
//! No thread waits at either border. A borrowed slice's stream is waited for by the first launch that uses the tensor, and
//! waits itself for every launch as soon as the device has it: the slice may be used, or dropped, right after the borrow.

use super::super::backend::Storage;
use super::super::buffer::{Access, Buffer};
use super::super::device::Device;
use super::super::layout::Layout;
use super::super::tensor::Tensor;
use super::{Mark, Memory, after, context, error};
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use titan_nv::runtime::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop, sys::CUstream};
use titan_nv::runtime::{self as nv, Context, Waiting};

/// A tensor in the memory of a slice of cudarc's, which it borrows: see [`borrow`].
pub struct Borrowed<'a, T, const R: usize> {
    tensor: Tensor<T, R>,
    /// Tells cudarc's other streams, when it is dropped, that the slice has been read until then.
    _read: SyncOnDrop<'a>,
}

/// As [`Borrowed`], to write: see [`borrow_mut`].
pub struct BorrowedMut<'a, T, const R: usize> {
    tensor: Tensor<T, R>,
    /// Tells cudarc's other streams that the slice has been written until then.
    written: Option<Box<dyn FnOnce() + 'a>>,
}

/// A tensor whose device pointer a stream of cudarc's may use: see [`lend`].
pub struct Lent<'a> {
    access: Access,
    address: u64,
    stream: nv::Stream,
    tensor: PhantomData<&'a mut ()>,
}

/// A tensor by its pointer: see [`tensor_from_raw`].
#[derive(Clone, Copy, Debug)]
pub struct RawTensor<const R: usize> {
    /// The address of the first element, on the device.
    pub pointer: u64,
    /// The extents.
    pub shape: [usize; R],
    /// How far the next element along each axis is, in elements; `None` for row-major order.
    pub strides: Option<[usize; R]>,
    /// The stream on which others use the memory. TITAN waits for its work so far, and its later work for TITAN's. `None` if
    /// nobody else uses it, or the caller waits.
    pub stream: Option<CUstream>,
}

/// A row-major tensor in the memory of a `CudaSlice` or a part of one (`CudaView`), to read.
///
/// Launches wait for the work on the slice's stream so far, and later work there waits for the launches; nothing is copied,
/// and no thread waits.
///
/// # Errors
/// If the device is not the slice's, if the shape has not as many elements, or if the memory is not aligned to them.
pub fn borrow<'a, T: Elem, S: DevicePtr<T>, const R: usize>(
    device: &Device,
    slice: &'a S,
    shape: [usize; R],
) -> Result<Borrowed<'a, T, R>> {
    let stream = slice.stream();
    let (address, read) = slice.device_ptr(stream);
    let tensor = share("borrow", device, stream, (address, slice.len()), shape)?;
    Ok(Borrowed { tensor, _read: read })
}

/// As [`borrow`], to write.
///
/// # Errors
/// As [`borrow`].
pub fn borrow_mut<'a, T: Elem, S: DevicePtrMut<T>, const R: usize>(
    device: &Device,
    slice: &'a mut S,
    shape: [usize; R],
) -> Result<BorrowedMut<'a, T, R>> {
    let (stream, len) = (Arc::clone(slice.stream()), slice.len());
    let (address, written) = slice.device_ptr_mut(&stream);
    drop(written);
    let tensor = share("borrow_mut", device, &stream, (address, len), shape)?;
    let written = Box::new(move || drop(slice.device_ptr_mut(&stream)));
    Ok(BorrowedMut { tensor, written: Some(written) })
}

/// Lets `stream` read a tensor: it waits for the launches that write it, and launches that write it later wait for what the
/// stream does until the guard is dropped.
///
/// A launch that traps leaves its outputs written in part; the stream does not learn of it.
///
/// # Errors
/// If the stream is of another device, or the failure of earlier work that wrote the tensor, unless it has been reported.
pub fn lend<'a, T: Elem, const R: usize>(tensor: &'a Tensor<T, R>, stream: &Arc<CudaStream>) -> Result<Lent<'a>> {
    lent(tensor, stream, false)
}

/// As [`lend`], to write.
///
/// # Errors
/// As [`lend`].
pub fn lend_mut<'a, T: Elem, const R: usize>(
    tensor: &'a mut Tensor<T, R>,
    stream: &Arc<CudaStream>,
) -> Result<Lent<'a>> {
    lent(tensor, stream, true)
}

/// A tensor of memory that somebody else owns.
///
/// # Errors
/// If the pointer is not memory of the device, is not aligned to the elements, or has too little behind it; if strides
/// overflow, or let elements share memory.
///
/// # Safety
/// The memory must live until the tensor and all launches that use it have ended, and nobody else may use it at the same
/// time, but on `stream`. A stream must be one of the device's primary context and live as long.
#[expect(unsafe_code, reason = "the caller answers for the pointer")]
pub unsafe fn tensor_from_raw<T: Elem, const R: usize>(device: &Device, raw: RawTensor<R>) -> Result<Tensor<T, R>> {
    const DOING: &str = "tensor_from_raw";
    let context = cuda_context(DOING, device)?;
    let layout = match raw.strides {
        None => Layout::row_major(T::ELEM, raw.shape)?,
        Some(strides) => Layout::strided(T::ELEM, raw.shape, strides)?,
    };
    let bytes = T::ELEM.bytes_for(layout.reach());
    check_pointer::<T>(DOING, device, context, raw.pointer, bytes)?;
    let fail = |e: &nv::DriverError| error::driver(&device.to_string(), e, DOING);
    // SAFETY: the caller says that it is a stream of the device's context, and lives as long as the memory is used.
    let stream = raw.stream.map(|stream| unsafe { nv::Stream::foreign(context, stream) });
    let ready = match &stream {
        Some(stream) => Some(after(stream.mark(Waiting::Spins).map_err(|e| fail(&e))?, DOING)),
        None => None,
    };
    // SAFETY: the memory is the caller's, who keeps it until the work has ended.
    let memory = unsafe { nv::Memory::foreign(context, raw.pointer, bytes, stream) };
    let storage = Storage::Cuda(Memory(Arc::new(memory)));
    Ok(Tensor::of(Buffer::of(device, bytes, (storage, ready)), layout))
}

/// The tensor of a slice with this address and number of elements.
#[expect(unsafe_code, reason = "slices are memory of cudarc's")]
fn share<T: Elem, const R: usize>(
    doing: &'static str,
    device: &Device,
    stream: &Arc<CudaStream>,
    (address, len): (u64, usize),
    shape: [usize; R],
) -> Result<Tensor<T, R>> {
    let context = cuda_context(doing, device)?;
    let layout = Layout::row_major(T::ELEM, shape)?;
    if size_of::<T>() != T::ELEM.bytes_for(1) || T::ELEM.bits() < 8 {
        let problem = format!("elements of type `{}` lie otherwise on the device than in a slice", T::ELEM);
        return Err(Error::Layout { operation: doing, problem, help: "borrow a slice of bytes for a raw pointer" });
    }
    if layout.len() != len {
        return Err(Error::ElementCount { found: len, shape: shape.to_vec(), expected: layout.len() });
    }
    let stream = own_stream(doing, device, context, stream)?;
    let bytes = T::ELEM.bytes_for(len);
    check_pointer::<T>(doing, device, context, address, bytes)?;
    let ready = stream.mark(Waiting::Spins).map_err(|e| error::driver(&device.to_string(), &e, doing))?;
    // SAFETY: the slice is borrowed as long as launches are made; when it is dropped afterwards, cudarc frees the memory on
    // `stream`, which waits for all launches.
    let memory = unsafe { nv::Memory::foreign(context, address, bytes, Some(stream)) };
    let storage = Storage::Cuda(Memory(Arc::new(memory)));
    Ok(Tensor::of(Buffer::of(device, bytes, (storage, Some(after(ready, doing)))), layout))
}

fn lent<'a, T: Elem, const R: usize>(
    tensor: &'a Tensor<T, R>,
    stream: &Arc<CudaStream>,
    write: bool,
) -> Result<Lent<'a>> {
    const DOING: &str = "lend";
    let device = tensor.device();
    let context = cuda_context(DOING, device)?;
    let stream = own_stream(DOING, device, context, stream)?;
    let access = tensor.access(write);
    let Storage::Cuda(memory) = access.buffer.storage() else { return Err(not_cuda(DOING, device)) };
    let address = memory.0.address(T::ELEM.bytes_for(tensor.layout().offset));
    for earlier in access.buffer.earlier(&access) {
        earlier.event.wait_until_given();
        if let Some(error) = earlier.event.error().filter(|_| earlier.carries) {
            return Err(earlier.event.report().unwrap_or_else(|| Error::of_dependency("`lend`", error)));
        }
        if let Some(super::backend::Mark::Cuda(mark)) = earlier.event.mark() {
            stream.follow(&mark.0).map_err(|e| error::driver(&device.to_string(), &e, DOING))?;
        }
    }
    Ok(Lent { access, address, stream, tensor: PhantomData })
}

fn not_cuda(operation: &'static str, device: &Device) -> Error {
    let help = "use `Device::cuda(ordinal)`, or `.to_device(&device)`";
    Error::Layout { operation, problem: format!("{device} is not a CUDA device"), help }
}

fn cuda_context(operation: &'static str, device: &Device) -> Result<&'static Context> {
    if device.is_remote() { context(device) } else { Err(not_cuda(operation, device)) }
}

/// A stream of cudarc's, if it is one of the device's context.
fn own_stream(
    operation: &'static str,
    device: &Device,
    context: &'static Context,
    stream: &Arc<CudaStream>,
) -> Result<nv::Stream> {
    nv::Stream::of_cudarc(context, Arc::clone(stream)).ok_or_else(|| {
        let ordinal = stream.context().ordinal();
        let whose =
            if u32::try_from(ordinal) == Ok(device.ordinal()) { "another context of it" } else { "another device" };
        Error::Layout {
            operation,
            problem: format!("the stream belongs to CUDA device {ordinal}, and {device} is {whose}"),
            help: "use the device of the stream, with the context that `CudaContext::new` gives",
        }
    })
}

/// Refuses pointers that are not memory of the device, aligned to the elements and with enough behind them.
fn check_pointer<T: Elem>(
    operation: &'static str,
    device: &Device,
    context: &'static Context,
    address: u64,
    bytes: usize,
) -> Result<()> {
    let refuse = |problem: String, help| Err(Error::Layout { operation, problem, help });
    if bytes == 0 {
        return Ok(());
    }
    let unit = T::ELEM.bytes_for(1) as u64;
    if !address.is_multiple_of(unit) {
        let problem =
            format!("the pointer {address:#x} is not a multiple of {unit}, the bytes of an element `{}`", T::ELEM);
        return refuse(problem, "begin at an element of this type");
    }
    let owner = context.owner(address).map_err(|e| error::driver(&device.to_string(), &e, operation))?;
    match owner {
        None => refuse(format!("the pointer {address:#x} is no memory of a CUDA device"), "pass memory of the device"),
        Some(owner) if owner.ordinal != device.ordinal() => {
            let problem = format!("the pointer {address:#x} belongs to CUDA device {}, not to {device}", owner.ordinal);
            refuse(problem, "use the device of the memory, or copy it there")
        }
        Some(nv::Owner { range: Some((start, size)), .. })
            if (u128::from(address) + bytes as u128) > u128::from(start) + size as u128 =>
        {
            let room = u128::from(start) + size as u128 - u128::from(address);
            let problem = format!("the tensor takes {bytes} bytes, and behind the pointer {address:#x} are {room}");
            refuse(problem, "check the extents and strides")
        }
        Some(_) => Ok(()),
    }
}

impl Lent<'_> {
    /// The device pointer of the first element; strides are those of the tensor.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // If the driver gives no event, it has failed for good, and there is nothing left to order.
        if let Ok(mark) = Mark::at_end(&self.stream, false) {
            let event = super::reached(mark, "work on a lent tensor");
            Buffer::enter_foreign(&self.access, &event);
        }
    }
}

impl<T, const R: usize> Deref for Borrowed<'_, T, R> {
    type Target = Tensor<T, R>;
    fn deref(&self) -> &Tensor<T, R> {
        &self.tensor
    }
}

impl<T, const R: usize> Deref for BorrowedMut<'_, T, R> {
    type Target = Tensor<T, R>;
    fn deref(&self) -> &Tensor<T, R> {
        &self.tensor
    }
}

impl<T, const R: usize> DerefMut for BorrowedMut<'_, T, R> {
    fn deref_mut(&mut self) -> &mut Tensor<T, R> {
        &mut self.tensor
    }
}

impl<T, const R: usize> Drop for BorrowedMut<'_, T, R> {
    fn drop(&mut self) {
        if let Some(written) = self.written.take() {
            written();
        }
    }
}

impl<T: Elem, const R: usize> fmt::Debug for Borrowed<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

impl<T: Elem, const R: usize> fmt::Debug for BorrowedMut<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:#x})", self.address)
    }
}
