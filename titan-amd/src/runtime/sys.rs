//! The types and numbers of the HIP runtime API that [`super::table`] uses.
//!
//! They belong to the binary interface of `libamdhip64.so` 6 and 7. HIP runtime API, `hip_runtime_api.h`, with which
//! a test compares them (`tests/runtime/header.rs`).

use std::ffi::{c_uint, c_void};
use std::mem::offset_of;

/// Defines opaque objects of the runtime, and handles to them.
macro_rules! handles {
    ($($object:ident, $handle:ident;)*) => {$(
        #[derive(Debug)]
        pub(super) enum $object {}
        pub(super) type $handle = *mut $object;
    )*};
}

handles! {
    Str, HipStream;
    Evt, HipEvent;
    Mod, HipModule;
    Func, HipFunction;
    Gph, HipGraph;
    Exec, HipGraphExec;
    Node, HipGraphNode;
}

/// A device address.
pub(super) type DevicePtr = *mut c_void;

// `hipDeviceAttribute_t`.
pub(super) const MAX_GRID_DIM_X: c_uint = 29;
pub(super) const MAX_GRID_DIM_Y: c_uint = 30;
pub(super) const MAX_GRID_DIM_Z: c_uint = 31;
pub(super) const MULTIPROCESSOR_COUNT: c_uint = 63;
pub(super) const MAX_SHARED_MEMORY_PER_BLOCK: c_uint = 74;

/// `hipDeviceProp_tR0600`: its size with room for versions that append to it, and the offset of the architecture's name.
pub const PROPERTIES_ROOM: usize = 4096;
pub(super) const ARCHITECTURE: std::ops::Range<usize> = 1160..1416;

pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
pub(super) const STREAM_CAPTURE_MODE_THREAD_LOCAL: c_uint = 1;
pub(super) const HOST_MALLOC_PORTABLE: c_uint = 1;
pub(super) const EVENT_BLOCKING_SYNC: c_uint = 1;
pub(super) const EVENT_DISABLE_TIMING: c_uint = 2;

// `HIP_LAUNCH_PARAM_*`: the tags of the list that contains the parameters.
pub(super) const LAUNCH_PARAM_BUFFER_POINTER: usize = 1;
pub(super) const LAUNCH_PARAM_BUFFER_SIZE: usize = 2;
pub(super) const LAUNCH_PARAM_END: usize = 3;

/// `dim3`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

impl Dim3 {
    pub(super) fn of([x, y, z]: [u32; 3]) -> Dim3 {
        Dim3 { x, y, z }
    }
}

/// `hipKernelNodeParams`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct KernelNodeParams {
    pub(super) block: Dim3,
    pub(super) extra: *mut *mut c_void,
    pub(super) func: *mut c_void,
    pub(super) grid: Dim3,
    pub(super) params: *mut *mut c_void,
    pub(super) shared_bytes: c_uint,
}

/// The numbers, by their expressions in C.
pub const NUMBERS: &[(&str, u64)] = &[
    ("hipDeviceAttributeMaxGridDimX", MAX_GRID_DIM_X as u64),
    ("hipDeviceAttributeMaxGridDimY", MAX_GRID_DIM_Y as u64),
    ("hipDeviceAttributeMaxGridDimZ", MAX_GRID_DIM_Z as u64),
    ("hipDeviceAttributeMultiprocessorCount", MULTIPROCESSOR_COUNT as u64),
    ("hipDeviceAttributeMaxSharedMemoryPerBlock", MAX_SHARED_MEMORY_PER_BLOCK as u64),
    ("offsetof(hipDeviceProp_tR0600, gcnArchName)", ARCHITECTURE.start as u64),
    ("sizeof(((hipDeviceProp_tR0600*)0)->gcnArchName)", (ARCHITECTURE.end - ARCHITECTURE.start) as u64),
    ("hipStreamNonBlocking", STREAM_NON_BLOCKING as u64),
    ("hipEventBlockingSync", EVENT_BLOCKING_SYNC as u64),
    ("hipEventDisableTiming", EVENT_DISABLE_TIMING as u64),
    ("(size_t)HIP_LAUNCH_PARAM_BUFFER_POINTER", LAUNCH_PARAM_BUFFER_POINTER as u64),
    ("(size_t)HIP_LAUNCH_PARAM_BUFFER_SIZE", LAUNCH_PARAM_BUFFER_SIZE as u64),
    ("(size_t)HIP_LAUNCH_PARAM_END", LAUNCH_PARAM_END as u64),
    ("hipStreamCaptureModeThreadLocal", STREAM_CAPTURE_MODE_THREAD_LOCAL as u64),
    ("hipHostMallocPortable", HOST_MALLOC_PORTABLE as u64),
    ("sizeof(hipKernelNodeParams)", size_of::<KernelNodeParams>() as u64),
    ("offsetof(hipKernelNodeParams, blockDim)", offset_of!(KernelNodeParams, block) as u64),
    ("offsetof(hipKernelNodeParams, extra)", offset_of!(KernelNodeParams, extra) as u64),
    ("offsetof(hipKernelNodeParams, func)", offset_of!(KernelNodeParams, func) as u64),
    ("offsetof(hipKernelNodeParams, gridDim)", offset_of!(KernelNodeParams, grid) as u64),
    ("offsetof(hipKernelNodeParams, kernelParams)", offset_of!(KernelNodeParams, params) as u64),
    ("offsetof(hipKernelNodeParams, sharedMemBytes)", offset_of!(KernelNodeParams, shared_bytes) as u64),
];
