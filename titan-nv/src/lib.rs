//! TITAN for NVIDIA GPUs.
//!
//! [`Machine`] says what an architecture has, one row per target, each row citing the manual it was read in. It is a back end of
//! [`titan_core::driver`], which plans kernels for it and lowers them to lanes; [`emit`] spells those as PTX, where [`lower`]
//! chooses instructions and [`ptx`] is what they are.
//!
//! [`tma`] is the model of copies by tensor maps.
//!
//! With feature `emu`: an emulator of PTX text, for tests and tools, which shares no tables with the rest.
//!
//! With feature `runtime`: NVIDIA's driver, opened when the program runs.
//!
//! Deliberately absent: the meaning of tile operations, which all GPUs share (titan-core). Never to come: PTX templates
//! written by hand. What is emitted comes from the IR.

mod backend;
#[cfg(feature = "emu")]
pub mod emu;
pub mod lower;
pub mod machine;
pub mod ptx;
#[cfg(feature = "runtime")]
pub mod runtime;
mod target;
pub mod tma;

pub use lower::{EmitError, Ptx, emit};
pub use machine::{Feature, Machine, UnknownMachine};
pub use target::target;
