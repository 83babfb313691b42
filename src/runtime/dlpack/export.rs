//! Tensors for other frameworks.

use super::super::buffer::{Access, Others, run_here};
use super::super::device::DeviceKind;
use super::super::dyn_tensor::DynTensor;
use super::super::layout::MAX_RANK;
use super::super::storage::Storage;
use super::abi::{self, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use super::{Managed, READ_ONLY, Structure, elements, refuse};
use crate::error::Result;
use std::any::Any;
use std::borrow::Borrow;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// Gives a tensor to another framework, which may read and write it; its memory is freed by the deleter. Waits for the launches that use it.
///
/// # Errors
/// If the device is none of DLPack's, or the element type is `tf32` (T1125); the failure of earlier work that wrote the tensor, unless it has
/// been reported. Then the tensor is dropped.
pub fn export(tensor: impl Into<DynTensor>) -> Result<Managed> {
    let tensor = tensor.into();
    let others = tensor.access(true).buffer.used_by_others(true);
    let parts = described("export", &tensor, true)?;
    Ok(managed(parts, 0, Box::new(Given { tensor, _others: others })))
}

/// Lets another framework read a tensor that this program goes on reading: the structure has the flag for read-only elements. Waits for the
/// launches that write it. While the framework has it, `Arc::get_mut` does not give it for writing.
///
/// # Errors
/// As of [`export`].
pub fn export_shared(tensor: &Arc<DynTensor>) -> Result<Managed> {
    let others = tensor.access(false).buffer.used_by_others(false);
    let parts = described("export_shared", tensor, false)?;
    Ok(managed(parts, READ_ONLY, Box::new(Given { tensor: Arc::clone(tensor), _others: others })))
}

/// A tensor without the extents and strides, which the owner keeps.
struct Parts {
    data: *mut c_void,
    device: DLDevice,
    dtype: abi::DLDataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// What DLPack says about a tensor, after the launches on it have ended.
fn described(operation: &'static str, tensor: &DynTensor, write: bool) -> Result<Parts> {
    let dtype = elements::to_dlpack(tensor.elem())?;
    let (buffer, layout) = tensor.parts();
    let device = tensor.device();
    let help = "export a tensor of the CPU or of a CUDA device; `.to_device(&device)` copies it";
    let offset = tensor.elem().bytes_for(layout.offset);
    let Some((device_type, data)) = place(buffer.storage(), device.kind(), offset) else {
        return refuse(operation, format!("{device} is none of the devices of DLPack"), help);
    };
    // All of the memory, also between the elements: it is given away.
    let access = tensor.access(write);
    finished(operation, access)?;
    let device_id = i32::try_from(if device_type == abi::device::CPU { 0 } else { device.ordinal() }).unwrap_or(0);
    let numbers = |from: &[usize]| from.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX)).collect::<Vec<i64>>();
    let (shape, strides) = (numbers(tensor.shape()), numbers(tensor.strides()));
    debug_assert!(shape.len() <= MAX_RANK, "tensors have at most 8 axes");
    Ok(Parts { data, device: DLDevice { device_type, device_id }, dtype, shape, strides })
}

/// The kind of device, and the address of a byte, if others can use the memory.
fn place(storage: &Storage, kind: DeviceKind, offset: usize) -> Option<(i32, *mut c_void)> {
    match storage {
        // That of a simulator is the host's as well, but nobody else has the device.
        #[cfg(feature = "cpu")]
        Storage::Cpu(memory) => {
            let address = memory.address().wrapping_add(offset).cast();
            (kind == DeviceKind::Cpu).then_some((abi::device::CPU, address))
        }
        #[cfg(feature = "cuda")]
        Storage::Cuda(memory) => {
            let address = usize::try_from(memory.address(offset)).ok()?;
            (kind == DeviceKind::Cuda).then_some((abi::device::CUDA, std::ptr::without_provenance_mut(address)))
        }
        #[cfg(feature = "hip")]
        Storage::Hip(_) => None,
        #[cfg(feature = "emulator")]
        Storage::Emulated(_) => None,
    }
}

/// Blocks until the launches with which an access conflicts have ended.
fn finished(operation: &'static str, access: Access) -> Result<()> {
    run_here(&format!("`{operation}`"), &[access], || Ok(()))
}

