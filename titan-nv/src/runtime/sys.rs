//! The types and numbers of the CUDA driver API that [`super::table`] uses: handles, attributes, flags.
//!
//! They are TITAN's own, so that the runtime does not depend on a version of external bindings. The numbers belong to the
//! driver's binary interface: NVIDIA adds to them and changes none. They are those of `cuda.h` 12.0, and a test compares each
//! with bindings that were made from the header. CUDA Driver API, "Data types used by CUDA driver".

use std::ffi::{c_int, c_uint, c_void};

/// Defines opaque objects of the driver, and handles to them.
macro_rules! handles {
    ($($object:ident, $handle:ident;)*) => {$(
        #[derive(Debug)]
        pub(super) enum $object {}
        pub(super) type $handle = *mut $object;
    )*};
}

handles! {
    Ctx, CUcontext;
    Mod, CUmodule;
    Func, CUfunction;
    Str, CUstream;
    Evt, CUevent;
    Pool, CUmemoryPool;
    Gph, CUgraph;
    Exec, CUgraphExec;
    Node, CUgraphNode;
    Kern, CUkernel;
}

/// The driver's number of a device.
pub(super) type CUdevice = c_int;
/// A device address.
pub(super) type CUdeviceptr = u64;

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct KernelNodeParams {
    pub(super) func: CUfunction,
    pub(super) grid_x: c_uint,
    pub(super) grid_y: c_uint,
    pub(super) grid_z: c_uint,
    pub(super) block_x: c_uint,
    pub(super) block_y: c_uint,
    pub(super) block_z: c_uint,
    pub(super) shared_bytes: c_uint,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    /// A kernel of a library, instead of the function.
    pub(super) kernel: CUkernel,
    /// The context of such a kernel.
    pub(super) context: CUcontext,
}

/// The size and alignment of the structure, and the offsets of its members in their order.
pub const KERNEL_NODE_PARAMS: &[usize] = &[
    size_of::<KernelNodeParams>(),
    align_of::<KernelNodeParams>(),
    std::mem::offset_of!(KernelNodeParams, func),
    std::mem::offset_of!(KernelNodeParams, grid_x),
    std::mem::offset_of!(KernelNodeParams, grid_y),
    std::mem::offset_of!(KernelNodeParams, grid_z),
    std::mem::offset_of!(KernelNodeParams, block_x),
    std::mem::offset_of!(KernelNodeParams, block_y),
    std::mem::offset_of!(KernelNodeParams, block_z),
    std::mem::offset_of!(KernelNodeParams, shared_bytes),
    std::mem::offset_of!(KernelNodeParams, params),
    std::mem::offset_of!(KernelNodeParams, extra),
    std::mem::offset_of!(KernelNodeParams, kernel),
    std::mem::offset_of!(KernelNodeParams, context),
];

/// Defines numbers of the driver's interface. Enums are `int` or `unsigned int` there, which are passed alike.
macro_rules! numbers {
    ($($of:ident { $($(#[$doc:meta])* $name:ident = $value:literal;)* })*) => {
        $($($(#[$doc])* pub(super) const $name: c_uint = $value;)*)*

        /// All of them, by their names in the header.
        pub const NUMBERS: &[(&str, c_uint)] = &[$($((stringify!($name), $name),)*)*];
    };
}

numbers! {
    CUdevice_attribute_enum {
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5;
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6;
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7;
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115;
    }
    CUfunction_attribute_enum {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0;
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4;
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
    }
    CUpointer_attribute_enum {
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11;
        CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12;
    }
    CUmemPool_attribute_enum {
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5;
    }
    CUjit_option_enum {
        CU_JIT_INFO_LOG_BUFFER = 3;
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4;
        CU_JIT_ERROR_LOG_BUFFER = 5;
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;
    }
    CUstream_flags_enum {
        CU_STREAM_NON_BLOCKING = 1;
    }
    CUstreamCaptureMode_enum {
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;
    }
    CUtensorMapInterleave_enum {
        CU_TENSOR_MAP_INTERLEAVE_NONE = 0;
    }
    CUevent_flags_enum {
        CU_EVENT_BLOCKING_SYNC = 1;
        CU_EVENT_DISABLE_TIMING = 2;
    }
    cuMemHostAlloc {
        /// Host memory for every context.
        CU_MEMHOSTALLOC_PORTABLE = 1;
        /// Host memory with an address for the device.
        CU_MEMHOSTALLOC_DEVICEMAP = 2;
    }
}
