//! An emulator of PTX: parses the text that is shipped and runs it, warp by warp, without a GPU.
//!
//! ```text
//! text ─ lex, parse ─▶ Ast ─ decode ─▶ Program ─ launch, block, exec ─▶ memory, or an error with its place
//! ```
//!
//! **Findings.** Reads of registers and bytes that were never written; accesses outside of an allocation, reported with
//! the allocation's name; misaligned ones; threads of a warp, or warps of a warpgroup, that do not execute together the instructions
//! that require it; registers used while a `wgmma` uses them; asynchronous operations that miss a fence between proxies; misused
//! barriers; deadlocks, with the event that each thread waits for; and races on shared memory, in every run in which both accesses
//! occur. Each error names the line of the PTX and, from `.loc`, of the kernel.
//!
//! **Order within a warp.** Threads are independent, as in PTX's memory model: what one thread writes to shared memory another
//! may read only after `bar.warp.sync`, a barrier of the block or of the cluster, an `mbarrier`, or a release and acquire.
//! That threads run in lockstep, that they exchange registers (`shfl`, `vote`), or that they execute `.aligned` instructions
//! orders nothing. Asynchronous operations count as happening from the issue on, until a thread has waited for them.
//! Accesses to global memory are not checked for races.
//!
//! **Coverage.** PTX for sm_80 to sm_120a as compilers of tile kernels emit it: integer, floating-point, half and fp8
//! arithmetic; loads, stores and atomics of all spaces; barriers, fences, shuffles, votes; `cp.async` with groups and
//! `mbarrier`; `ldmatrix`, `stmatrix`, `mma.sync` on every type; bulk copies of ranges and of boxes of tensors, with
//! multicast and reduction; `wgmma` on every type but bits; clusters of up to 16 blocks with each other's shared memory;
//! `setmaxnreg`; tensor maps that are changed on the device; calls of functions, which are inlined. Not: `im2col` boxes, `tcgen05`,
//! `multimem`, textures, recursion, calls by an address. Unsupported instructions are errors at their line when the module is parsed. Calls
//! of functions that the module does not define are errors when they are executed; `__assertfail` is the error that the kernel reports.
//!
//! Tensor maps are those of [`crate::tma::TensorMap`]: hardware's own encoding is known to the driver alone. Registers are
//! counted for `setmaxnreg` as an assembler gives them to a kernel: an equal part of 65,536 for each thread of whole
//! warpgroups.
//!
//! **Accuracy.** Rounded instructions are exact to the bit, in all directions; approximating ones have the accuracy of f64,
//! which is within the manual's bounds but may differ from hardware in the last bit; an MMA sums in f64 and rounds
//! once, where hardware truncates along the way. `griddepcontrol`, `nanosleep`, cache hints and prefetches have no effect
//! here; clocks count instructions.
//!
//! Its tables are independent of the lowering, whose bugs it is meant to find.
//!
//! ```
//! use titan_nv::emu::{Launch, Memory, Module, Options, Param};
//!
//! let text = "
//!     .version 7.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry double(.param .u64 x) {
//!         .reg .b64 %p<2>; .reg .b32 %i; .reg .f32 %v;
//!         ld.param.u64 %p0, [x]; mov.u32 %i, %tid.x; mad.wide.u32 %p1, %i, 4, %p0;
//!         ld.global.f32 %v, [%p1]; add.f32 %v, %v, %v; st.global.f32 [%p1], %v; ret;
//!     }";
//! let module = Module::parse(text)?;
//! let mut memory = Memory::new();
//! let x = memory.upload("x", &1.5_f32.to_le_bytes());
//! let launch = Launch { grid: [1; 3], block: [1; 3], dynamic_shared: 0, cluster: None, params: &[Param::Ptr(x)] };
//! module.entry("double")?.run(&launch, &mut memory, &Options::default())?;
//! assert_eq!(memory.read(x, 4)?, 3.0_f32.to_le_bytes());
//!
//! // One thread too many, and the error says where.
//! let launch = Launch { block: [2, 1, 1], ..launch };
//! let error = module.entry("double")?.run(&launch, &mut memory, &Options::default()).unwrap_err();
//! assert!(error.to_string().contains("0 bytes after the end of `x` of 4 bytes"));
//! # Ok::<(), titan_nv::emu::EmuError>(())
//! ```

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "types and tokens that an instruction does not name are those it does not have: every such arm is an error"
)]

mod ast;
mod async_op;
mod boxes;
mod cluster;
mod decode;
mod error;
mod exec;
mod facts;
mod fences;
mod group;
mod job;
mod lane;
mod launch;
mod lex;
mod maps;
mod memory;
mod mma;
mod op;
mod parse;
mod product;
mod products;
mod proxy;
mod touched;
mod ty;
mod warp;
mod watch;

pub use error::{EmuError, ErrorCode, Report, Site, Source, ThreadId};
pub use launch::{Kernel, Launch, Module, Options, Param, Stats, Uninitialised};
pub use memory::{DevicePtr, Memory};
pub use titan_sim::engine::{Completion, Schedule};
pub use touched::{Ranges, Touched};

/// For this repository's tests only, and no part of the stable interface: parts of the emulator, of which PTX shows no more than what they do
/// together.
#[doc(hidden)]
pub mod internals {
    use super::product::Descriptor;
    use super::ty::Ty;
    use std::ops::Range;

    pub use super::async_op::Reach;
    pub use super::group::Group;
    pub use super::lane::Rnd;
    pub use super::lane::format::{BF16, E4M3, E5M2, F16, F32, Format, round32, sticky};
    pub use super::maps::{MAP, MapScope, Maps, Party};
    pub use super::mma::{at_a, at_b, at_c, half};
    pub use super::op::Meet;
    pub use super::products::{Conflict, Products};
    pub use super::proxy::{Stores, View};
    pub use super::warp::{Fragment, Warp};

    /// The address of the unit of 16 bytes at byte `byte` of `line` in the matrix of a descriptor.
    #[must_use]
    pub fn unit(descriptor: u64, mn: bool, line: u64, byte: u64) -> Option<u64> {
        Descriptor::new(descriptor).ok().map(|d| d.unit(mn, line, byte))
    }

    /// The addresses of the units of these rows of `k` elements of bf16.
    #[must_use]
    pub fn bf16_units(descriptor: u64, rows: Range<usize>, k: usize) -> Option<Vec<u64>> {
        Descriptor::new(descriptor).ok().map(|d| d.units(false, rows, k, Ty::Bf16))
    }
}
