//! Errors about devices that do not exist: the available devices, the reason, and the help.

use super::device::{Device, DeviceKind};
use crate::error::Error;

/// The list of devices in messages.
pub(super) fn list(devices: &[Device]) -> String {
    if devices.is_empty() {
        return "none".to_owned();
    }
    devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
}

/// The error of a program that is built without the CPU device, on a machine without other devices.
pub(super) fn none_at_all(no_cuda: Option<(String, &'static str)>) -> Error {
    let (reason, help) = absence(DeviceKind::Cuda.name(), no_cuda).unzip();
    let (asked_by, asked) = ("the best device", "any".to_owned());
    Error::NoSuchDevice { asked_by, asked, available: list(&[]), reason, help }
}

/// The reason why there is no device of a kind, and the help. `no_cuda` is the reason why there is no NVIDIA GPU.
pub(super) fn absence(kind: &str, no_cuda: Option<(String, &'static str)>) -> Option<(String, &'static str)> {
    if kind == DeviceKind::Emulator.name() {
        return Some(if cfg!(feature = "emulator") {
            ("an emulator needs a target".to_owned(), "write it after a colon, as in `emulator:sm_80`")
        } else {
            ("this program was built without the emulator".to_owned(), "build with feature `emulator` of `titan-gpu`")
        });
    }
    if kind == DeviceKind::Simulator.name() {
        return Some(if cfg!(feature = "simulator") {
            ("there is only one simulator".to_owned(), "write `simulator`, without a number")
        } else {
            ("this program was built without the simulator".to_owned(), "build with feature `simulator` of `titan-gpu`")
        });
    }
    if kind == DeviceKind::Cpu.name() && !cfg!(feature = "cpu") {
        return Some((
            "this program was built without the CPU device".to_owned(),
            "build with feature `cpu` of `titan-gpu`",
        ));
    }
    if kind == DeviceKind::Hip.name() {
        #[cfg(feature = "hip")]
        return super::hip::devices().err();
        #[cfg(not(feature = "hip"))]
        return Some((
            "this program was built without support for AMD GPUs".to_owned(),
            "build with feature `hip` of `titan-gpu`",
        ));
    }
    no_cuda.filter(|_| kind == DeviceKind::Cuda.name())
}
