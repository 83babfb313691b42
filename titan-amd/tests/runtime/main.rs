//! The interface to the HIP runtime, without a runtime: its header, its errors, and its absence.

mod driver;
mod error;
#[cfg(target_os = "linux")]
mod header;
mod once;
