//! Tensors in memory that other libraries have allocated, and tensors lent to other libraries, by device pointers and `CUstream`s.
//!
//! No thread blocks in either direction. The first launch that uses foreign memory waits for its stream, and the stream waits for every
//! launch as soon as the launch has been enqueued. So the memory may be used, or freed in stream order, right after the borrow. This does
//! not depend on a destructor.

use super::super::as_tensor::{AsTensor, AsTensorMut};
use super::super::backend::{self, Storage};
use super::super::buffer::{Access, Buffer, Others};
use super::super::capture;
use super::super::device::Device;
use super::super::layout::Layout;
use super::super::tensor::Tensor;
use super::{Mark, Memory, after, context, error};
use crate::error::{Error, Refused, Result};
use crate::lang::Elem;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use titan_core::ir::Elem as ElemType;
use titan_nv::runtime::{self as nv, Context, Follower};

/// A tensor whose device pointer a foreign stream may use: see [`lend_raw`].
#[must_use = "the tensor is lent until this is dropped"]
pub struct Lent<'a> {
    access: Access,
    address: u64,
    stream: nv::Stream,
    /// Until the guard is dropped, replays of graphs that use the memory are refused.
    _others: Others,
    tensor: PhantomData<&'a mut ()>,
}

/// A tensor by its pointer: see [`tensor_from_raw`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawTensor<const R: usize> {
    /// The address of the first element, on the device.
    pub pointer: u64,
    /// The extents.
    pub shape: [usize; R],
    /// The stride of each axis, in elements; `None` for row-major order.
    pub strides: Option<[usize; R]>,
    /// The foreign stream that uses the memory, a `CUstream` of the driver. TITAN waits for its work so far, and its later work waits
    /// for TITAN's. `None` if no stream uses it, or if the caller synchronizes.
    pub stream: Option<*mut c_void>,
}

/// A tensor in memory that another library owns.
///
/// # Errors
/// If the pointer is not memory of the device, is not aligned to the elements, or the allocation is too small; if strides
/// overflow, or let elements overlap.
///
/// # Safety
/// The memory must live until the tensor is dropped and all launches that use it have ended, and no other work may use it at the same
/// time, except on `stream`. A stream must belong to the device's primary context and live as long.
#[expect(unsafe_code, reason = "the caller answers for the pointer")]
pub unsafe fn tensor_from_raw<T: Elem, const R: usize>(device: &Device, raw: RawTensor<R>) -> Result<Tensor<T, R>> {
    const DOING: &str = "tensor_from_raw";
    let context = cuda_context(DOING, device)?;
    let layout = match raw.strides {
        None => Layout::row_major(T::ELEM, raw.shape)?,
        Some(strides) => Layout::strided(T::ELEM, raw.shape, strides)?,
    };
    // SAFETY: the caller says that it is a stream of the device's context, and lives as long as the memory is used.
    let stream = raw.stream.map(|stream| unsafe { nv::Stream::foreign(context, stream, Box::new(())) });
    // SAFETY: the memory is the caller's, who keeps it until the work has ended.
    unsafe { share(DOING, device, context, raw.pointer, (layout, stream.map(Follower::new))) }
}

/// Lets a foreign stream, a `CUstream` of the driver, read a tensor: it waits for the launches that write it, and launches that
/// write it later wait for the work that the stream has when the guard is dropped.
///
/// If a launch traps, its outputs are partly written; this is not reported to the stream.
///
/// # Errors
/// If the device is not a CUDA device, or the failure of earlier work that wrote the tensor, unless it has been reported.
///
/// # Safety
/// The stream must be one of the device's primary context, and outlive the guard.
#[expect(unsafe_code, reason = "the caller answers for the stream")]
pub unsafe fn lend_raw<'a, T: Elem, const R: usize>(
    tensor: &'a (impl AsTensor<Tensor<T, R>> + ?Sized),
    stream: *mut c_void,
) -> Result<Lent<'a>> {
    let tensor = tensor.as_tensor();
    let context = cuda_context("lend_raw", tensor.device())?;
    // SAFETY: the caller's.
    lent("lend_raw", tensor, unsafe { nv::Stream::foreign(context, stream, Box::new(())) }, false)
}

