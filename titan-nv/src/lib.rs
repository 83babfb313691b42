//! TITAN for NVIDIA GPUs.
//!
//! [`Machine`] describes the architectures, one row per target, each row citing the manual it was taken from. It is a back end of
//! [`titan_core::driver`], which plans kernels for it and lowers them to lanes; [`emit`] prints those as PTX: [`lower`]
//! selects instructions, and [`ptx`] represents them.
//!
//! [`tma`] is the model of copies by tensor maps.
//!
//! With feature `emu`: an emulator of PTX text, for tests and tools, which shares no tables with the rest.
//!
//! With feature `runtime`: the CUDA driver, which is opened when the program runs.
//!
//! Deliberately absent: the meaning of tile operations, which all GPUs share (titan-core), and, for good, PTX templates
//! written by hand: everything that is emitted comes from the IR.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

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
