//! AMD's HIP runtime: devices, memory, modules, streams and events. Feature `runtime`.
//!
//! ```text
//! Driver ── Device ── Context ─┬─ Stream ── Event        work in order, and points in it
//!  library, symbols, hipInit   ├─ Memory                 of the device
//!                              ├─ Module ── Function     a code object, and a kernel in it
//!                              ├─ Graph                  kernels that are launched at once
//!                              └─ HostMemory             pinned memory that a caller fills
//! ```
//!
//! All of the crate's `unsafe` code is here. The library is opened at run time: a program starts without it, and reports why there
//! is no GPU when one is requested ([`Absence`]). Functions are looked up once and called through function pointers, whose results are
//! plain integers. HIP has no explicit contexts: a thread sets the current device before each call, and restores the earlier one
//! afterwards.
//!
//! **The end of work.** Memory is freed, and host memory is returned to its owner, only after the runtime has reported that
//! the work that uses it has ended. A call that fails reports nothing, so another one is made. If all of these fail although the
//! device is alive, the end of that work will never be known: the device is abandoned ([`Context`]), every later call returns
//! that error, and nothing is freed. No failure is kept otherwise ([`Once`]).
//!
//! **Kernels.** Code objects, given as bytes. They are read before AMD's loader gets them: one for another machine, or with
//! descriptions that do not fit together, is refused with a message.
//!
//! Deliberately absent: the meaning of a launch in TITAN (variants, arguments, ordering), which is in the facade's runtime;
//! stream-ordered allocation; memory of other libraries.

#![expect(unsafe_code, reason = "this is the module for it")]

mod context;
mod driver;
mod error;
mod event;
mod graph;
mod host_memory;
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
pub use graph::{Graph, Launch};
pub use host_memory::HostMemory;
pub use memory::Memory;
pub use module::{Function, Geometry, LoadError, Misfit, Module};
pub use once::Once;
pub use stream::Stream;
pub use table::SYMBOLS;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// For this repository's tests only, and no part of the stable interface: what the runtime's interface is, to be compared with its header,
/// and what happens where it is not installed.
#[doc(hidden)]
pub mod internals {
    pub use super::driver::{LIBRARIES, absence};
    pub use super::error::names;
    pub use super::sys::{NUMBERS, PROPERTIES_ROOM};
    pub use super::table::PROTOTYPES;
}

/// Locks a mutex. A value that a panicking thread left behind is consistent: nothing here panics between two related writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle of the runtime, which may be called from any thread.
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
