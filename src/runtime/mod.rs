//! Devices, tensors, streams and launches: the host side of kernels.
//!
//! ```text
//! Device ── Tensor ── View, ViewMut          layout.rs: extents, strides      transfer.rs: copies from and to the host
//!    │         │
//!    │         └ Buffer ── Uses (footprint, event)       uses.rs: ordering of work; when memory is freed
//!    └ Stream ── jobs ─────── Event                      event.rs: the end of work, failures
//! KernelRef + LaunchArgs → Launch → .sync() | .launch(&stream) | .await
//! Instances, values → KernelRef                               instance.rs: the declared instances of a kernel, and the choice of one
//! Stream::capture → Graph → Stream                            capture.rs, graph.rs: launches that are replayed at once
//! Bench → Flush → Stream                                     queued.rs: work of streams that is no kernel
//! bytes → DynTensor → Tensor                                  dyn_tensor.rs: an element type that is known at run time
//! memory of others → DynView                                  dyn_view.rs, stored.rs: what frameworks hold; dlpack/: what they exchange
//! ```
//!
//! Guards such as [`ViewMut`] let rustc check borrows, but soundness does not depend on them: every access to device memory, from any
//! thread, is ordered by the table of uses in its buffer.
//!
//! The kinds of devices are variants of the enums in `backend.rs`; the rest of the module is independent of them.

mod absence;
mod arg;
mod as_tensor;
mod axes;
mod backend;
mod buffer;
mod capture;
mod choice;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device;
#[cfg(any(feature = "cpu", feature = "cuda"))]
pub mod dlpack;
mod dyn_tensor;
mod dyn_view;
#[cfg(feature = "emulator")]
mod emulator;
mod event;
mod footprint;
mod future;
#[cfg(any(feature = "cuda", feature = "hip", feature = "emulator"))]
mod gpu;
mod graph;
#[cfg(feature = "hip")]
pub mod hip;
mod instance;
mod kernel;
mod kernels;
mod launch;
mod layout;
#[cfg(any(feature = "cuda", feature = "hip", feature = "emulator"))]
mod machines;
mod memory_use;
mod new_tensor;
mod nvtx;
mod pinned;
#[cfg(any(feature = "cuda", feature = "hip", feature = "emulator", feature = "simulator"))]
mod print;
mod queued;
mod recent;
mod reference;
#[cfg(feature = "_remote")]
mod remote;
mod setting;
#[cfg(feature = "simulator")]
mod simulator;
mod storage;
#[cfg(any(feature = "cpu", feature = "cudarc"))]
mod stored;
mod stream;
#[cfg(any(feature = "cpu", feature = "cuda"))]
mod strided;
mod tensor;
mod timing;
mod transfer;
mod uses;
mod view;

pub use arg::LaunchArg;
pub use as_tensor::{
    Absent, AnyElem, AnyOption, AnyOptionMut, AnyTensor, AnyTensorMut, AsTensor, AsTensorMut, Exclusive,
};
pub use choice::Choice;
pub use device::{Device, DeviceKind};
pub use dyn_tensor::DynTensor;
pub use dyn_view::{DynView, DynViewMut};
pub use future::LaunchFuture;
pub use graph::Graph;
pub(crate) use instance::fingerprint;
pub use instance::{Declares, ElemChoice, GenericArg, Instance, by_key, no_arm, position, run_reference};
pub use kernel::KernelRef;
pub use kernels::{KernelInfo, Listed, Registers, VariantInfo, kernels};
pub use launch::Launch;
pub use layout::MAX_RANK;
pub(crate) use layout::were;
pub use memory_use::MemoryUse;
pub use pinned::{Pinned, Upload};
pub(crate) use queued::Flush;
pub use reference::{HostTensor, Reference};
#[cfg(any(feature = "cpu", feature = "cudarc"))]
pub use stored::Stored;
pub use stream::Stream;
#[cfg(any(feature = "cpu", feature = "cuda"))]
pub use strided::{Place, Strided};
pub use tensor::Tensor;
pub use timing::{Event, Timer};
pub use view::{View, ViewMut};

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks. The data is consistent even if a thread panicked: no code here panics between two related writes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps while `condition` holds.
fn wait_while<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    changed.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
}
