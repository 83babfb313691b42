//! AMD GPUs: TITAN's kernels, and launches of code objects that others compiled.
//!
//! A build with the feature `hip` compiles kernels for gfx942 (MI300) too, and [`Device::hip`] launches them as every other device does.
//! `Device::emulator("gfx942")` (feature `emulator`) runs the same code objects without a GPU. docs/amd.md of this package says what is supported.
//!
//! Code objects for gfx942 from an assembler or another compiler can be loaded and launched as well, with tensors as arguments; these
//! launches are ordered with other work on the tensors as TITAN's kernels are.
//!
//! ```no_run
//! use titan::hip::{Arg, Geometry, Module};
//! use titan::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dev = Device::hip(0)?;
//! let (x, mut y) = (dev.full([256], 1.5f32)?, dev.zeros::<f32, 1>([256])?);
//! let module = Module::load(&dev, &std::fs::read("double.hsaco")?)?;
//! let kernel = module.kernel("double")?;
//! let geometry = Geometry { grid: [1, 1, 1], block: [256, 1, 1], dynamic_lds: 0 };
//! // SAFETY: the kernel reads 256 numbers from its first argument and writes as many to its second.
//! unsafe { kernel.launch(&dev.default_stream(), geometry, &[Arg::input(&x), Arg::output(&mut y)])? };
//! assert_eq!(y.to_vec()?, [3.0f32; 256]);
//! # Ok(())
//! # }
//! ```

mod code;
mod error;
mod graph;
mod raw;

pub use raw::{Arg, Kernel, Module};
pub use titan_amd::runtime::Geometry;

pub(super) use code::Code;
pub(super) use graph::Exec;
pub(super) use raw::Work;

use super::backend;
use super::device::{Device, DeviceKind};
use super::event::{self, Event};
use super::memory_use::Room;
use crate::error::{Error, Result};
use std::sync::Arc;
use titan_amd::runtime::{self as amd, Driver, Once, Waiting};

/// Whether kernels are compiled for the device.
pub(super) fn is_usable(device: &amd::Device) -> bool {
    titan_amd::Machine::from_name(device.properties.target()).is_ok()
}

/// The GPUs of this machine, in the runtime's order; or the reason why there are none, and the help.
pub(super) fn devices() -> std::result::Result<&'static [Device], (String, &'static str)> {
    static DEVICES: Once<Vec<Device>> = Once::new();
    let found = DEVICES.get_or_try(|| {
        let describe = |d: &amd::Device| format!("{}, {}", d.name, d.properties.target());
        Ok::<_, amd::Absence>(Driver::get()?.devices().iter().map(|d| Device::of_hip(d, describe(d))).collect())
    });
    found.map(Vec::as_slice).map_err(|absence| (absence.to_string(), absence.help()))
}

impl Device {
    /// The AMD GPU of this number, in the runtime's order, which `HIP_VISIBLE_DEVICES` changes. Kernels run on gfx942; on others, launches
    /// are errors. Code objects that were compiled elsewhere run too ([`hip`](crate::hip)).
    ///
    /// # Errors
    /// If there is none; the error says why.
    pub fn hip(ordinal: u32) -> Result<Device> {
        Device::named(&format!("{}:{ordinal}", DeviceKind::Hip.name()))
    }
}

/// The context of a device.
fn context(device: &Device) -> Result<&'static amd::Context> {
    let message = || "it is another one".to_owned();
    let found =
        device.as_hip().ok_or_else(|| Error::Internal { doing: "an AMD device".to_owned(), message: message() })?;
    found.context().map_err(|e| error::driver(&format!("{device}"), &e, "making a stream"))
}

/// The memory of a device, which has no pool.
pub(super) fn room(device: &Device) -> Result<Room> {
    let found = context(device)?.memory();
    found
        .map(|(free, total)| Room { reserved: None, free: Some(free), total: Some(total) })
        .map_err(|e| error::driver(&device.to_string(), &e, "a query of its memory"))
}

/// Frees memory that waits to be freed.
pub(super) fn trim(device: &Device) -> Result<()> {
    context(device)?.trim().map_err(|e| error::driver(&device.to_string(), &e, "releasing memory"))
}

/// Host memory that devices of this kind read by themselves.
pub(super) fn pinned(device: &Device, bytes: usize) -> Result<amd::HostMemory> {
    let made = amd::HostMemory::new(context(device)?, bytes);
    made.map_err(|e| {
        if e.kind() == amd::Kind::OutOfMemory {
            return Error::OutOfMemory { bytes, device: "the host".to_owned(), free: None };
        }
        error::driver(&device.to_string(), &e, "pinning host memory")
    })
}

/// The memory of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<amd::Memory>);

impl Memory {
    /// New memory, and the event after which it may be used, unless that is now.
    pub(super) fn new(device: &Device, bytes: usize, zeroed: bool) -> Result<(Memory, Option<Event>)> {
        let context = context(device)?;
        let made = amd::Memory::new(context, bytes, zeroed);
        let (memory, ready) = made.map_err(|e| error::allocation(device, context, bytes, &e))?;
        let ready = ready.map(|ready| {
            let event = Event::of_device(None);
            let mark = backend::Mark::Hip(Mark(Arc::new(ready)));
            event.give(event::Remote { what: "an allocation".into(), mark, needs: Vec::new(), finish: None });
            event
        });
        Ok((Memory(Arc::new(memory)), ready))
    }

