//! NVIDIA GPUs, and tensors shared with other CUDA libraries.
//!
//! Memory can be shared with other CUDA libraries, in both directions and without copies:
//!
//! * [`tensor_from_raw`] makes a tensor of any pointer;
//! * [`lend_raw`] and [`lend_raw_mut`] lend the device pointer of a tensor to any stream.
//!
//! With feature `cudarc`, which is on by default, there are the same functions, in safe code, for the types of that crate, on which
//! candle and CubeCL build:
//!
//! * `borrow` and `borrow_mut` make a tensor of a `CudaSlice` or a part of one, `borrow_strided` and `borrow_strided_mut` one with any strides;
//! * `borrow_dyn` and `borrow_dyn_mut` are for element types and ranks that are known only at run time;
//! * `stream_of` makes a stream for launches of one of cudarc's;
//! * `lend` and `lend_mut` lend the device pointer of a tensor to a stream of cudarc's.
//!
//! TITAN calls the driver through its own function table, independently of cudarc and of the version of its bindings. It uses the
//! primary contexts, as cudarc's `CudaContext::new` does.

mod code;
mod error;
mod foreign;
mod graph;
#[cfg(feature = "cudarc")]
mod interop;

pub use foreign::{Lent, RawTensor, lend_raw, lend_raw_mut, tensor_from_raw};
#[cfg(feature = "cudarc")]
pub use interop::{
    CudaMemory, CudaMemoryMut, borrow, borrow_dyn, borrow_dyn_mut, borrow_mut, borrow_strided, borrow_strided_mut,
    lend, lend_mut, stream_of,
};

/// The crate whose types are exchanged here, in the version that TITAN uses.
#[cfg(feature = "cudarc")]
pub use cudarc;

pub(super) use code::Code;
pub(super) use foreign::kept;
pub(super) use graph::Exec;

use super::backend;
use super::device::{Device, DeviceKind};
use super::event::{self, Event};
use super::memory_use::Room;
use crate::error::{Error, Result};
use std::sync::Arc;
use titan_nv::Machine;
use titan_nv::runtime::{self as nv, Driver, Once, Waiting};

/// The GPUs of this machine, the best one first; or the reason why there are none, and the help.
pub(super) fn devices() -> std::result::Result<&'static [Device], (String, &'static str)> {
    static DEVICES: Once<Vec<Device>> = Once::new();
    let found = DEVICES.get_or_try(|| {
        let mut found: Vec<&'static nv::Device> = Driver::get()?.devices().iter().collect();
        found.sort_by_key(|d| {
            let p = &d.properties;
            std::cmp::Reverse((p.capability, p.multiprocessors, p.memory, std::cmp::Reverse(d.ordinal)))
        });
        Ok::<_, nv::Absence>(found.into_iter().map(|d| Device::of_cuda(d, d.name.clone())).collect())
    });
    found.map(Vec::as_slice).map_err(|absence| (absence.to_string(), absence.help()))
}

/// Whether the device can run code for a target of TITAN.
pub(super) fn is_usable(device: &nv::Device) -> bool {
    !Machine::of_capability(device.properties.capability).is_empty()
}

/// The context of a device.
fn context(device: &Device) -> Result<&'static nv::Context> {
    let found = device.as_cuda().ok_or_else(|| error::internal("a CUDA device", "it is another one".to_owned()))?;
    found.context().map_err(|e| error::driver(&format!("{device}"), &e, "making a context"))
}

/// The memory of a device; it may have no pool.
pub(super) fn room(device: &Device) -> Result<Room> {
    let context = context(device)?;
    let found = context.reserved().and_then(|reserved| {
        let (free, total) = context.memory()?;
        Ok(Room { reserved, free: Some(free), total: Some(total) })
    });
    found.map_err(|e| error::driver(&device.to_string(), &e, "a query of its memory"))
}

/// Blocks until all work of the device has ended, also that of other libraries.
pub(super) fn synchronize(device: &Device) -> Result<()> {
    context(device)?.synchronize().map_err(|e| error::work(&device.to_string(), "waiting for the device", &e))
}

/// Returns memory that is kept for reuse.
pub(super) fn trim(device: &Device) -> Result<()> {
    context(device)?.trim().map_err(|e| error::driver(&device.to_string(), &e, "releasing memory"))
}