/// What a structure of ours points to.
struct Owner {
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Dropped with the structure.
    _kept: Box<dyn Any + Send + Sync>,
}

/// A tensor that others have, to write it or to read it beside this program. Their work may use it on its device, also when they give it back.
struct Given<T: Borrow<DynTensor>> {
    tensor: T,
    /// Until then, replays of graphs that use the memory are refused.
    _others: Others,
}

impl<T: Borrow<DynTensor>> Drop for Given<T> {
    fn drop(&mut self) {
        #[cfg(not(feature = "cuda"))]
        let _ = &self.tensor;
        #[cfg(feature = "cuda")]
        if self.tensor.borrow().device().as_cuda().is_some() {
            // After an error the memory is lost with its context, or it is not freed.
            let _ended = super::super::cuda::synchronize(self.tensor.borrow().device());
        }
    }
}

/// A structure that owns `kept`.
fn managed(parts: Parts, flags: u64, kept: Box<dyn Any + Send + Sync>) -> Managed {
    let Parts { data, device, dtype, shape, strides } = parts;
    let ndim = i32::try_from(shape.len()).unwrap_or(0);
    let owner = Box::into_raw(Box::new(Owner { shape, strides, _kept: kept }));
    // SAFETY: just allocated, and owned by the structure; the vectors do not move.
    #[expect(unsafe_code, reason = "pointers of a structure of C")]
    let (shape, strides) = unsafe { ((*owner).shape.as_mut_ptr(), (*owner).strides.as_mut_ptr()) };
    let dl_tensor = DLTensor { data, device, ndim, dtype, shape, strides, byte_offset: 0 };
    let structure = DLManagedTensorVersioned {
        version: abi::VERSION,
        manager_ctx: owner.cast(),
        deleter: Some(free),
        flags,
        dl_tensor,
    };
    Managed(Structure::Versioned(NonNull::from(Box::leak(Box::new(structure)))))
}

/// The deleter of our structures.
///
/// # Safety
/// The pointer is that of [`managed`], and it is not used afterwards.
#[expect(unsafe_code, reason = "the deleter of a structure of C")]
unsafe extern "C" fn free(structure: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's: both were made by `Box`, and are freed once.
    unsafe {
        let structure = Box::from_raw(structure);
        drop(Box::from_raw(structure.manager_ctx.cast::<Owner>()));
    }
}

/// A structure of version 1 for one from before.
pub(super) fn wrapped(legacy: Managed) -> *mut DLManagedTensorVersioned {
    let dl_tensor = *legacy.tensor();
    let structure = DLManagedTensorVersioned {
        version: abi::VERSION,
        manager_ctx: Box::into_raw(Box::new(legacy)).cast(),
        deleter: Some(free_wrapped),
        flags: 0,
        dl_tensor,
    };
    Box::into_raw(Box::new(structure))
}

/// # Safety
/// The pointer is that of [`wrapped`], and it is not used afterwards.
#[expect(unsafe_code, reason = "the deleter of a structure of C")]
unsafe extern "C" fn free_wrapped(structure: *mut DLManagedTensorVersioned) {
    // SAFETY: the caller's: both were made by `Box`, and are freed once.
    unsafe {
        let structure = Box::from_raw(structure);
        drop(Box::from_raw(structure.manager_ctx.cast::<Managed>()));
    }
}

/// A structure from before version 1.0 for one of version 1.
pub(super) fn wrapped_legacy(versioned: Managed) -> *mut DLManagedTensor {
    let dl_tensor = *versioned.tensor();
    let manager_ctx = Box::into_raw(Box::new(versioned)).cast();
    Box::into_raw(Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(free_legacy) }))
}

/// # Safety
/// The pointer is that of [`wrapped_legacy`], and it is not used afterwards.
#[expect(unsafe_code, reason = "the deleter of a structure of C")]
unsafe extern "C" fn free_legacy(structure: *mut DLManagedTensor) {
    // SAFETY: the caller's: both were made by `Box`, and are freed once.
    unsafe {
        let structure = Box::from_raw(structure);
        drop(Box::from_raw(structure.manager_ctx.cast::<Managed>()));
    }
}
