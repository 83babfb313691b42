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

/// The reasons why there are no GPUs of each vendor, with help, if there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Absent {
    pub(super) cuda: Option<(String, &'static str)>,
    pub(super) hip: Option<(String, &'static str)>,
}

/// The error of a program that is built without the CPU device, on a machine without other devices.
pub(super) fn none_at_all(absent: Absent) -> Error {
    // A program that is built for one vendor asks for its GPUs.
    let kind = if cfg!(all(feature = "hip", not(feature = "cuda"))) { DeviceKind::Hip } else { DeviceKind::Cuda };
    let (reason, help) = absence(kind.name(), absent).unzip();
    let (asked_by, asked) = ("the best device", "any".to_owned());
    Error::NoSuchDevice { asked_by, asked, available: list(&[]), reason, help }
}

/// The reason why there is no device of a kind, and the help.
pub(super) fn absence(kind: &str, absent: Absent) -> Option<(String, &'static str)> {
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
    if kind == DeviceKind::Hip.name() { absent.hip } else { absent.cuda.filter(|_| kind == DeviceKind::Cuda.name()) }
}
