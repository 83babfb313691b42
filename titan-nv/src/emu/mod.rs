//! An emulator of PTX: parses the text that is shipped and runs it, warp by warp, without a GPU.
//!
//! ```text
//! text ─ lex, parse ─▶ Ast ─ decode ─▶ Program ─ launch, block, exec ─▶ memory, or an error with its place
//! ```
//!
//! **What it finds.** Reads of registers and bytes that were never written; accesses outside of an allocation, told by
//! the allocation's name; misaligned ones; threads of a warp that do not come together where they must; misused barriers;
//! deadlocks, with who waits for what; and races on shared memory, in every run in which both accesses occur. Each error
//! names the line of the PTX and, from `.loc`, of the kernel.
//!
//! **Order within a warp.** Threads are independent, as in PTX's memory model: what one writes to shared memory another
//! may read only after `bar.warp.sync`, a barrier of the block, an `mbarrier`, or a release and acquire. That threads run
//! in step, that they exchange registers (`shfl`, `vote`), or that they execute `.aligned` instructions orders nothing.
//! `cp.async` writes count as happening from the issue on, until a wait of the issuing thread. Accesses to global memory
//! are not checked for races.
//!
//! **What it covers.** PTX for sm_80 to sm_90 as compilers of tile kernels emit it: integer, floating-point, half and fp8
//! arithmetic; loads, stores and atomics of all spaces; barriers, fences, shuffles, votes; `cp.async` with groups and
//! `mbarrier`; `ldmatrix`, `stmatrix`, `mma.sync` on every type. Not: bulk copies, `wgmma`, clusters, textures, calls of
//! functions. What is not known is an error at its line when the module is parsed.
//!
//! **How exact.** Rounded instructions are exact to the bit, in all directions; approximating ones are as good as f64
//! makes them ([`lane::approx`]); matrix products round once ([`mma`]). `griddepcontrol`, `setmaxnreg`, `nanosleep`,
//! cache hints, prefetches and proxy fences have no effect here; clocks count instructions.
//!
//! Its tables share nothing with the lowering: it is there to find the lowering's mistakes.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "types and tokens that an instruction does not name are those it does not have: every such arm is an error"
)]

mod ast;
mod block;
mod decode;
mod error;
mod exec;
mod lane;
mod launch;
mod lex;
mod memory;
mod mma;
mod op;
mod parse;
mod ty;
mod warp;

pub use error::{EmuError, ErrorCode, Report, Site, Source, ThreadId};
pub use launch::{Kernel, Launch, Module, Options, Param, Stats, Uninitialised};
pub use memory::{DevicePtr, Memory};
pub use titan_core::engine::{Completion, Schedule};
