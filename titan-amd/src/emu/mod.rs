//! An emulator of gfx942: runs the bytes of code objects, wave by wave, without a GPU.
//!
//! ```text
//! bytes ─ object::read ─▶ Module ─ decode ─▶ Op ─ launch, group, exec ─▶ memory, or an error with its instruction
//! ```
//!
//! **Findings.** Reads of registers and bytes that were never written; uses of registers that an operation in
//! flight will write; too few wait states between instructions; accesses outside of an allocation, reported with its name;
//! misaligned ones; unordered accesses to the local data share; deadlocks; waves that run into data. Each error names the
//! address, the instruction and the wave.
//!
//! **Completion of memory operations.** Addresses and data are captured when an operation is issued. It completes
//! as late as a wait requires, at once, or at random in between ([`Completion`]), in the order that the manual gives each
//! counter: vector memory in order; the local data share in order; scalar memory in any order, so that only a wait for all
//! operations guarantees a completion; flat addresses in any order with both. `s_barrier` waits for no counter.
//!
//! **Coverage.** Scalar and vector arithmetic with SDWA and DPP, packed arithmetic, dense MMAs of every
//! type, the local data share with its atomics and exchanges, buffers, global, flat and private memory with atomics, loads
//! into the local data share, scalar loads, barriers. [`Absent`] lists what is not emulated; each is an error that names it, where it is
//! executed.
//!
//! **Accuracy.** Instructions whose results IEEE 754 defines are exact to the bit, rounded to nearest; approximating ones have the
//! accuracy of `f64`; MMAs are summed in `f64` and rounded once (`matrix.rs`). Cache control, priorities
//! and sleeps have no effect; clocks count instructions.
//!
//! Its tables are independent of a code generator, whose bugs it is meant to find.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an operand or operation that a place does not name is one that cannot stand there: every such arm is an error; \
              `hazard` and `group`, which decide what is legal, name all"
)]

mod absent;
mod atomic;
mod error;
mod exec;
mod fail;
mod group;
mod hazard;
mod held;
mod l1;
mod lane;
mod launch;
mod matrix;
mod memory;
mod module;
mod op;
mod private;
mod scalar;
mod scalars;
mod shaded;
mod shadow;
mod tell;
mod vectors;
mod watch;
mod wave;

pub use absent::Absent;
pub use error::{EmuError, ErrorCode, Report, Site, WaveId};
pub use group::LocalAccess;
pub use launch::{Arg, Args, Launch, Options, Stats, Uninitialised};
pub use memory::{DevicePtr, Memory};
pub use module::{Kernel, Module};
pub use titan_sim::engine::{Completion, Schedule};
