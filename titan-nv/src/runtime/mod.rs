//! The CUDA driver: devices, memory, modules, streams and events. Feature `runtime`.
//!
//! ```text
//! Driver ── Device ── Context ─┬─ Stream ── Event        work in order, and points in it
//!  library, symbols, cuInit    ├─ Memory, Pinned         of the device; of the host, seen by the device
//!                              ├─ Function               a kernel of a module that the driver has compiled
//!                              ├─ Graph                  kernels that are launched at once
//!                              └─ HostMemory             pinned memory that a caller fills
//! ```
//!
//! All of the crate's `unsafe` code is here. The library is opened at run time: a program starts without it, and reports why there
//! is no GPU when one is requested ([`Absence`]). Functions are looked up once and called through function pointers, whose results are
//! plain integers: a driver that is newer than this crate may return codes that an enum would lack. The types and numbers of the
//! driver's interface are defined here too (`sys`), so that this crate depends on no bindings and no version of them.
//!
//! Functions that older drivers lack (`OPTIONAL_SYMBOLS`) are looked up too, and their absence is an error only where they are needed:
//! without tensor maps, launches take variants that have none.
//!
//! Contexts are the primary ones, shared with whatever else in the process uses the device, and live as long as the process.
//!
//! **The end of work.** Memory is freed, and host memory is returned to its owner, only after the driver has reported that
//! the work that uses it has ended. A call that fails reports nothing, so another one is made: a stream whose event cannot be
//! recorded is synchronized, and if that fails too, it is queried. If all of these fail although the
//! context is alive, the end of that work will never be known: the context is abandoned ([`Context`]), every later call in it
//! returns that error, and nothing of it is freed. No failure is kept otherwise ([`Once`]).
//!
//! Deliberately absent: the meaning of a launch in TITAN (variants, arguments, ordering), which is in the facade's runtime.

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
mod pinned;
mod stream;
mod sys;
mod table;
mod tensor;

pub use context::{Context, Owner};
pub use driver::{Absence, Device, Driver, OPTIONAL_SYMBOLS, Properties, SYMBOLS};
pub use error::{DriverError, Kind};
pub use event::{Event, Waiting};
pub use graph::{Graph, Kernel};
pub use host_memory::HostMemory;
pub use memory::{Follower, Memory};
pub use module::{Function, LoadError, Params};
pub use once::Once;
pub use pinned::Pinned;
pub use stream::Stream;
pub use tensor::{EncodeError, EncodedMap};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// For this repository's tests only, and no part of the stable interface: what the driver's interface is, to be compared with its header.
#[doc(hidden)]
pub mod internals {
    pub use super::driver::{LIBRARIES, absence};
    pub use super::error::names;
    pub use super::sys::{KERNEL_NODE_PARAMS, NUMBERS};
    pub use super::tensor::encoder_sizes;
}

/// Locks a mutex. A value that a panicking thread left behind is consistent: nothing here panics between two related writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle of the driver. The driver may be called from any thread.
#[derive(Debug)]
struct Handle<T>(*mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

// SAFETY: the pointer is never followed here; it is a name that the driver gave, and "CUDA Driver API, Difference between
// the driver and runtime APIs" lets every thread use the names of a context that it has made current.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; a shared reference only allows to copy the name.
unsafe impl<T> Sync for Handle<T> {}