/// Host memory that devices of this kind read by themselves.
pub(super) fn pinned(device: &Device, bytes: usize) -> Result<nv::HostMemory> {
    let made = nv::HostMemory::new(context(device)?, bytes);
    made.map_err(|e| {
        if e.kind() == nv::Kind::OutOfMemory {
            return Error::OutOfMemory { bytes, device: "the host".to_owned(), free: None };
        }
        error::driver(&device.to_string(), &e, "pinning host memory")
    })
}

/// The memory of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<nv::Memory>);

impl Memory {
    /// New memory, and the event after which it may be used.
    pub(super) fn new(device: &Device, bytes: usize, zeroed: bool) -> Result<(Memory, Event)> {
        let context = context(device)?;
        let made = nv::Memory::new(context, bytes, zeroed);
        let (memory, ready) = made.map_err(|e| error::allocation(device, context, bytes, &e))?;
        Ok((Memory(Arc::new(memory)), after(ready, "an allocation")))
    }

    /// The device address of a byte.
    pub(super) fn address(&self, offset: usize) -> u64 {
        self.0.address(offset)
    }

    pub(super) fn used_until(&self, mark: &Mark) {
        self.0.used_until(Arc::clone(&mark.0));
    }

    /// Makes the stream of the memory's foreign owner, if it has one, wait for a point, or else waits for it here.
    pub(super) fn tell_owner(&self, mark: &Mark) {
        if let Some(owner) = self.0.follower()
            && owner.follow(&mark.0).is_err()
        {
            mark.wait();
        }
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.0.write(offset, bytes).map_err(|e| error::driver(&self.device(), &e, "a copy to the device"))
    }

    pub(super) fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<()> {
        self.0.fill(offset, bytes, value).map_err(|e| error::driver(&self.device(), &e, "a fill"))
    }

    /// Copies pinned memory of the host, in the order of a lane. It must be kept until the copy has ended.
    #[expect(unsafe_code, reason = "the host memory of a copy cannot be checked by types")]
    pub(super) fn copy_in(&self, lane: &Lane, offset: usize, from: &nv::HostMemory) -> Result<()> {
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

/// An event that ends when the device reaches `ready`, after work called `what`.
fn after(ready: nv::Event, what: &str) -> Event {
    reached(Mark(Arc::new(ready)), what)
}

/// An event that ends when the device reaches a point after work called `what`.
fn reached(mark: Mark, what: &str) -> Event {
    let event = Event::of_device(None);
    let mark = backend::Mark::Cuda(mark);
    event.give(event::Remote { what: what.into(), mark, needs: Vec::new(), finish: None });
    event
}

/// A stream of a device.
#[derive(Debug)]
pub(crate) struct Lane(nv::Stream);

impl Lane {
    pub(super) fn new(device: &Device) -> Result<Lane> {
        let made = nv::Stream::new(context(device)?);
        made.map(Lane).map_err(|e| error::driver(&device.to_string(), &e, "making a stream"))
    }
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

/// Makes later work of a stream wait for these points.
fn follow(stream: &nv::Stream, after: &[backend::Mark]) -> std::result::Result<(), nv::DriverError> {
    after.iter().try_for_each(|mark| match mark {
        backend::Mark::Cuda(mark) => stream.follow(&mark.0),
        // The mark is of another device. This device cannot wait for it, so the host waits.
        #[cfg(feature = "hip")]
        mark @ backend::Mark::Hip(_) => {
            mark.wait();
            Ok(())
        }
    })
}

/// A point in a stream.
#[derive(Clone, Debug)]
pub(crate) struct Mark(Arc<nv::Event>);

impl Mark {
    fn at_end(stream: &nv::Stream, sleeps: bool) -> Result<Mark> {
        Mark::waited_for(stream, if sleeps { Waiting::Sleeps } else { Waiting::Spins })
    }

    fn waited_for(stream: &nv::Stream, waiting: Waiting) -> Result<Mark> {
        let made = stream.mark(waiting);
        made.map(|e| Mark(Arc::new(e))).map_err(|e| error::driver(&name(stream.context()), &e, "an event"))
    }

    /// The milliseconds between an earlier point and this one, both of which have been reached and have a time.
    pub(super) fn milliseconds_since(&self, earlier: &Mark) -> Result<Option<f32>> {
        let found = self.0.milliseconds_since(&earlier.0);
        found.map_err(|e| error::driver(&name(self.0.context()), &e, "the time between two events"))
    }

    pub(super) fn is_over(&self) -> bool {
        // If the context is lost, the work has ended too, which `outcome` reports. After another error it may still be running.
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
fn name(context: &nv::Context) -> String {
    let device = context.device();
    format!("{}:{} ({})", DeviceKind::Cuda.name(), device.ordinal, device.name)
}
