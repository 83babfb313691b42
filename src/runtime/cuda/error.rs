//! Translates failures of the driver to errors.

use super::super::device::Device;
use crate::error::Error;
use titan_nv::runtime::{Context, DriverError, Kind, LoadError};

/// The error of a driver call that failed during the operation `doing`.
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

/// The error of a kernel that could not be loaded.
pub(super) fn load(device: &str, kernel: &str, error: LoadError) -> Error {
    let (kernel, device) = (kernel.to_owned(), device.to_owned());
    match error {
        LoadError::Shared { needs, limit } => Error::SharedMemory { kernel, device, needs, limit },
        LoadError::Refused { error, log } => {
            let log = if log.is_empty() { String::new() } else { format!("\n{log}") };
            Error::Code { kernel, device, message: error.to_string(), log, help: error.help() }
        }
        LoadError::Driver(error) => driver(&device, &error, &format!("loading kernel `{kernel}`")),
        error @ (LoadError::Threads { .. } | _) => Error::Unsupported { kernel, device, reason: error.to_string() },
    }
}

/// The error for a bug in TITAN.
pub(super) fn internal(doing: &str, message: String) -> Error {
    Error::Internal { doing: doing.to_owned(), message }
}
