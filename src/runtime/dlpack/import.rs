//! Tensors of other frameworks as views and tensors.

use super::super::buffer::Buffer;
use super::super::device::Device;
use super::super::dyn_tensor::DynTensor;
use super::super::dyn_view::DynView;
use super::super::strided::Place;
use super::abi::{self, DLTensor};
use super::{Managed, elements, refuse};
use crate::error::Result;
use titan_core::ir::Elem;

/// Where the elements of a tensor are.
struct Found {
    elem: Elem,
    shape: Vec<usize>,
    strides: Option<Vec<usize>>,
    /// The address of the first one; 0 if there are none.
    address: u64,
    /// The number of elements from the first to the last in memory.
    reach: usize,
}

impl Managed {
    /// The tensor, to read, without a copy. The deleter is called when the last view of it is dropped and the launches that use it have ended.
    ///
    /// # Errors
    /// If the device, the element type or the strides are not supported, or the address is not aligned to the elements (T1125); then the
    /// structure is freed.
    pub fn into_view(self) -> Result<DynView<'static>> {
        // The memory lives as long as a handle of it, so the view borrows nothing.
        self.imported("into_view", false).map(DynView::new)
    }

    /// The tensor, to read and to write, without a copy; otherwise as [`Managed::into_view`].
    ///
    /// # Errors
    /// As of [`Managed::into_view`]; if it is read-only (T1125), or two indices are one element (T1114).
    pub fn into_tensor(self) -> Result<DynTensor> {
        if self.is_read_only() {
            return refuse("into_tensor", "the elements are read-only", "read them by `into_view`, or ask for a copy");
        }
        self.imported("into_tensor", true)
    }

    fn imported(self, operation: &'static str, exclusive: bool) -> Result<DynTensor> {
        let found = self.found(operation)?;
        let device = self.device(operation)?;
        let place = Place { offset: 0, shape: &found.shape, strides: found.strides.as_deref() };
        let (rank, layout) = place.layout(operation, found.elem, found.reach, exclusive)?;
        let buffer = self.memory(operation, &device, &found, exclusive)?;
        Ok(DynTensor::of(buffer, rank, layout))
    }

    /// The element type, extents, strides and address, checked.
    fn found(&self, operation: &'static str) -> Result<Found> {
        let DLTensor { data, dtype, byte_offset, .. } = *self.tensor();
        let elem = elements::from_dlpack(operation, dtype, self.flags() & abi::SUBBYTE_PADDED != 0)?;
        let (shape, strides) = self.axes(operation)?;
        let strides = strides.map(<[i64]>::to_vec);
        let shape: Vec<usize> = numbers(operation, "extent", shape)?;
        let strides = strides.map(|strides| numbers(operation, "stride", &strides)).transpose()?;
        let too_far = "the elements reach beyond the memory that a program can have";
        let reach = reach(&shape, strides.as_deref())
            .filter(|n| n.checked_mul(8).is_some_and(|bytes| isize::try_from(bytes).is_ok()));
        let Some(reach) = reach else {
            return refuse(operation, too_far, "check extents and strides: they count elements");
        };
        if reach == 0 {
            return Ok(Found { elem, shape, strides: None, address: 0, reach });
        }
        if data.is_null() {
            return refuse(operation, "the address of the elements is null", "pass a tensor that has memory");
        }
        let Some(address) = (data.addr() as u64).checked_add(byte_offset) else {
            return refuse(operation, too_far, "check the offset: it counts bytes");
        };
        let unit = elem.bytes_for(1) as u64;
        if !address.is_multiple_of(unit) {
            let problem =
                format!("the address {address:#x} is not aligned to {unit} bytes, the size of an element `{elem}`");
            return refuse(operation, problem, "pass a copy, whose memory is aligned");
        }
        Ok(Found { elem, shape, strides, address, reach })
    }

    /// The extents and the strides, of which there may be none.
    #[expect(unsafe_code, reason = "a structure of C")]
    fn axes(&self, operation: &'static str) -> Result<(&[i64], Option<&[i64]>)> {
        let DLTensor { ndim, shape, strides, .. } = *self.tensor();
        let Ok(rank) = usize::try_from(ndim) else {
            return refuse(operation, format!("the tensor has {ndim} axes"), "pass a tensor");
        };
        if rank == 0 {
            return Ok((&[], None));
        }
        if shape.is_null() {
            return refuse(operation, format!("the tensor has {ndim} axes, but no extents"), "pass a tensor");
        }
        // SAFETY: `take` asks that the extents are `ndim` numbers, which live as long as the structure.
        let extents = unsafe { std::slice::from_raw_parts(shape.cast_const(), rank) };
        // SAFETY: the same for the strides, if there are any.
        let strides = (!strides.is_null()).then(|| unsafe { std::slice::from_raw_parts(strides.cast_const(), rank) });
        Ok((extents, strides))
    }

    /// The device of the memory.
    fn device(&self, operation: &'static str) -> Result<Device> {
        let abi::DLDevice { device_type, device_id } = self.tensor().device;
        match device_type {
            #[cfg(feature = "cpu")]
            abi::device::CPU | abi::device::CUDA_HOST => Ok(Device::cpu()),
            #[cfg(feature = "cuda")]
            abi::device::CUDA => match u32::try_from(device_id) {
                Ok(ordinal) => Device::cuda(ordinal),
                Err(_) => {
                    refuse(operation, format!("there is no CUDA device {device_id}"), "pass a tensor on a device")
                }
            },
            other => {
                let problem = format!(
                    "the tensor is on device {device_id} of kind {other} ({}), whose memory this build cannot use",
                    abi::device::name(other)
                );
                refuse(operation, problem, "copy it to the CPU, or to a CUDA device with the feature `cuda`")
            }
        }
    }

    /// The memory, which owns the structure.
    #[expect(unsafe_code, reason = "memory of others")]
    fn memory(self, operation: &'static str, device: &Device, found: &Found, exclusive: bool) -> Result<Buffer> {
        #[cfg(feature = "cuda")]
        if device.as_cuda().is_some() {
            // SAFETY: `take` asks that the memory holds the elements until the deleter is called, which the memory does.
            return unsafe {
                super::super::cuda::kept(operation, device, found.address, (found.elem, found.reach), Box::new(self))
            };
        }
        #[cfg(feature = "cpu")]
        {
            use super::super::backend::Storage;
            use titan_cpu::memory::Memory;
            let _ = operation;
            let len = found.elem.bytes_for(found.reach);
            // The pointer that the structure has, moved to the address that was checked.
            let first = self.tensor().data.cast::<u8>().map_addr(|_| usize::try_from(found.address).unwrap_or(0));
            let bytes = std::ptr::slice_from_raw_parts_mut(first, len);
            // SAFETY: as above; nobody else writes the elements, and if they are written here, nobody else uses them. Their
            // alignment was checked, and `take` asks that bytes of other types than `bool` are values.
            let memory = unsafe { Memory::kept(bytes, exclusive, Box::new(self)) };
            Ok(Buffer::of(device, len, (Storage::Cpu(memory), None)))
        }
        #[cfg(not(feature = "cpu"))]
        {
            let _ = (found, exclusive);
            refuse(operation, format!("this build has no memory of {device}"), "build with the feature of the device")
        }
    }
}

/// Numbers that are not negative.
fn numbers(operation: &'static str, what: &str, from: &[i64]) -> Result<Vec<usize>> {
    let each = from.iter().enumerate().map(|(axis, n)| match usize::try_from(*n) {
        Ok(n) => Ok(n),
        Err(_) => refuse(
            operation,
            format!("axis {axis} has the {what} {n}"),
            "pass a copy: extents and strides must not be negative",
        ),
    });
    each.collect()
}

/// The number of elements from the first to the last in memory; `None` if it overflows.
fn reach(shape: &[usize], strides: Option<&[usize]>) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    match strides {
        None => shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent)),
        Some(strides) => {
            let far = shape.iter().zip(strides);
            far.filter(|(n, _)| **n > 1).try_fold(1usize, |far, (n, s)| far.checked_add((n - 1).checked_mul(*s)?))
        }
    }
}
