//! tidy: table
//! The meaning of the driver's results: one row per result that TITAN's calls can return.
//!
//! Source: CUDA driver API manual, "Data types used by CUDA driver", `CUresult`, version 12.6. A *sticky* error leaves the
//! context unusable: "the process must be terminated and relaunched", as the manual says in each such row.

use std::fmt;

/// The kind of a failure, which determines what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The device or the host has no memory left.
    OutOfMemory,
    /// The context is dead: every later call in this process fails too.
    Sticky,
    /// The kernel ran longer than the system allows, and the context is dead.
    Timeout,
    /// The machine is not set up for the request: driver, permissions, modes.
    Setup,
    /// The code does not fit the device or the driver.
    Code,
    /// Any other error: an incorrect use of the driver.
    Other,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    code: u32,
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    help: &'static str,
}

const RESTART: &str = "restart the program: the driver does not allow this process a new context on the device";
const DRIVER: &str = "check `nvidia-smi`; restart the machine after a driver update";
const REPORT: &str = "this may be a bug in TITAN; please report it with the kernel";

const fn row(code: u32, name: &'static str, kind: Kind, meaning: &'static str, help: &'static str) -> Row {
    Row { code, name, kind, meaning, help }
}

/// The table of results.
const ROWS: &[Row] = &[
    row(1, "CUDA_ERROR_INVALID_VALUE", Kind::Other, "an argument of a driver call is out of range", REPORT),
    row(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        Kind::OutOfMemory,
        "there is not enough memory",
        "drop tensors that are no longer needed, or use smaller ones",
    ),
    row(3, "CUDA_ERROR_NOT_INITIALIZED", Kind::Setup, "the driver has not been initialized", DRIVER),
    row(
        4,
        "CUDA_ERROR_DEINITIALIZED",
        Kind::Setup,
        "the driver is shutting down, because the process is ending",
        "wait for the GPU's work, in all threads, before `main` returns",
    ),
    row(
        34,
        "CUDA_ERROR_STUB_LIBRARY",
        Kind::Setup,
        "the library is the stub of the CUDA toolkit, not a driver",
        "remove `stubs` folders from the library path",
    ),
    row(
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        Kind::Setup,
        "the device is busy or in a mode that allows no new context",
        "check the compute mode and the processes in `nvidia-smi`",
    ),
    row(
        100,
        "CUDA_ERROR_NO_DEVICE",
        Kind::Setup,
        "there is no CUDA device",
        "check `nvidia-smi`, and `CUDA_VISIBLE_DEVICES` if it is set",
    ),
    row(
        101,
        "CUDA_ERROR_INVALID_DEVICE",
        Kind::Setup,
        "there is no device with this number",
        "check `nvidia-smi`, and `CUDA_VISIBLE_DEVICES` if it is set",
    ),
    row(200, "CUDA_ERROR_INVALID_IMAGE", Kind::Code, "the kernel's code is not valid", REPORT),
    row(
        201,
        "CUDA_ERROR_INVALID_CONTEXT",
        Kind::Other,
        "the context is not valid: the device may have been reset",
        RESTART,
    ),
    row(205, "CUDA_ERROR_MAP_FAILED", Kind::OutOfMemory, "memory could not be mapped", "free host memory"),
    row(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", Kind::Code, "no embedded code fits the device", "build for its target"),
    row(
        214,
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        Kind::Sticky,
        "the device's memory had an error that could not be corrected",
        "check `nvidia-smi -q`: the device may be broken",
    ),
    row(218, "CUDA_ERROR_INVALID_PTX", Kind::Code, "the driver's compiler rejects the kernel's PTX", REPORT),
    row(
        220,
        "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        Kind::Sticky,
        "a link between devices had an error that could not be corrected",
        "check `nvidia-smi nvlink -e`",
    ),
    row(
        221,
        "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        Kind::Setup,
        "the driver's PTX compiler (libnvidia-ptxjitcompiler) is missing",
        "install it with the driver; in containers, request the driver capability `compute`",
    ),
    row(
        222,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        Kind::Code,
        "the driver is older than the kernel's PTX",
        "update the driver",
    ),
    row(
        223,
        "CUDA_ERROR_JIT_COMPILATION_DISABLED",
        Kind::Setup,
        "compilation of PTX is disabled",
        "unset `CUDA_DISABLE_PTX_JIT`",
    ),
    row(226, "CUDA_ERROR_CONTAINED", Kind::Sticky, "a hardware error was contained to this process", RESTART),
    row(300, "CUDA_ERROR_INVALID_SOURCE", Kind::Code, "the kernel's code is not valid", REPORT),
    row(304, "CUDA_ERROR_OPERATING_SYSTEM", Kind::Setup, "the operating system refused a call of the driver", DRIVER),
    row(400, "CUDA_ERROR_INVALID_HANDLE", Kind::Other, "a handle is not valid", REPORT),
    row(401, "CUDA_ERROR_ILLEGAL_STATE", Kind::Other, "a resource is not in the right state for this call", REPORT),
    row(500, "CUDA_ERROR_NOT_FOUND", Kind::Code, "the code has no kernel of this name", REPORT),
    row(
        700,
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        Kind::Sticky,
        "a kernel accessed an address that is not memory",
        "kernels of TITAN access only their tensors: check borrowed pointers and kernels of other libraries",
    ),
    row(
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        Kind::Code,
        "a thread block needs more registers or threads than the device has",
        "use smaller tiles",
    ),
    row(
        702,
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        Kind::Timeout,
        "a kernel ran longer than the system allows on a device that shows a desktop",
        "split the work into shorter launches, or use a device without a display",
    ),
    row(
        709,
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        Kind::Sticky,
        "the context was destroyed: the device may have been reset",
        RESTART,
    ),
    row(710, "CUDA_ERROR_ASSERT", Kind::Sticky, "an assertion in a kernel of another library failed", RESTART),
    row(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", Kind::Other, "host memory is not registered", REPORT),
    row(714, "CUDA_ERROR_HARDWARE_STACK_ERROR", Kind::Sticky, "a kernel's stack is corrupted", RESTART),
    row(
        715,
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        Kind::Sticky,
        "a kernel executed an instruction that the device does not have",
        RESTART,
    ),
    row(
        716,
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        Kind::Sticky,
        "a kernel accessed an address that is not aligned to the size of the access",
        "check borrowed pointers",
    ),
    row(
        717,
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        Kind::Sticky,
        "a kernel used an address of the wrong memory space",
        RESTART,
    ),
    row(718, "CUDA_ERROR_INVALID_PC", Kind::Sticky, "a kernel jumped to where there is no code", RESTART),
    row(719, "CUDA_ERROR_LAUNCH_FAILED", Kind::Sticky, "a kernel failed, and the device does not report why", RESTART),
    row(
        720,
        "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        Kind::Code,
        "a cooperative grid does not fit the device",
        "use a smaller grid",
    ),
    row(800, "CUDA_ERROR_NOT_PERMITTED", Kind::Setup, "the operation is not permitted", DRIVER),
    row(
        801,
        "CUDA_ERROR_NOT_SUPPORTED",
        Kind::Setup,
        "the device or the driver does not support the operation",
        "update the driver",
    ),
    row(
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        Kind::Setup,
        "the system is not ready: a service such as the fabric manager is not running",
        DRIVER,
    ),
    row(
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        Kind::Setup,
        "the kernel module and the library of the driver have different versions",
        "restart the machine, or install matching versions",
    ),
    row(
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        Kind::Setup,
        "the forward-compatibility library does not support the device",
        "remove `compat` folders from the library path",
    ),
    row(
        805,
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        Kind::Setup,
        "the MPS server cannot be reached",
        "restart it, or unset `CUDA_MPS_PIPE_DIRECTORY`",
    ),
    row(
        808,
        "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
        Kind::Setup,
        "the MPS server has no room for another client",
        "end other processes",
    ),
    row(
        900,
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        Kind::Other,
        "the stream is being captured into a graph",
        "end the capture before TITAN uses the stream",
    ),
    row(901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", Kind::Other, "the capture of a graph was broken", REPORT),
    row(
        906,
        "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        Kind::Other,
        "another stream is being captured into a graph",
        "end the capture before TITAN uses the device",
    ),
    row(
        910,
        "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
        Kind::Other,
        "the driver cannot replace the parameters of a graph",
        REPORT,
    ),
    row(999, "CUDA_ERROR_UNKNOWN", Kind::Sticky, "the driver does not say what happened", RESTART),
];

/// An error that a driver call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The function that returned it.
    pub call: &'static str,
    /// The number of the result.
    pub code: u32,
    /// The name of the result, as the driver reports it.
    pub name: String,
}

impl DriverError {
    /// The error of a call, by its number; `name` provides a name for results that the table lacks.
    pub fn new(call: &'static str, code: u32, name: impl FnOnce() -> Option<String>) -> Self {
        let known = find(code).map(|r| r.name.to_owned());
        let name = known.or_else(name).unwrap_or_else(|| format!("CUresult {code}"));
        DriverError { call, code, name }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        find(self.code).map_or(Kind::Other, |r| r.kind)
    }

    /// Whether the context has ended, and all its work with it: the device was lost or reset, or the process is exiting.
    #[must_use]
    pub fn ends_context(&self) -> bool {
        const DEINITIALIZED: u32 = 4;
        const INVALID_CONTEXT: u32 = 201;
        matches!(self.kind(), Kind::Sticky | Kind::Timeout) || matches!(self.code, DEINITIALIZED | INVALID_CONTEXT)
    }

    /// The meaning of the error, as a clause.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        find(self.code).map_or("the driver reports an error that this version of TITAN does not know", |r| r.meaning)
    }

    /// A suggestion how to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        find(self.code).map_or("look the name up in the manual of the CUDA driver API", |r| r.help)
    }
}

/// The name and number of every result.
pub fn names() -> impl Iterator<Item = (&'static str, u32)> {
    ROWS.iter().map(|row| (row.name, row.code))
}

fn find(code: u32) -> Option<&'static Row> {
    ROWS.iter().find(|r| r.code == code)
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} from {})", self.meaning(), self.name, self.call)
    }
}

impl std::error::Error for DriverError {}
