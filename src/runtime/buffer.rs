//! Device memory that knows who uses it.
//!
//! Each buffer remembers the uses that have not ended: which bytes, reading or writing, and the event of its end. New work
//! waits for the earlier writers of what it touches, and for the earlier readers of what it writes; a device may ask that
//! the whole buffer counts as touched. Host copies and blocking launches are work like any other, so no order of calls
//! from any threads lets two of them meet in one byte.
//!
//! Work is entered in all its buffers at once, and put into its queue in the same breath: waiting therefore always points
//! from later work to earlier work and cannot go in circles.

use super::backend::Storage;
use super::device::Device;
use super::event::{Event, Failure};
use super::footprint::Footprint;
use super::lock;
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Device memory; clones are handles to the same memory, which is freed with the last one.
#[derive(Clone, Debug)]
pub(crate) struct Buffer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: Device,
    storage: Storage,
    uses: Mutex<Vec<Use>>,
}

/// Uses that a buffer remembers before it asks devices which of them have ended.
#[cfg(feature = "cuda")]
const MANY: usize = 16;

#[derive(Debug)]
struct Use {
    footprint: Footprint,
    write: bool,
    event: Event,
}

/// How a piece of work uses a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) buffer: Buffer,
    pub(crate) footprint: Footprint,
    pub(crate) write: bool,
}

/// Earlier work to wait for.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) event: Event,
    /// Whether what it wrote is used, so that its failure matters.
    pub(crate) carries: bool,
}

impl Buffer {
    /// Zeros.
    pub(crate) fn zeroed(device: &Device, bytes: usize) -> Result<Buffer> {
        Storage::new(device, bytes, true).map(|made| Buffer::of(device, bytes, made))
    }

    /// Any bytes, for who writes all of them next.
    pub(crate) fn unwritten(device: &Device, bytes: usize) -> Result<Buffer> {
        Storage::new(device, bytes, false).map(|made| Buffer::of(device, bytes, made))
    }

    /// Memory whose first `bytes` bytes may be used after `ready`.
    pub(crate) fn of(device: &Device, bytes: usize, (storage, ready): (Storage, Option<Event>)) -> Buffer {
        let first = ready.map(|event| Use { footprint: Footprint::whole(bytes), write: true, event });
        let uses = Mutex::new(first.into_iter().collect());
        Buffer(Arc::new(Inner { device: device.clone(), storage, uses }))
    }

    /// What new work with this access must wait for.
    #[cfg(any(feature = "cpu", feature = "cuda"))]
    pub(crate) fn earlier(&self, access: &Access) -> Vec<Dependency> {
        let mut waits = Vec::new();
        collect_dependencies(&lock(&self.0.uses), access, &mut waits);
        waits
    }

    /// Work beside TITAN's that uses the buffer after all that has been entered.
    #[cfg(feature = "cuda")]
    pub(crate) fn enter_foreign(access: &Access, event: &Event) {
        enter(&mut lock(&access.buffer.0.uses), access, event);
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

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Drop for Inner {
    /// A device may still be at work on the memory: it is told when that ends, and nobody waits.
    fn drop(&mut self) {
        #[cfg(feature = "cuda")]
        for used in self.uses.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner) {
            if let Some(mark) = used.event.mark() {
                self.storage.used_until(&mark);
            }
        }
    }
}

/// Enters work with this event into every buffer it uses, and calls `enqueue` with what it must wait for.
pub(crate) fn schedule<R>(accesses: &[Access], event: &Event, enqueue: impl FnOnce(Vec<Dependency>) -> R) -> R {
    let mut buffers: Vec<&Buffer> = accesses.iter().map(|a| &a.buffer).collect();
    buffers.sort_unstable_by_key(|b| b.address());
    buffers.dedup_by_key(|b| b.address());
    // One order for all threads: two pieces of work cannot each hold what the other wants.
    let mut tables: Vec<_> = buffers.iter().map(|b| (b.address(), lock(&b.0.uses))).collect();
    let mut waits = Vec::new();
    for (address, table) in &mut tables {
        table.retain(|u| !u.event.is_settled());
        #[cfg(feature = "cuda")]
        if table.len() > MANY {
            table.retain(|u| !(u.event.is_over() && u.event.is_settled()));
        }
        let own = || accesses.iter().filter(|a| a.buffer.address() == *address);
        for access in own() {
            collect_dependencies(table, access, &mut waits);
        }
        for access in own() {
            enter(table, access, event);
        }
    }
    enqueue(waits)
}

fn collect_dependencies(table: &[Use], access: &Access, waits: &mut Vec<Dependency>) {
    let whole = access.buffer.storage().is_used_as_a_whole();
    for earlier in table.iter().filter(|u| u.write || access.write) {
        let meets = earlier.footprint.overlaps(&access.footprint);
        if whole || meets {
            waits.push(Dependency { event: earlier.event.clone(), carries: earlier.write && meets });
        }
    }
}

fn enter(table: &mut Vec<Use>, access: &Access, event: &Event) {
    // Who waits for the new work waits for these as well.
    table.retain(|u| {
        let replaced = if access.write { true } else { !u.write && event.follows_in_queue(&u.event) };
        !(replaced && access.footprint.covers(&u.footprint))
    });
    table.push(Use { footprint: access.footprint, write: access.write, event: event.clone() });
}

/// Blocks until all earlier work has ended. Gives the first of it that failed to write what the new work needs.
pub(crate) fn await_dependencies(waits: &[Dependency]) -> Option<(&Event, Error)> {
    waits.iter().for_each(|d| d.event.wait());
    waits.iter().filter(|d| d.carries).find_map(|d| d.event.error().map(|e| (&d.event, e)))
}

/// Runs work on this thread after the earlier work on what it uses.
///
/// # Errors
/// Its own, or that of earlier work that has not been reported.
pub(crate) fn run_here<R>(what: &str, accesses: &[Access], work: impl FnOnce() -> Result<R>) -> Result<R> {
    let event = Event::new(None);
    let waits = schedule(accesses, &event, |waits| waits);
    let outcome = match await_dependencies(&waits) {
        None => guarded(what, work),
        // The caller asked for this data: tell the failure itself, not that something did not run for its sake. If
        // somebody else has been told meanwhile, the data is bad all the same.
        Some((event, error)) => Err(event.report().unwrap_or_else(|| Error::of_dependency(what, error))),
    };
    event.settle(match &outcome {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(error.clone(), true)),
    });
    outcome
}

/// Runs `work`; a panic in it is an error, so that those who wait for it go on.
pub(crate) fn guarded<R>(what: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(Error::Internal { doing: what.to_owned(), message: text.unwrap_or_else(|| "a panic".to_owned()) })
    })
}
