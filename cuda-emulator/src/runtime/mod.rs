//! The C interface: `unsafe` is here and nowhere else. Functions are one line each over `driver`.
//!
//! | module | what it has |
//! |---|---|
//! | `abi` | the edge: no panic crosses it, errors that stay, calls that fail by request |
//! | `host` | pointers of the caller as types, whose one promise is the manual's |
//! | `device`, `context`, `memory`, `module`, `stream`, `event`, `launch`, `tensor` | the functions, by theme |
//! | `faults` | what this library has beyond the interface: settings |

#![expect(unsafe_code, reason = "a C interface has symbols and pointers")]

mod abi;
mod context;
mod device;
mod event;
mod faults;
pub(crate) mod host;
mod launch;
mod memory;
mod module;
mod stream;
mod tensor;