/// The exclusive counterpart of [`lend_raw`], for writing.
///
/// # Errors
/// The same as of [`lend_raw`].
///
/// # Safety
/// The same as for [`lend_raw`].
#[expect(unsafe_code, reason = "the caller answers for the stream")]
pub unsafe fn lend_raw_mut<'a, T: Elem, const R: usize>(
    tensor: &'a mut (impl AsTensorMut<Tensor<T, R>> + ?Sized),
    stream: *mut c_void,
) -> Result<Lent<'a>> {
    let tensor = tensor.as_tensor_mut();
    let context = cuda_context("lend_raw_mut", tensor.device())?;
    // SAFETY: the caller's.
    lent("lend_raw_mut", &tensor, unsafe { nv::Stream::foreign(context, stream, Box::new(())) }, true)
}

/// The tensor of this layout at an address.
///
/// # Safety
/// As of [`nv::Memory::foreign`], for what the layout reaches, if it is memory of the device: that is checked.
#[expect(unsafe_code, reason = "the caller answers for the pointer")]
pub(super) unsafe fn share<T: Elem, const R: usize>(
    doing: &'static str,
    device: &Device,
    context: &'static Context,
    address: u64,
    (layout, follower): (Layout<R>, Option<Follower>),
) -> Result<Tensor<T, R>> {
    // SAFETY: the caller's.
    let buffer = unsafe { shared(doing, device, (context, follower), address, (T::ELEM, layout.reach())) }?;
    Ok(Tensor::of(buffer, layout))
}

/// The memory of this many elements at an address.
///
/// # Safety
/// As of [`nv::Memory::foreign`], for these elements, if they are memory of the device: that is checked.
#[expect(unsafe_code, reason = "the caller answers for the pointer")]
pub(super) unsafe fn shared(
    doing: &'static str,
    device: &Device,
    (context, follower): (&'static Context, Option<Follower>),
    address: u64,
    (elem, reach): (ElemType, usize),
) -> Result<Buffer> {
    let bytes = elem.bytes_for(reach);
    check_pointer(doing, device, context, address, (elem, bytes))?;
    let mark = |f: &Follower| f.mark().map_err(|e| error::driver(&device.to_string(), &e, doing));
    let ready = follower.as_ref().map(mark).transpose()?.map(|ready| after(ready, doing));
    // SAFETY: the caller's.
    let memory = unsafe { nv::Memory::foreign(context, address, bytes, follower) };
    Ok(Buffer::of(device, bytes, (Storage::Cuda(Memory(Arc::new(memory))), ready)))
}

/// The memory of this many elements at an address, which `owner` keeps.
///
/// # Safety
/// As of [`nv::Memory::kept`], for these elements, if they are memory of the device: that is checked.
#[expect(unsafe_code, reason = "the caller answers for the pointer")]
pub(in super::super) unsafe fn kept(
    doing: &'static str,
    device: &Device,
    address: u64,
    (elem, reach): (ElemType, usize),
    owner: Box<dyn Send + Sync>,
) -> Result<Buffer> {
    let context = cuda_context(doing, device)?;
    let bytes = elem.bytes_for(reach);
    check_pointer(doing, device, context, address, (elem, bytes))?;
    // SAFETY: the caller's.
    let memory = unsafe { nv::Memory::kept(context, address, bytes, owner) };
    Ok(Buffer::of(device, bytes, (Storage::Cuda(Memory(Arc::new(memory))), None)))
}

/// Lends a tensor to a stream of its device.
pub(super) fn lent<'a, T: Elem, const R: usize>(
    doing: &'static str,
    tensor: &Tensor<T, R>,
    stream: nv::Stream,
    write: bool,
) -> Result<Lent<'a>> {
    capture::refuse(
        &format!("`{doing}`"),
        "another library would use the tensor now",
        "lend it before or after the capture",
    )?;
    let device = tensor.device();
    let access = tensor.access(write);
    let memory = access.buffer.storage().as_cuda().ok_or_else(|| not_cuda(doing, device))?;
    let address = memory.0.address(T::ELEM.bytes_for(tensor.layout().offset));
    let others = access.buffer.used_by_others(write);
    for earlier in access.buffer.earlier(&access) {
        earlier.event.wait_until_given();
        if let Some(error) = earlier.event.error().filter(|_| earlier.carries) {
            let what = format!("`{doing}`");
            return Err(earlier.event.report().unwrap_or_else(|| Error::of_dependency(&what, error)));
        }
        match earlier.event.mark() {
            Some(backend::Mark::Cuda(mark)) => {
                stream.follow(&mark.0).map_err(|e| error::driver(&device.to_string(), &e, doing))?;
            }
            // The mark is of another device. This stream cannot wait for it, so the host waits.
            #[cfg(feature = "hip")]
            Some(mark @ backend::Mark::Hip(_)) => mark.wait(),
            None => {}
        }
    }
    Ok(Lent { access, address, stream, _others: others, tensor: PhantomData })
}

