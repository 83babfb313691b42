//! The table of the HIP runtime's functions, which is filled once.
//!
//! Types are those of the HIP runtime API; results are integers, see [`super::error`].

use super::sys::{
    DevicePtr, HipEvent, HipFunction, HipGraph, HipGraphExec, HipGraphNode, HipModule, HipStream, KernelNodeParams,
};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// A `hipError_t`.
pub(super) type Code = c_uint;

macro_rules! table {
    ($($name:ident($($ty:ty),*) -> $result:ty;)*) => {
        /// The runtime's functions.
        #[expect(non_snake_case, reason = "names of the runtime's functions")]
        pub(super) struct Table {
            $(pub(super) $name: unsafe extern "C" fn($($ty),*) -> $result,)*
        }

        /// The names by which they are looked up.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// The functions with the types of their arguments and results, as they are written here.
        pub const PROTOTYPES: &[(&str, &[&str], &str)] =
            &[$((stringify!($name), &[$(stringify!($ty)),*], stringify!($result))),*];

        impl Table {
            /// Looks up all functions; the error has the names of those that the library lacks.
            ///
            /// # Safety
            /// The functions that the library exports under these names must be the runtime's.
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
                })
            }
        }
    };
}

table! {
    hipInit(c_uint) -> Code;
    hipDriverGetVersion(*mut c_int) -> Code;
    hipGetErrorName(Code) -> *const c_char;
    hipGetDeviceCount(*mut c_int) -> Code;
    hipGetDevice(*mut c_int) -> Code;
    hipSetDevice(c_int) -> Code;
    hipGetDevicePropertiesR0600(*mut c_void, c_int) -> Code;
    hipDeviceGetName(*mut c_char, c_int, c_int) -> Code;
    hipDeviceGetAttribute(*mut c_int, c_uint, c_int) -> Code;
    hipDeviceTotalMem(*mut usize, c_int) -> Code;
    hipMemGetInfo(*mut usize, *mut usize) -> Code;
    hipMalloc(*mut DevicePtr, usize) -> Code;
    hipFree(DevicePtr) -> Code;
    hipMemsetD8Async(DevicePtr, u8, usize, HipStream) -> Code;
    hipMemcpyHtoDAsync(DevicePtr, *const c_void, usize, HipStream) -> Code;
    hipMemcpyDtoHAsync(*mut c_void, DevicePtr, usize, HipStream) -> Code;
    hipModuleLoadData(*mut HipModule, *const c_void) -> Code;
    hipModuleGetFunction(*mut HipFunction, HipModule, *const c_char) -> Code;
    hipModuleLaunchKernel(
        HipFunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, HipStream, *mut *mut c_void, *mut *mut c_void
    ) -> Code;
    hipStreamCreateWithFlags(*mut HipStream, c_uint) -> Code;
    hipStreamDestroy(HipStream) -> Code;
    hipStreamSynchronize(HipStream) -> Code;
    hipStreamQuery(HipStream) -> Code;
    hipStreamWaitEvent(HipStream, HipEvent, c_uint) -> Code;
    hipEventCreateWithFlags(*mut HipEvent, c_uint) -> Code;
    hipEventRecord(HipEvent, HipStream) -> Code;
    hipEventQuery(HipEvent) -> Code;
    hipEventSynchronize(HipEvent) -> Code;
    hipEventElapsedTime(*mut f32, HipEvent, HipEvent) -> Code;
    hipHostMalloc(*mut *mut c_void, usize, c_uint) -> Code;
    hipHostFree(*mut c_void) -> Code;
    hipStreamBeginCapture(HipStream, c_uint) -> Code;
    hipStreamEndCapture(HipStream, *mut HipGraph) -> Code;
    hipStreamGetCaptureInfo_v2(HipStream, *mut c_uint, *mut u64, *mut HipGraph, *mut *const HipGraphNode, *mut usize) -> Code;
    hipGraphInstantiateWithFlags(*mut HipGraphExec, HipGraph, u64) -> Code;
    hipGraphExecKernelNodeSetParams(HipGraphExec, HipGraphNode, *const KernelNodeParams) -> Code;
    hipGraphLaunch(HipGraphExec, HipStream) -> Code;
    hipGraphExecDestroy(HipGraphExec) -> Code;
    hipGraphDestroy(HipGraph) -> Code;
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table of {} functions", SYMBOLS.len())
    }
}