    pub(super) fn used_until(&self, mark: &Mark) {
        self.0.used_until(Arc::clone(&mark.0));
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.0.write(offset, bytes).map_err(|e| error::driver(&self.device(), &e, "a copy to the device"))
    }

    pub(super) fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<()> {
        self.0.fill(offset, bytes, value).map_err(|e| error::driver(&self.device(), &e, "a fill"))
    }

    /// Copies pinned memory of the host, in the order of a lane. It must be kept until the copy has ended.
    #[expect(unsafe_code, reason = "the host memory of a copy cannot be checked by types")]
    pub(super) fn copy_in(&self, lane: &Lane, offset: usize, from: &amd::HostMemory) -> Result<()> {
        // SAFETY: an upload takes its memory away from the program, and keeps it until it has ended (`pinned.rs`).
        let done = unsafe { self.0.write_in(&lane.0, offset, from) };
        done.map_err(|e| error::driver(&self.device(), &e, "an upload"))
    }

    /// Overwrites the first bytes in the order of a lane.
    pub(super) fn fill_in(&self, lane: &Lane, bytes: usize, value: u8) -> Result<()> {
        let done = self.0.fill_in(&lane.0, bytes, value);
        done.map_err(|e| error::driver(&self.device(), &e, "a fill"))
    }

    pub(super) fn read(&self, offset: usize, out: &mut Vec<u8>) -> Result<()> {
        self.0.read(offset, out).map_err(|e| error::driver(&self.device(), &e, "a copy to the host"))
    }

    fn device(&self) -> String {
        name(self.0.context())
    }
}

/// A stream of a device.
#[derive(Debug)]
pub(crate) struct Lane(amd::Stream);

impl Lane {
    pub(super) fn new(device: &Device) -> Result<Lane> {
        let made = amd::Stream::new(context(device)?);
        made.map(Lane).map_err(|e| error::driver(&device.to_string(), &e, "making a stream"))
    }
}

/// Makes later work of a stream wait for these points.
fn follow(stream: &amd::Stream, after: &[backend::Mark]) -> std::result::Result<(), amd::DriverError> {
    after.iter().try_for_each(|mark| match mark {
        backend::Mark::Hip(mark) => stream.follow(&mark.0),
        // The mark is of another device. This device cannot wait for it, so the host waits.
        #[cfg(feature = "cuda")]
        mark @ backend::Mark::Cuda(_) => {
            mark.wait();
            Ok(())
        }
    })
}

impl Lane {
    /// The point after all work so far, with its time.
    pub(super) fn timed_mark(&self) -> Result<Mark> {
        Mark::waited_for(&self.0, Waiting::Timed)
    }

    /// The point after all work so far.
    pub(super) fn mark(&self, sleeps: bool) -> Result<Mark> {
        Mark::at_end(&self.0, sleeps)
    }

    /// Makes later work wait for these points.
    pub(super) fn follow(&self, after: &[backend::Mark]) -> Result<()> {
        follow(&self.0, after).map_err(|e| error::driver(&name(self.0.context()), &e, "a wait"))
    }
}

/// A point in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Mark(Arc<amd::Event>);

impl Mark {
    fn at_end(stream: &amd::Stream, sleeps: bool) -> Result<Mark> {
        Mark::waited_for(stream, if sleeps { Waiting::Sleeps } else { Waiting::Spins })
    }

    fn waited_for(stream: &amd::Stream, waiting: Waiting) -> Result<Mark> {
        let made = stream.mark(waiting);
        made.map(|e| Mark(Arc::new(e))).map_err(|e| error::driver(&name(stream.context()), &e, "an event"))
    }

    /// The milliseconds between an earlier point and this one, both of which have been reached and have a time.
    pub(super) fn milliseconds_since(&self, earlier: &Mark) -> Result<Option<f32>> {
        let found = self.0.milliseconds_since(&earlier.0);
        found.map_err(|e| error::driver(&name(self.0.context()), &e, "the time between two events"))
    }

    pub(super) fn is_over(&self) -> bool {
        // If the device is lost, the work has ended too, which `outcome` reports. After another error it may still be running.
        self.0.is_over().unwrap_or_else(|error| error.ends_context())
    }

    pub(super) fn wait(&self) {
        // `outcome` reports the error.
        drop(self.0.wait());
    }

    pub(super) fn outcome(&self, what: &str) -> Result<()> {
        self.0.wait().map_err(|e| error::work(&name(self.0.context()), what, &e))
    }
}

/// The name of a device as `Device` displays it.
fn name(context: &amd::Context) -> String {
    let device = context.device();
    format!("{}:{} ({}, {})", DeviceKind::Hip.name(), device.ordinal, device.name, device.properties.target())
}
