//! Translates failures of the HIP runtime to errors.

use super::super::device::Device;
use crate::error::Error;
use titan_amd::runtime::{Context, DriverError, Kind, LoadError, Misfit};

/// The error of a call of the runtime that failed during the operation `doing`.
pub(super) fn driver(device: &str, error: &DriverError, doing: &str) -> Error {
    match error.kind() {
        Kind::Sticky | Kind::Timeout => work(device, doing, error),
        Kind::OutOfMemory | Kind::Setup | Kind::Code | Kind::Other | _ => Error::Driver {
            doing: doing.to_owned(),
            device: device.to_owned(),
            message: error.to_string(),
            help: error.help(),
        },
    }
}

/// The error of work called `what` that failed on the device.
pub(super) fn work(device: &str, what: &str, error: &DriverError) -> Error {
    let (what, device, message) = (what.to_owned(), device.to_owned(), error.to_string());
    match error.kind() {
        Kind::Timeout => Error::Timeout { what, device, message, help: error.help() },
        Kind::Sticky => Error::DeviceLost { what, device, message, help: error.help() },
        Kind::OutOfMemory | Kind::Setup | Kind::Code | Kind::Other | _ => {
            Error::Driver { doing: what, device, message, help: error.help() }
        }
    }
}

/// The error of an allocation that failed.
pub(super) fn allocation(device: &Device, context: &'static Context, bytes: usize, error: &DriverError) -> Error {
    if error.kind() == Kind::OutOfMemory {
        return Error::OutOfMemory { bytes, device: device.to_string(), free: context.memory().ok() };
    }
    driver(&device.to_string(), error, "an allocation")
}

/// The error of a code object, or of a kernel in it, called `what`, that could not be loaded.
pub(super) fn load(device: &str, what: &str, error: &LoadError) -> Error {
    let help = match error {
        LoadError::Object(_) => {
            "pass the bytes of a version 5 code object for gfx942, as LLVM's assembler and compilers write them"
        }
        LoadError::Target { code, device: machine } => return foreign(device, what, code, machine),
        LoadError::Driver(error) => return driver(device, error, &format!("loading {what}")),
        LoadError::NoKernel { .. } | _ => "use the name of a kernel in the code object",
    };
    Error::CodeObject { what: what.to_owned(), device: device.to_owned(), problem: error.to_string(), help }
}

/// The error of one of TITAN's kernels that could not be loaded.
pub(super) fn kernel(device: &str, kernel: &str, error: &LoadError) -> Error {
    let what = format!("kernel `{kernel}`");
    match error {
        LoadError::Target { code, device: machine } => foreign(device, &what, code, machine),
        LoadError::Driver(error) => {
            if error.kind() != Kind::Code {
                return driver(device, error, &format!("loading {what}"));
            }
            let (kernel, device, message) = (kernel.to_owned(), device.to_owned(), error.to_string());
            Error::Code { kernel, device, message, log: String::new(), help: error.help() }
        }
        error @ (LoadError::Object(_) | LoadError::NoKernel { .. } | _) => {
            let help = "rebuild the crate of the kernel after `cargo clean -p`";
            Error::CodeObject { what, device: device.to_owned(), problem: error.to_string(), help }
        }
    }
}

fn foreign(device: &str, what: &str, code: &str, machine: &str) -> Error {
    Error::ForeignGpu {
        what: what.to_owned(),
        device: device.to_owned(),
        machine: machine.to_owned(),
        targets: code.to_owned(),
    }
}

/// The error of a launch that does not match the kernel or the device.
pub(super) fn misfit(device: &str, kernel: &str, error: &Misfit) -> Error {
    let doing = format!("launching kernel `{kernel}`");
    match error {
        Misfit::Driver(error) => work(device, &doing, error),
        Misfit::Lds { needs, limit } => {
            let needs = u32::try_from(*needs).unwrap_or(u32::MAX);
            Error::SharedMemory { kernel: kernel.to_owned(), device: device.to_owned(), needs, limit: *limit }
        }
        error @ (Misfit::Launch(_) | _) => Error::Driver {
            doing,
            device: device.to_owned(),
            message: error.to_string(),
            help: "compare the launch with the kernel's metadata in the code object",
        },
    }
}
