//! AMD's HIP runtime: devices, memory, modules, streams and events. Feature `runtime`.
//!
//! ```text
//! Driver ── Device ── Context ─┬─ Stream ── Event        work in order, and points in it
//!  library, symbols, hipInit   ├─ Memory                 of the device
//!                              └─ Module ── Function     a code object, and a kernel in it
//! ```
//!
//! All of the crate's `unsafe` is here. The library is opened at run time: a program starts without it, and says why there
//! is no GPU when one is asked for ([`Absence`]). What was looked up once is called through own pointers, whose results are
//! plain integers. HIP has no contexts of its own: a thread names the device before each call, and the one that it named
//! before again afterwards.
//!
//! **When work has ended.** Memory is freed, and host memory is returned to its owner, only after the runtime has said that
//! the work which uses it has ended. A call that fails says nothing, so another one is asked. If none answers although the
//! device is alive, the end of that work will never be known: the device is given up ([`Context`]), every later call returns
//! that error, and nothing is freed. No failure is kept otherwise ([`Once`]).
//!
//! **What runs.** Code objects, given as bytes. They are read before AMD's loader sees them: one for another machine, or with
//! descriptions that do not fit together, is refused with a message. There is no compiler for these devices yet.
//!
//! Deliberately absent: what a launch of TITAN is (variants, arguments, ordering): the facade's runtime; memory
//! allocated in the order of streams; memory of others.

#![expect(unsafe_code, reason = "this is the module for it")]

mod context;
mod driver;
mod error;
mod event;
#[cfg(all(test, target_os = "linux"))]
mod header;
mod memory;
mod module;
mod once;
mod stream;
mod sys;
mod table;

pub use context::Context;
pub use driver::{Absence, Device, Driver, Properties};
pub use error::{DriverError, Kind};
pub use event::{Event, Waiting};
pub use memory::Memory;
pub use module::{Function, Geometry, LoadError, Misfit, Module};
pub use once::Once;
pub use stream::Stream;
pub use table::SYMBOLS;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panicking thread left behind is consistent: nothing here panics between two related writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle of the runtime's, which may be called from any thread.
#[derive(Debug)]
struct Handle<T>(*mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

// SAFETY: the pointer is never followed here; it is a name that the runtime gave, and the HIP runtime API, "Multi-threading",
// lets every thread use names of a device.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; a shared reference only allows to copy the name.
unsafe impl<T> Sync for Handle<T> {}
