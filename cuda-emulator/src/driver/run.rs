//! Runs operations, and converts their mistakes to errors of the driver.

use super::Driver;
use super::launch::Launch;
use super::order::{Who, reading, writing};
use super::queue::Op;
use crate::code::Code;
use crate::runtime::host::{HostBytes, HostCall};
use titan_nv::emu::{DevicePtr, EmuError, ErrorCode, Touched};

/// The location of bytes.
#[derive(Debug)]
pub(crate) enum Place {
    /// Memory of a device.
    Device(u64),
    /// Memory of the host program.
    Host(HostBytes),
    /// Bytes of the program that were read when the operation was enqueued.
    Taken(Vec<u8>),
}

/// The effect of an operation.
#[derive(Debug)]
pub(crate) enum Work {
    /// Runs a kernel.
    Launch(Box<Launch>),
    /// Copies this number of bytes.
    Copy { from: Place, to: Place, bytes: usize },
    /// Repeats a pattern over this number of bytes.
    Fill { at: u64, pattern: Vec<u8>, bytes: usize },
    /// Marks memory as allocated.
    Birth { at: u64, bytes: u64 },
    /// Frees memory.
    Free { at: u64, bytes: u64 },
    /// Calls a function of the host.
    Call(HostCall),
    /// Records an event.
    Record { event: u64 },
    /// Has no effect other than waiting.
    Nothing,
}

/// The accesses of an operation, or a mistake: the error for the context, and the message.
pub(super) type Outcome = Result<Touched, (Code, String)>;

/// Runs an operation to its end.
pub(super) fn execute(driver: &mut Driver, op: Op) {
    let Op { id, stream, context, clock, label, work, .. } = op;
    let healthy = driver.sticky(context).is_ok();
    let outcome = match work {
        Work::Record { event } => {
            return driver.happened(event, id);
        }
        // Frees in a context with a sticky error take effect as well.
        Work::Free { at, .. } if !healthy => {
            driver.free_now(at);
            return;
        }
        _ if !healthy => return,
        Work::Launch(launch) => driver.launch_now(context, &launch),
        Work::Copy { from, to, bytes } => driver.copy_now(from, &to, bytes),
        Work::Fill { at, pattern, bytes } => driver.fill_now(at, &pattern, bytes),
        Work::Birth { at, bytes } => Ok(writing(at, bytes)),
        Work::Free { at, bytes } => {
            driver.free_now(at);
            Ok(writing(at, bytes))
        }
        Work::Call(_) | Work::Nothing => Ok(Touched::default()),
    };
    match outcome {
        Err((code, report)) => driver.fail(context, code, &format!("{label}: {report}")),
        Ok(touched) => driver.settle(Who { op: id, stream, context, label: &label, clock: &clock }, touched),
    }
}

impl Work {
    /// The source and destination of a copy, with its number of bytes.
    pub(super) fn copied(&self) -> Option<(&Place, &Place, usize)> {
        if let Work::Copy { from, to, bytes } = self { Some((from, to, *bytes)) } else { None }
    }
}

impl Driver {
    /// Checks new accesses against earlier ones, and records them.
    pub(super) fn settle(&mut self, who: Who<'_>, mut touched: Touched) {
        touched.settle();
        if let Some(conflict) = self.trace.conflict(who.label, who.clock, &touched) {
            let place = self.describe(conflict.address).map_or_else(String::new, |d| format!("\n  the first is {d}"));
            self.fail(who.context, Code::LAUNCH_FAILED, &format!("{}{place}", conflict.text));
        }
        self.trace.note(who, touched);
    }

    /// Copies bytes between any two places.
    fn copy_now(&mut self, from: Place, to: &Place, bytes: usize) -> Outcome {
        let n = bytes as u64;
        let (data, written, mut touched) = match from {
            Place::Device(at) => {
                let device = self.device_at(at).ok_or_else(|| unknown(at))?;
                let ptr = DevicePtr::from_address(at);
                let (data, written) = device.memory.extract(ptr, bytes).map_err(|e| wrong(&e))?;
                (data, written, reading(at, n))
            }
            Place::Host(host) => (host.read(bytes), Vec::new(), reading(host.address(), n)),
            Place::Taken(data) => (data, Vec::new(), Touched::default()),
        };
        match to {
            Place::Device(at) => {
                let device = self.device_at_mut(*at).ok_or_else(|| unknown(*at))?;
                device.memory.insert(DevicePtr::from_address(*at), &data, &written).map_err(|e| wrong(&e))?;
                touched.writes = writing(*at, n).writes;
            }
            Place::Host(host) => {
                if let Some(hole) = written.iter().position(|w| !w).filter(|_| self.setting().strict) {
                    let message =
                        format!("the host is given bytes that were never written; the first is byte {hole} of {bytes}");
                    return Err((Code::LAUNCH_FAILED, message));
                }
                host.write(0, &data);
                touched.writes = writing(host.address(), n).writes;
            }
            Place::Taken(_) => return Err((Code::UNKNOWN, "a copy to nowhere".to_owned())),
        }
        Ok(touched)
    }

    fn fill_now(&mut self, at: u64, pattern: &[u8], bytes: usize) -> Outcome {
        let device = self.device_at_mut(at).ok_or_else(|| unknown(at))?;
        let data: Vec<u8> = pattern.iter().copied().cycle().take(bytes).collect();
        device.memory.write(DevicePtr::from_address(at), &data).map_err(|e| wrong(&e))?;
        Ok(writing(at, bytes as u64))
    }
}

fn unknown(at: u64) -> (Code, String) {
    (Code::ILLEGAL_ADDRESS, format!("{at:#x} is no address of a device"))
}

/// The error of the driver for a finding of the emulator.
#[expect(clippy::wildcard_enum_match_arm, reason = "what hardware has no error for, and whatever is found later")]
pub(super) fn wrong(error: &EmuError) -> (Code, String) {
    let code = match error.code() {
        ErrorCode::OutOfBounds | ErrorCode::Permission => Code::ILLEGAL_ADDRESS,
        ErrorCode::Misaligned => Code::MISALIGNED_ADDRESS,
        ErrorCode::Limit => Code::LAUNCH_TIMEOUT,
        // Undefined values, races, divergence, barriers, deadlocks and traps have no error of their own on hardware.
        _ => Code::LAUNCH_FAILED,
    };
    (code, error.to_string())
}
