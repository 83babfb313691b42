//! The table of the driver's functions, which is filled once.
//!
//! Types are those of the CUDA driver API manual, version 12.0; results are integers, see [`super::error`].

use super::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUmemoryPool, CUmodule,
    CUstream, KernelNodeParams,
};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A `CUresult`.
pub(super) type Code = c_uint;

macro_rules! table {
    (required { $($name:ident($($ty:ty),*);)* } optional { $($(#[$doc:meta])* $maybe:ident($($of:ty),*);)* }) => {
        /// The driver's functions.
        #[expect(non_snake_case, reason = "names of the driver's functions")]
        pub(super) struct Table {
            $(pub(super) $name: unsafe extern "C" fn($($ty),*) -> Code,)*
            $($(#[$doc])* pub(super) $maybe: Option<unsafe extern "C" fn($($of),*) -> Code>,)*
        }

        /// The names by which they are looked up.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// The names of functions that a driver may lack; the features that need them report this when they are used.
        pub const OPTIONAL_SYMBOLS: &[&str] = &[$(stringify!($maybe)),*];

        impl Table {
            /// Looks up all functions; the error has the names of those that the library lacks, except optional ones.
            ///
            /// # Safety
            /// The functions that the library exports under these names must be the driver's.
            pub(super) unsafe fn load(library: &libloading::Library) -> Result<Table, Vec<&'static str>> {
                let missing = |name: &&&str| {
                    // SAFETY: the pointer is only tested; nothing is called through it.
                    unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err()
                };
                let missing: Vec<&'static str> = SYMBOLS.iter().filter(missing).copied().collect();
                Ok(Table {
                    $($name: {
                        // SAFETY: the caller says that the symbol is the function of this name, and the type is its
                        // prototype in the manual.
                        match unsafe { library.get(stringify!($name).as_bytes()) } {
                            Ok(symbol) => *symbol,
                            Err(_) => return Err(missing),
                        }
                    },)*
                    $($maybe: {
                        // SAFETY: as above.
                        unsafe { library.get(stringify!($maybe).as_bytes()) }.ok().map(|symbol| *symbol)
                    },)*
                })
            }
        }
    };
}

table! {
    required {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuGetErrorName(Code, *mut *const c_char);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut CUdevice, c_int);
        cuDeviceGetName(*mut c_char, c_int, CUdevice);
        cuDeviceGetAttribute(*mut c_int, c_uint, CUdevice);
        cuDeviceTotalMem_v2(*mut usize, CUdevice);
        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
        cuCtxGetCurrent(*mut CUcontext);
        cuCtxSetCurrent(CUcontext);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut CUdeviceptr, usize);
        cuMemFree_v2(CUdeviceptr);
        cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
        cuMemFreeAsync(CUdeviceptr, CUstream);
        cuDeviceGetDefaultMemPool(*mut CUmemoryPool, CUdevice);
        cuMemPoolSetAttribute(CUmemoryPool, c_uint, *mut c_void);
        cuMemPoolGetAttribute(CUmemoryPool, c_uint, *mut c_void);
        cuMemPoolTrimTo(CUmemoryPool, usize);
        cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemFreeHost(*mut c_void);
        cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
        cuPointerGetAttribute(*mut c_void, c_uint, CUdeviceptr);
        cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut c_uint, *mut *mut c_void);
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
        cuModuleUnload(CUmodule);
        cuFuncGetAttribute(*mut c_int, c_uint, CUfunction);
        cuFuncSetAttribute(CUfunction, c_uint, c_int);
        cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, CUfunction, c_int, usize);
        cuLaunchKernel(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
        );
        cuStreamCreate(*mut CUstream, c_uint);
        cuStreamDestroy_v2(CUstream);
        cuCtxSynchronize();
        cuStreamSynchronize(CUstream);
        cuStreamQuery(CUstream);
        cuStreamWaitEvent(CUstream, CUevent, c_uint);
        cuEventCreate(*mut CUevent, c_uint);
        cuEventRecord(CUevent, CUstream);
        cuEventQuery(CUevent);
        cuEventSynchronize(CUevent);
        cuEventElapsedTime(*mut f32, CUevent, CUevent);
        cuStreamBeginCapture_v2(CUstream, c_uint);
        cuStreamEndCapture(CUstream, *mut CUgraph);
        cuStreamGetCaptureInfo_v2(CUstream, *mut c_uint, *mut u64, *mut CUgraph, *mut *const CUgraphNode, *mut usize);
        cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, u64);
        cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, *const KernelNodeParams);
        cuGraphLaunch(CUgraphExec, CUstream);
        cuGraphExecDestroy(CUgraphExec);
        cuGraphDestroy(CUgraph);
    }
    optional {
        /// The encoder of tensor maps: CUDA driver API, "Tensor Map Object Managment". The map must be aligned to 64 bytes.
        cuTensorMapEncodeTiled(
            *mut c_void, c_uint, c_uint, *mut c_void, *const u64, *const u64, *const u32, *const u32, c_uint, c_uint, c_uint, c_uint
        );
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table of {} functions, and of {} that may be missing", SYMBOLS.len(), OPTIONAL_SYMBOLS.len())
    }
}
