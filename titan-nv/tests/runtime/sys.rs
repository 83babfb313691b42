//! The numbers of the driver's interface, against bindings that are made from the header.

use cudarc::driver::sys;
use titan_nv::runtime::internals::{KERNEL_NODE_PARAMS, NUMBERS};

/// The names of these numbers, and their values in the bindings.
macro_rules! bindings {
    ($($binding:ident { $($name:ident)* })*) => {
        vec![$($((stringify!($name), sys::$binding::$name as u32),)*)*]
    };
}

#[test]
fn numbers_are_those_of_the_header() {
    let mut wanted = bindings! {
        CUdevice_attribute_enum {
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
            CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        }
        CUfunction_attribute_enum {
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            CU_FUNC_ATTRIBUTE_NUM_REGS
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        }
        CUpointer_attribute_enum {
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
            CU_POINTER_ATTRIBUTE_RANGE_SIZE
        }
        CUmemPool_attribute_enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT }
        CUjit_option_enum {
            CU_JIT_INFO_LOG_BUFFER
            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
            CU_JIT_ERROR_LOG_BUFFER
            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
        }
        CUstream_flags_enum { CU_STREAM_NON_BLOCKING }
        CUstreamCaptureMode_enum { CU_STREAM_CAPTURE_MODE_THREAD_LOCAL }
        CUtensorMapInterleave_enum { CU_TENSOR_MAP_INTERLEAVE_NONE }
        CUevent_flags_enum {
            CU_EVENT_BLOCKING_SYNC
            CU_EVENT_DISABLE_TIMING
        }
    };
    // These are macros of the header.
    wanted.push(("CU_MEMHOSTALLOC_PORTABLE", sys::CU_MEMHOSTALLOC_PORTABLE));
    wanted.push(("CU_MEMHOSTALLOC_DEVICEMAP", sys::CU_MEMHOSTALLOC_DEVICEMAP));
    // Every number, so that a new one is compared too.
    assert_eq!(NUMBERS, wanted);
}

/// Where the driver finds the parameters of a kernel of a graph.
#[test]
fn the_parameters_of_a_node_lie_as_in_the_header() {
    use std::mem::offset_of;
    type Params = sys::CUDA_KERNEL_NODE_PARAMS_v2_st;
    let wanted = [
        size_of::<Params>(),
        align_of::<Params>(),
        offset_of!(Params, func),
        offset_of!(Params, gridDimX),
        offset_of!(Params, gridDimY),
        offset_of!(Params, gridDimZ),
        offset_of!(Params, blockDimX),
        offset_of!(Params, blockDimY),
        offset_of!(Params, blockDimZ),
        offset_of!(Params, sharedMemBytes),
        offset_of!(Params, kernelParams),
        offset_of!(Params, extra),
        offset_of!(Params, kern),
        offset_of!(Params, ctx),
    ];
    assert_eq!(KERNEL_NODE_PARAMS, wanted);
}
