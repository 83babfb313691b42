//! Device memory with a table of the work that uses it.
//!
//! Each buffer has a table of the work that uses it ([`Uses`], which states the invariant). New work waits for the earlier
//! writers of the bytes that it accesses, and for the earlier readers of the bytes that it writes; a device may require that the
//! whole buffer counts as accessed. Host copies and blocking launches are work like any other, so conflicting accesses are ordered for
//! any order of calls from any threads.
//!
//! Work is entered in the tables of all its buffers and put into its queue in one atomic step. So later work only waits for
//! earlier work, and there is no deadlock.
//!
//! User code (wakers and print sinks) runs without any lock of the runtime held; a panic in it does not affect the runtime.

use super::capture;
use super::device::Device;
use super::event::{Event, Failure};
use super::footprint::Footprint;
use super::lock;
use super::storage::{Contents, Storage};
use super::uses::{Dependency, Uses, first_failure};
use crate::error::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Device memory; clones are handles to the same memory, which is freed with the last one.
#[derive(Clone, Debug)]
pub(crate) struct Buffer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: Device,
    /// The bytes of memory of its own.
    own: Option<usize>,
    storage: Storage,
    uses: Mutex<Uses>,
    /// How many others read the memory, and how many write it, in ways that work cannot wait for.
    others: Mutex<[usize; 2]>,
}

/// The number of entries from which on a buffer queries the devices which of the work has ended.
#[cfg(feature = "_remote")]
const MANY: usize = 16;

/// The part of a buffer that a piece of work uses, and whether it writes.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) buffer: Buffer,
    pub(crate) footprint: Footprint,
    pub(crate) write: bool,
}

impl Buffer {
    /// A buffer of zeros.
    pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Buffer> {
        Buffer::new(device, bytes, Contents::Zeros)
    }

    /// A buffer for callers that write all bytes next.
    pub(crate) fn unwritten(device: &Device, bytes: usize) -> Result<Buffer> {
        Buffer::new(device, bytes, Contents::WrittenNext)
    }

    /// A buffer with undefined contents.
    pub(crate) fn undefined(device: &Device, bytes: usize) -> Result<Buffer> {
        Buffer::new(device, bytes, Contents::Undefined)
    }

    fn new(device: &Device, bytes: usize, contents: Contents) -> Result<Buffer> {
        // Memory without contents is the same in every replay.
        if contents != Contents::Undefined {
            let problem = "it would be filled now, and not in each replay";
            capture::refuse("a new tensor with contents", problem, "make it before the capture")?;
        }
        let made = Storage::new(device, bytes, contents)?;
        device.counts().allocated(bytes);
        Ok(Buffer::with(device, bytes, made, Some(bytes)))
    }

    /// Memory of others, whose first `bytes` bytes may be used after `ready`.
    #[cfg(any(feature = "cpu", feature = "cuda"))]
    pub(crate) fn of(device: &Device, bytes: usize, made: (Storage, Option<Event>)) -> Buffer {
        Buffer::with(device, bytes, made, None)
    }

    fn with(device: &Device, bytes: usize, (storage, ready): (Storage, Option<Event>), own: Option<usize>) -> Buffer {
        let uses = Mutex::new(Uses::new(bytes, ready));
        Buffer(Arc::new(Inner { device: device.clone(), own, storage, uses, others: Mutex::default() }))
    }

    /// Notes that others use the memory until what is returned is dropped. Launches borrow their tensors, so that none is made meanwhile that
    /// would conflict; but a graph has its own handles, and its replays are refused ([`among_ourselves`]).
    #[cfg(any(feature = "cpu", feature = "cuda"))]
    pub(crate) fn used_by_others(&self, write: bool) -> Others {
        lock(&self.0.others)[usize::from(write)] += 1;
        Others { buffer: self.clone(), write }
    }

    /// Blocks until all work that has been entered has ended.
    #[cfg(feature = "cpu")]
    pub(crate) fn await_all(&self) {
        let open: Vec<Event> = lock(&self.0.uses).events().filter(|event| !event.has_ended()).cloned().collect();
        open.iter().for_each(Event::wait);
    }

    /// The work for which new work with this access must wait.
    #[cfg(feature = "cuda")]
    pub(crate) fn earlier(&self, access: &Access) -> Vec<Dependency> {
        let mut waits = Vec::new();
        lock(&self.0.uses).conflicts(access, self.0.storage.is_used_as_a_whole(), &mut waits);
        waits
    }

    /// Enters work outside of TITAN that uses the buffer after all work that has been entered.
    #[cfg(feature = "cuda")]
    pub(crate) fn enter_foreign(access: &Access, event: &Event) {
        lock(&access.buffer.0.uses).enter(access, event);
    }

    /// Whether the memory is TITAN's, and lives as long as a handle to it.
    pub(crate) fn is_own(&self) -> bool {
        self.0.own.is_some()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.0.storage
    }

