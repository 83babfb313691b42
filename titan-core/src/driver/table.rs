//! The numbers of the rule that chooses schedules, in one table, each with a public source that uses the same number.
//!
//! | | chosen | used by |
//! |---|---|---|
//! | [`CLUSTER`] | 2 programs | CUTLASS, DeepGEMM, QuACK |
//! | [`RASTER_ROWS`] | 8 rows of tiles | Triton's tutorial, CUTLASS |
//! | [`INSTANCES`] | 2 instances | CUTLASS ("ping-pong"), FlashAttention-3 |
//! | [`ROLE_SLOTS`] | as many as fit, up to 8 | CUTLASS, DeepGEMM |
//! | [`AHEAD_SLOTS`] | as many as fit, up to 4 | Triton's tutorial |
//! | [`FETCH_SLOTS`] | 1, or 2 if they fit | Triton for gfx942 |
//! | [`PROGRAMS`] | 2 programs | CUDA C++ Best Practices Guide |
//! | [`REGISTERS`] | 40 or 48 for a thread that only copies, up to 248 for another | CUTLASS, DeepGEMM, PTX ISA |
//! | [`OTHER_REGISTERS`] | 40 registers | CUTLASS |
//!
//! They are the same for all kernels and sizes on one target; what differs is whether a choice is possible and fits (`rule.rs`).
//!
//! Deliberately absent: limits of a machine, which its back end has; the number of warps, which follows from the registers of accumulators
//! ([`crate::plan`]); a search, and with it any measurements.

use crate::expand::Registers;

/// The number of programs of a cluster: adjacent programs that share a tile copy it once. CUTLASS's examples for Hopper have clusters of 2
/// × 1 × 1 and 1 × 2 × 1 (`examples/48_hopper_warp_specialized_gemm`: `ClusterShape`), DeepGEMM shares copies between at most two programs
/// (`csrc/jit_kernels/heuristics`), and QuACK tries (1, 2) and (2, 1) (`quack/gemm_config.py`).
pub const CLUSTER: u32 = 2;

/// The number of rows of tiles that concurrently running programs traverse together, so that their inputs stay in the L2 cache.
/// `GROUP_SIZE_M` of Triton's tutorial is 8 in all configurations (`python/tutorials/03-matrix-multiplication.py`); CUTLASS swizzles up to
/// 8 (`include/cutlass/gemm/kernel/tile_scheduler_params.h`).
pub const RASTER_ROWS: i32 = 8;

/// The number of instances of a role of one warpgroup, which take tiles in turn: while one stores its tile, the MMAs of the other run.
/// CUTLASS has two consumer warpgroups with a tile each (`include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp`); so has
/// FlashAttention-3 (Shah et al. 2024, arXiv:2407.08608, section 3.1).
pub const INSTANCES: u32 = 2;

/// The maximum number of slots of a ring between roles. CUTLASS and DeepGEMM take as many stages as fit in shared memory (`StageCountAuto`
/// in `include/cutlass/gemm/collective/builders/sm90_gmma_builder.inl`; at most 16 in `csrc/jit_kernels/heuristics`). No more than 8 stages
/// of 24 KiB fit, and smaller stages need no more to hide the latency of a copy.
pub const ROLE_SLOTS: u32 = 8;

/// The maximum number of slots of a loop whose warps prefetch by `cp.async`: `num_stages` is 3 to 5 in Triton's tutorial, and 4 for most
/// tiles (`python/tutorials/03-matrix-multiplication.py`).
pub const AHEAD_SLOTS: u32 = 4;

/// The maximum number of slots of a loop whose threads hold the tiles of the next iteration in registers: with one, they are stored behind a barrier
/// that shows that the last stage was read; with two, while others still read it. Triton's loops for gfx942 have one or two buffers by its
/// number of stages (`third_party/amd/lib/TritonAMDGPUTransforms/StreamPipeline.cpp`).
pub const FETCH_SLOTS: u32 = 2;

/// The number of programs that a multiprocessor should run concurrently, so that one computes while another waits at a barrier: "multiple
/// active blocks per multiprocessor" of the CUDA C++ Best Practices Guide, "Thread and Block Heuristics".
pub const PROGRAMS: u32 = 2;

/// The numbers of registers per thread where roles release registers for others.
///
/// A thread of a role that only starts bulk copies keeps 40, `LoadRegisterRequirement` of CUTLASS's kernels with warp specialization
/// (`sm90_gemm_tma_warpspecialized_pingpong.hpp`); with more than four rings, 48, as in DeepGEMM
/// (`deep_gemm/include/deep_gemm/impls/sm90_bf16_gemm.cuh`). Other threads get at most 248: `setmaxnreg` takes multiples of 8, and an
/// instruction addresses at most 255 registers (PTX ISA, "Miscellaneous Instructions: setmaxnreg"; CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
pub const REGISTERS: Registers = Registers { copying: 40, copying_to_many: 48, few_rings: 4, most: 248 };

/// The number of registers per thread for addresses, counters and predicates, besides those of tiles. It is about the same in every kernel:
/// the number that CUTLASS leaves to a thread that has nothing else ([`REGISTERS`]).
pub const OTHER_REGISTERS: u32 = 40;
