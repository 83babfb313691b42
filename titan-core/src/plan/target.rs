//! The properties of a machine on which plans and lowering depend. The back ends set them from their tables.

use super::Timing;
use crate::lane::MmaAtom;

/// The properties of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name in artifacts: `sm_80`, `gfx942`.
    pub name: &'static str,
    /// The number of lanes of a warp: 32 or 64.
    pub lanes: u32,
    /// The maximum number of warps of a program.
    pub max_warps: u32,
    /// The maximum number of 32-bit registers of a thread.
    pub registers: u32,
    /// The maximum shared memory of a program in bytes.
    pub shared_bytes: u32,
    /// The limits of shared memory, in bytes and ascending, of devices that execute this target's code. There may be a variant for each.
    pub shared_classes: Vec<u32>,
    /// The shared memory of a multiprocessor that the system reserves for each program, in bytes.
    pub shared_reserved: u32,
    /// The number of 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// The maximum number of resident warps of a multiprocessor.
    pub warps_per_sm: u32,
    /// The matrix instructions of a warp; for equal element types, the preferred one comes first.
    pub atoms: Vec<MmaAtom>,
    /// The matrix instructions of a warpgroup, with the maximum N; empty if there are none.
    pub group_atoms: Vec<MmaAtom>,
    /// Whether there are bulk copies of tiles to shared memory by tensor maps.
    pub bulk_tensor: bool,
    /// Whether programs can be launched in clusters, and bulk copies to several of them are as fast as to one.
    pub clusters: bool,
    /// The number of warps of a role must be a multiple of this.
    pub role_warps: u32,
    /// Whether threads can copy to shared memory asynchronously.
    pub copy_async: bool,
    /// Whether there is an instruction that loads matrix fragments from shared memory (`ldmatrix`).
    pub load_matrix: bool,
    /// Whether there is an instruction that stores matrix fragments to shared memory (`stmatrix`).
    pub store_matrix: bool,
    /// Whether there are instructions for conversions to and from `e4m3` and `e5m2`.
    pub fp8_convert: bool,
    /// Whether there are instructions for sums and products of `bf16`.
    pub bf16_arithmetic: bool,
    /// How fast it executes instructions.
    pub timing: Timing,
}

impl Target {
    /// The number of registers of each thread if so many threads share those of a multiprocessor equally: a multiple of 8, the unit in which
    /// they are allocated.
    pub(crate) fn equal_registers(&self, threads: u32) -> u32 {
        self.registers_per_sm / threads.max(1) / 8 * 8
    }
}