fn not_cuda(operation: &'static str, device: &Device) -> Error {
    let help = "use `Device::cuda(ordinal)`, or `.to_device(&device)`";
    Error::Foreign(Refused { operation, problem: format!("{device} is not a CUDA device"), help })
}

pub(super) fn cuda_context(operation: &'static str, device: &Device) -> Result<&'static Context> {
    if device.as_cuda().is_some() { context(device) } else { Err(not_cuda(operation, device)) }
}

/// Rejects pointers that are not memory of the device, not aligned to the elements, or whose allocation is too small.
fn check_pointer(
    operation: &'static str,
    device: &Device,
    context: &'static Context,
    address: u64,
    (elem, bytes): (ElemType, usize),
) -> Result<()> {
    let refuse = |problem: String, help| Err(Error::Foreign(Refused { operation, problem, help }));
    if bytes == 0 {
        return Ok(());
    }
    let unit = elem.bytes_for(1) as u64;
    if !address.is_multiple_of(unit) {
        let problem =
            format!("the pointer {address:#x} is not aligned to {unit} bytes, the size of an element `{elem}`");
        return refuse(problem, "pass a pointer to an element of this type");
    }
    let owner = context.owner(address).map_err(|e| error::driver(&device.to_string(), &e, operation))?;
    match owner {
        None => refuse(
            format!("the pointer {address:#x} is not memory of a CUDA device"),
            "pass a pointer to memory of the device that has not been freed",
        ),
        Some(owner) if owner.ordinal != device.ordinal() => {
            let problem = format!("the pointer {address:#x} belongs to CUDA device {}, not to {device}", owner.ordinal);
            refuse(problem, "use the device of the memory, or copy the memory to the other device")
        }
        Some(nv::Owner { range: Some((start, size)), .. })
            if (u128::from(address) + bytes as u128) > u128::from(start) + size as u128 =>
        {
            let room = u128::from(start) + size as u128 - u128::from(address);
            let problem = format!(
                "the tensor needs {bytes} bytes, but the allocation at {address:#x} has only {room} from there"
            );
            refuse(problem, "check the extents and strides")
        }
        Some(_) => Ok(()),
    }
}

impl Lent<'_> {
    /// The device pointer of the first element; strides are those of the tensor. Use it on the stream, and enqueue that work before
    /// the guard is dropped: later launches wait for it. If the guard is leaked (`mem::forget`), they do not.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // After an error the context is lost or abandoned, and there is nothing left to order.
        if let Ok(mark) = Mark::at_end(&self.stream, false) {
            if let Some(owner) = self.access.buffer.storage().as_cuda().and_then(|memory| memory.0.follower()) {
                // The memory belongs to another library, whose stream waits for this work as for launches.
                if owner.follow(&mark.0).is_err() {
                    mark.wait();
                }
            }
            let event = super::reached(mark, "work on a lent tensor");
            Buffer::enter_foreign(&self.access, &event);
        }
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:#x})", self.address)
    }
}
