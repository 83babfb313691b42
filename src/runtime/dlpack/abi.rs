//! The C structures of DLPack 1.x, as its header `dlpack.h` declares them.
//!
//! Deliberately absent: the functions of `DLPackExchangeAPI`, through which a framework may ask another one for tensors without Python.

use std::ffi::c_void;

/// `DLDevice`: a device by its kind and its number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// A `DLDeviceType`.
    pub device_type: i32,
    /// The number of the device, 0 for the CPU.
    pub device_id: i32,
}

/// `DLDataType`: an element type by its kind, its width and the number of values in an element.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// A `DLDataTypeCode`.
    pub code: u8,
    /// The bits of a value.
    pub bits: u8,
    /// The values in an element; 1 unless elements are vectors.
    pub lanes: u16,
}

/// `DLTensor`: a tensor in memory of others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory; null if there are no elements.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DLDevice,
    /// The number of axes.
    pub ndim: i32,
    /// The element type.
    pub dtype: DLDataType,
    /// The extents, of which there are `ndim`.
    pub shape: *mut i64,
    /// The strides in elements, of which there are `ndim`; null for row-major order.
    pub strides: *mut i64,
    /// The position of the first element behind `data`, in bytes.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: a tensor and what frees it, before version 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this structure; null if there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLPackVersion`: structures of one major version are alike.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DLPackVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: a tensor and what frees it, since version 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version. Of another major version, only this field, `manager_ctx` and `deleter` may be used.
    pub version: DLPackVersion,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this structure; null if there is nothing to free.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bits such as [`READ_ONLY`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// The version of the structures here.
pub(super) const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the elements must not be written.
pub const READ_ONLY: u64 = 1;

/// `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`: each element of less than a byte has a byte of its own.
pub(super) const SUBBYTE_PADDED: u64 = 4;

/// Kinds of devices, `DLDeviceType`.
pub(super) mod device {
    pub(crate) const CPU: i32 = 1;
    pub(crate) const CUDA: i32 = 2;
    /// Memory of the host that is pinned for CUDA.
    pub(crate) const CUDA_HOST: i32 = 3;

    /// The name in the header of a number, for messages.
    pub(crate) fn name(device_type: i32) -> &'static str {
        match device_type {
            CPU => "kDLCPU",
            CUDA => "kDLCUDA",
            CUDA_HOST => "kDLCUDAHost",
            4 => "kDLOpenCL",
            7 => "kDLVulkan",
            8 => "kDLMetal",
            9 => "kDLVPI",
            10 => "kDLROCM",
            11 => "kDLROCMHost",
            12 => "kDLExtDev",
            13 => "kDLCUDAManaged",
            14 => "kDLOneAPI",
            15 => "kDLWebGPU",
            16 => "kDLHexagon",
            17 => "kDLMAIA",
            18 => "kDLTrn",
            _ => "unknown",
        }
    }
}
