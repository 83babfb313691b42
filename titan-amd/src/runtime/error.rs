//! tidy: table
//! The meaning of the runtime's results: one row per result that TITAN's calls can return.
//!
//! Source: HIP runtime API, `hipError_t` (the numbers are those of CUDA where the meaning is). A *sticky* error leaves the
//! device unusable for the process. A kernel that accesses what is not memory often ends the process at once: AMD's
//! lower runtime says "Memory access fault by GPU node" and aborts, and no error is ever returned.

use std::fmt;

/// The kind of a failure, which determines what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The device or the host has no memory left.
    OutOfMemory,
    /// The device is lost: every later call in this process fails too.
    Sticky,
    /// The kernel ran longer than the system allows.
    Timeout,
    /// The machine is not set up for the request: driver, permissions, modes.
    Setup,
    /// The code does not fit the device or the runtime.
    Code,
    /// Any other error: an incorrect use of the runtime.
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

const RESTART: &str = "restart the program: this process can no longer use the device";
const DRIVER: &str = "check `rocminfo`, and that the user is in the groups `render` and `video`";
const REPORT: &str = "this may be a bug in TITAN; please report it";

const fn row(code: u32, name: &'static str, kind: Kind, meaning: &'static str, help: &'static str) -> Row {
    Row { code, name, kind, meaning, help }
}

/// The table of results.
const ROWS: &[Row] = &[
    row(1, "hipErrorInvalidValue", Kind::Other, "an argument of a call of the runtime is out of range", REPORT),
    row(
        2,
        "hipErrorOutOfMemory",
        Kind::OutOfMemory,
        "there is not enough memory",
        "drop tensors that are no longer needed, or use smaller ones",
    ),
    row(3, "hipErrorNotInitialized", Kind::Setup, "the runtime has not been initialized", DRIVER),
    row(
        4,
        "hipErrorDeinitialized",
        Kind::Setup,
        "the runtime is shutting down, because the process is ending",
        "wait for the GPU's work, in all threads, before `main` returns",
    ),
    row(35, "hipErrorInsufficientDriver", Kind::Setup, "the kernel driver is older than the runtime", "update it"),
    row(98, "hipErrorInvalidDeviceFunction", Kind::Code, "the code object has no code for the device", "build for it"),
    row(
        100,
        "hipErrorNoDevice",
        Kind::Setup,
        "there is no AMD GPU that the runtime can use",
        "check `rocminfo`, and `HIP_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` if they are set",
    ),
    row(
        101,
        "hipErrorInvalidDevice",
        Kind::Setup,
        "there is no device with this number",
        "check `rocminfo`, and `HIP_VISIBLE_DEVICES` if it is set",
    ),
    row(200, "hipErrorInvalidImage", Kind::Code, "the code object is not valid", "check how it was built"),
    row(201, "hipErrorInvalidContext", Kind::Other, "the device is not valid: it may have been reset", RESTART),
    row(205, "hipErrorMapFailed", Kind::OutOfMemory, "memory could not be mapped", "free host memory"),
    row(209, "hipErrorNoBinaryForGpu", Kind::Code, "the code object is for another device", "build it for this one"),
    row(
        214,
        "hipErrorECCNotCorrectable",
        Kind::Sticky,
        "the device's memory had an error that could not be corrected",
        "check `amd-smi`: the device may be broken",
    ),
    row(300, "hipErrorInvalidSource", Kind::Code, "the code object is not valid", "check how it was built"),
    row(
        302,
        "hipErrorSharedObjectSymbolNotFound",
        Kind::Code,
        "the code object lacks a symbol",
        "check how it was built",
    ),
    row(
        303,
        "hipErrorSharedObjectInitFailed",
        Kind::Code,
        "the code object could not be loaded",
        "check how it was built",
    ),
    row(304, "hipErrorOperatingSystem", Kind::Setup, "the operating system refused a call of the runtime", DRIVER),
    row(400, "hipErrorInvalidHandle", Kind::Other, "a handle is not valid", REPORT),
    row(401, "hipErrorIllegalState", Kind::Other, "a resource is not in the right state for this call", REPORT),
    row(500, "hipErrorNotFound", Kind::Code, "the code object has no kernel of this name", "check the name"),
    row(
        700,
        "hipErrorIllegalAddress",
        Kind::Sticky,
        "a kernel accessed an address that is not memory",
        "check the kernel's arguments and its accesses",
    ),
    row(
        701,
        "hipErrorLaunchOutOfResources",
        Kind::Code,
        "a workgroup needs more than the device has",
        "use fewer work items, registers or bytes of the local data share",
    ),
    row(
        702,
        "hipErrorLaunchTimeOut",
        Kind::Timeout,
        "a kernel ran longer than the system allows",
        "split the work into shorter launches",
    ),
    row(709, "hipErrorContextIsDestroyed", Kind::Sticky, "the device was reset", RESTART),
    row(710, "hipErrorAssert", Kind::Sticky, "an assertion in a kernel failed", RESTART),
    row(719, "hipErrorLaunchFailure", Kind::Sticky, "a kernel failed, and the device does not report why", RESTART),
    row(
        801,
        "hipErrorNotSupported",
        Kind::Setup,
        "the device or the runtime does not support the operation",
        "update ROCm",
    ),
    row(
        900,
        "hipErrorStreamCaptureUnsupported",
        Kind::Other,
        "the stream is being captured into a graph",
        "end the capture before TITAN uses the stream",
    ),
    row(
        906,
        "hipErrorStreamCaptureImplicit",
        Kind::Other,
        "another stream is being captured into a graph",
        "end the capture before TITAN uses the device",
    ),
    row(999, "hipErrorUnknown", Kind::Sticky, "the runtime does not say what happened", RESTART),
    row(1052, "hipErrorRuntimeMemory", Kind::OutOfMemory, "AMD's lower runtime has no memory", DRIVER),
    row(1053, "hipErrorRuntimeOther", Kind::Setup, "AMD's lower runtime failed", DRIVER),
];

/// An error that a call of the runtime returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The function that returned it.
    pub call: &'static str,
    /// The number of the result.
    pub code: u32,
    /// The name of the result, as the runtime reports it.
    pub name: String,
}

impl DriverError {
    /// The error of a call, by its number; `name` provides a name for results that the table lacks.
    pub fn new(call: &'static str, code: u32, name: impl FnOnce() -> Option<String>) -> Self {
        let known = find(code).map(|r| r.name.to_owned());
        let name = known.or_else(name).unwrap_or_else(|| format!("hipError_t {code}"));
        DriverError { call, code, name }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        find(self.code).map_or(Kind::Other, |r| r.kind)
    }

    /// Whether all work of the process on the device has ended: the device was lost or reset, or the process is exiting.
    #[must_use]
    pub fn ends_context(&self) -> bool {
        const DEINITIALIZED: u32 = 4;
        const INVALID_CONTEXT: u32 = 201;
        matches!(self.kind(), Kind::Sticky | Kind::Timeout) || matches!(self.code, DEINITIALIZED | INVALID_CONTEXT)
    }

    /// The meaning of the error, as a clause.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        find(self.code).map_or("the runtime reports an error that this version of TITAN does not know", |r| r.meaning)
    }

    /// A suggestion how to fix it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        find(self.code).map_or("look the name up in the manual of the HIP runtime API", |r| r.help)
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