    pub(crate) fn is(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Settles work that has ended on devices, if many uses are remembered.
    #[cfg(feature = "_remote")]
    fn ask_devices(&self) {
        let uses = lock(&self.0.uses);
        let many: Vec<Event> = if uses.len() > MANY { uses.events().cloned().collect() } else { Vec::new() };
        drop(uses);
        for event in many {
            event.is_over();
        }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// The use of a buffer by others.
#[cfg(any(feature = "cpu", feature = "cuda"))]
#[derive(Debug)]
pub(crate) struct Others {
    buffer: Buffer,
    write: bool,
}

#[cfg(any(feature = "cpu", feature = "cuda"))]
impl Drop for Others {
    fn drop(&mut self) {
        lock(&self.buffer.0.others)[usize::from(self.write)] -= 1;
    }
}

/// Calls a function that enters work with these accesses, unless others use the memory in a way that conflicts: then the result is `None`.
///
/// Others are noted before they wait for earlier work, and here until the work is entered nobody is noted, so that either finds the other.
pub(crate) fn among_ourselves<R>(accesses: &[Access], enter: impl FnOnce() -> R) -> Option<R> {
    let mut buffers: Vec<&Buffer> = accesses.iter().map(|a| &a.buffer).collect();
    buffers.sort_unstable_by_key(|b| b.address());
    buffers.dedup_by_key(|b| b.address());
    // All threads lock in the same order, so there is no deadlock.
    let held: Vec<_> = buffers.iter().map(|b| (*b, lock(&b.0.others))).collect();
    let conflicts = |(buffer, others): &(&Buffer, std::sync::MutexGuard<'_, [usize; 2]>)| {
        let [readers, writers] = **others;
        writers > 0 || readers > 0 && accesses.iter().any(|a| a.write && a.buffer.is(buffer))
    };
    if held.iter().any(conflicts) { None } else { Some(enter()) }
}

impl Drop for Inner {
    /// A device may still use the memory: it frees the memory when that work ends, and no thread waits.
    fn drop(&mut self) {
        #[cfg(feature = "_remote")]
        for mark in lock(&self.uses).events().filter_map(Event::mark) {
            self.storage.used_until(&mark);
        }
        if let Some(bytes) = self.own {
            self.device.counts().dropped(bytes);
        }
    }
}

/// Enters work with this event into every buffer it uses, and calls `enqueue` with the work for which it must wait.
pub(crate) fn schedule<R>(accesses: &[Access], event: &Event, enqueue: impl FnOnce(Vec<Dependency>) -> R) -> R {
    let mut buffers: Vec<&Buffer> = accesses.iter().map(|a| &a.buffer).collect();
    buffers.sort_unstable_by_key(|b| b.address());
    buffers.dedup_by_key(|b| b.address());
    #[cfg(feature = "_remote")]
    buffers.iter().for_each(|b| b.ask_devices());
    // All threads lock in the same order, so there is no deadlock.
    let mut tables: Vec<_> = buffers.iter().map(|b| (*b, lock(&b.0.uses))).collect();
    let mut waits = Vec::new();
    for (buffer, table) in &mut tables {
        table.tidy();
        let own = || accesses.iter().filter(|a| a.buffer.is(buffer));
        for access in own() {
            table.conflicts(access, buffer.storage().is_used_as_a_whole(), &mut waits);
        }
        for access in own() {
            table.enter(access, event);
        }
    }
    enqueue(waits)
}

/// Blocks until all earlier work has ended. Returns the first of it that failed to write data that the new work needs.
pub(crate) fn await_dependencies(waits: &[Dependency]) -> Option<(&Event, Error)> {
    waits.iter().for_each(|d| d.event.wait());
    first_failure(waits)
}

/// Runs work on this thread after the earlier work on what it uses.
///
/// # Errors
/// The error of this work, or of earlier work that has not been reported.
pub(crate) fn run_here<R>(what: &str, accesses: &[Access], work: impl FnOnce() -> Result<R>) -> Result<R> {
    capture::refuse(what, "it runs now, before the launches that were captured", "do it before or after the capture")?;
    let event = Event::of_host(None);
    let waits = schedule(accesses, &event, |waits| waits);
    let outcome = match await_dependencies(&waits) {
        None => guarded(what, work),
        // The caller asked for this data: report the original failure, not that dependent work did not run. Even if the failure has
        // been reported elsewhere meanwhile, the data is invalid.
        Some((event, error)) => Err(event.report().unwrap_or_else(|| Error::of_dependency(what, error))),
    };
    event.settle(match &outcome {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(error.clone(), true)),
    });
    outcome
}

/// Runs `work`; a panic in it becomes an error, so that waits for it end.
pub(crate) fn guarded<R>(what: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    caught(work).unwrap_or_else(|message| Err(Error::Internal { doing: what.to_owned(), message }))
}

/// Runs `work`, or returns the message of its panic.
pub(crate) fn caught<R>(work: impl FnOnce() -> R) -> std::result::Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        discard(payload);
        text.unwrap_or_else(|| "a panic".to_owned())
    })
}

/// Drops the payload of a panic. Dropping it may panic again, with another payload; after several attempts the payload is leaked.
fn discard(mut payload: Box<dyn Any + Send>) {
    for _ in 0..4 {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(again) => payload = again,
        }
    }
    std::mem::forget(payload);
}
