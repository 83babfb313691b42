//! The C interface: `unsafe` is here and nowhere else. Each function is one line that calls `driver`.
//!
//! | module | contents |
//! |---|---|
//! | `abi` | the boundary: no panic crosses it; sticky errors, calls that fail by request |
//! | `host` | types for the caller's pointers, which rely only on what the manual requires of callers |
//! | `device`, `context`, `memory`, `module`, `stream`, `event`, `launch`, `tensor` | the functions, by topic |
//! | `graph` | captures and graphs |
//! | `faults` | extensions beyond the driver's interface: settings |

#![expect(unsafe_code, reason = "a C interface has symbols and pointers")]

mod abi;
mod context;
mod device;
mod event;
mod faults;
mod graph;
pub(crate) mod host;
mod launch;
mod memory;
mod module;
mod stream;
mod tensor;
