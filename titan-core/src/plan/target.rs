//! The properties of a machine that plans and lowering depend on. The back ends fill them in from their tables.

use crate::lane::MmaAtom;

/// A machine, as far as plans and the lowering to lane IR depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name in artifacts: `sm_80`, `gfx942`.
    pub name: &'static str,
    /// Lanes of a warp: 32 or 64.
    pub lanes: u32,
    /// Warps of a program, at most.
    pub max_warps: u32,
    /// Registers of 32 bits that a thread may use.
    pub registers: u32,
    /// Shared memory that a program may take, in bytes.
    pub shared_bytes: u32,
    /// What devices that run this target's code grant a program, in bytes, the least first: for each there may be a variant.
    pub shared_classes: Vec<u32>,
    /// Shared memory of a multiprocessor that the system keeps for each program, in bytes.
    pub shared_reserved: u32,
    /// Registers of 32 bits of a multiprocessor.
    pub registers_per_sm: u32,
    /// Warps that a multiprocessor holds.
    pub warps_per_sm: u32,
    /// Matrix instructions of a warp, the best of each element triple first.
    pub atoms: Vec<MmaAtom>,
    /// Matrix instructions of a warpgroup; N is the greatest one. Empty: there are none.
    pub group_atoms: Vec<MmaAtom>,
    /// Whether there are bulk copies of tiles to shared memory, by tensor maps.
    pub bulk_tensor: bool,
    /// Whether programs can be launched in clusters, whose copies are for all of them.
    pub clusters: bool,
    /// The warps of a role are a multiple of this.
    pub role_warps: u32,
    /// Whether there are asynchronous copies to shared memory by threads.
    pub copy_async: bool,
    /// Whether there is an instruction that loads matrix fragments from shared memory.
    pub load_matrix: bool,
    /// Whether there is an instruction that stores such fragments to shared memory.
    pub store_matrix: bool,
    /// Whether conversions to and from `e4m3` and `e5m2` are instructions.
    pub fp8_convert: bool,
    /// Whether `bf16` has sums and products of its own.
    pub bf16_arithmetic: bool,
}
