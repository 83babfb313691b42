//! tidy: table
//! The devices that can be emulated, and their attributes.
//!
//! Sources: the CUDA C++ Programming Guide, appendix "Compute Capabilities", table "Technical Specifications per Compute
//! Capability", column by column; the CUDA Driver API, `CUdevice_attribute`, for the numbers and meanings. Attributes of
//! features that are not emulated (textures, surfaces, graphs, interoperation) are 0, as on a device that lacks them.

const KIB: u32 = 1024;

/// The properties of all devices of a compute capability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    /// The names in settings and in `.target`.
    pub(crate) names: &'static [&'static str],
    /// The compute capability, times ten.
    pub(crate) capability: u32,
    pub(crate) threads_per_sm: u32,
    pub(crate) blocks_per_sm: u32,
    pub(crate) shared_per_sm: u32,
    /// The largest shared memory of a block with opt-in, in bytes.
    pub(crate) shared_optin: u32,
}

/// Programming guide, "Technical Specifications per Compute Capability": columns 8.0, 8.6, 8.9, 9.0, 10.0, 12.0.
const BOARDS: &[Board] = &[
    Board {
        names: &["sm_80"],
        capability: 80,
        threads_per_sm: 2048,
        blocks_per_sm: 32,
        shared_per_sm: 164 * KIB,
        shared_optin: 163 * KIB,
    },
    Board {
        names: &["sm_86"],
        capability: 86,
        threads_per_sm: 1536,
        blocks_per_sm: 16,
        shared_per_sm: 100 * KIB,
        shared_optin: 99 * KIB,
    },
    Board {
        names: &["sm_89"],
        capability: 89,
        threads_per_sm: 1536,
        blocks_per_sm: 24,
        shared_per_sm: 100 * KIB,
        shared_optin: 99 * KIB,
    },
    Board {
        names: &["sm_90", "sm_90a"],
        capability: 90,
        threads_per_sm: 2048,
        blocks_per_sm: 32,
        shared_per_sm: 228 * KIB,
        shared_optin: 227 * KIB,
    },
    Board {
        names: &["sm_100", "sm_100a"],
        capability: 100,
        threads_per_sm: 2048,
        blocks_per_sm: 32,
        shared_per_sm: 228 * KIB,
        shared_optin: 227 * KIB,
    },
    Board {
        names: &["sm_120", "sm_120a"],
        capability: 120,
        threads_per_sm: 1536,
        blocks_per_sm: 24,
        shared_per_sm: 100 * KIB,
        shared_optin: 99 * KIB,
    },
];

/// The shared memory that a block may use without opt-in, in bytes. Programming guide, "Maximum amount of shared memory per thread
/// block": more than 48 KB needs an explicit opt-in.
pub(crate) const SHARED: u32 = 48 * KIB;
/// The shared memory of each block that the system reserves, in bytes. Programming guide, columns 8.x to 12.x, section "Shared Memory".
pub(crate) const RESERVED: u32 = KIB;
/// The number of registers of an SM. Programming guide, the same table.
pub(crate) const REGISTERS: u32 = 64 * KIB;
/// The largest number of threads of a block.
pub(crate) const THREADS: u32 = 1024;
/// The largest extents of a block.
pub(crate) const BLOCK: [u32; 3] = [1024, 1024, 64];
/// The largest extents of a grid.
pub(crate) const GRID: [u32; 3] = [0x7FFF_FFFF, 0xFFFF, 0xFFFF];

impl Board {
    /// The board with a name such as `sm_80`.
    pub(crate) fn named(name: &str) -> Option<Board> {
        BOARDS.iter().find(|b| b.names.contains(&name)).copied()
    }

    /// All names of boards.
    pub(crate) fn names() -> Vec<&'static str> {
        BOARDS.iter().flat_map(|b| b.names).copied().collect()
    }

    /// Whether PTX for a `.target` runs on the board: targets with a suffix only on their own compute capability. PTX ISA,
    /// `.target`.
    pub(crate) fn runs(&self, target: &str) -> bool {
        let Some(digits) = target.strip_prefix("sm_") else { return false };
        let (number, exact) = digits.strip_suffix(['a', 'f']).map_or((digits, false), |n| (n, true));
        number.parse().is_ok_and(|n: u32| if exact { n == self.capability } else { n <= self.capability })
    }
}

/// A device with a board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitted {
    pub(crate) board: Board,
    pub(crate) sms: u32,
    pub(crate) memory: u64,
    /// Whether it has stream-ordered allocation.
    pub(crate) pools: bool,
}

/// The last attribute of CUDA 12.0 is 129; newer drivers have more, for features that are not emulated.
const LAST: u32 = 148;

/// An attribute of the device with an ordinal; `None` if there is no such attribute.
pub(crate) fn attribute(device: &Fitted, ordinal: u32, number: u32) -> Option<u32> {
    let board = &device.board;
    Some(match number {
        // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, _MAX_BLOCK_DIM_X, _Y, _Z, _MAX_GRID_DIM_X, _Y, _Z
        1 => THREADS,
        2..=4 => BLOCK[number as usize - 2],
        5..=7 => GRID[number as usize - 5],
        // MAX_SHARED_MEMORY_PER_BLOCK, TOTAL_CONSTANT_MEMORY, WARP_SIZE, MAX_PITCH, MAX_REGISTERS_PER_BLOCK
        8 => SHARED,
        9 => 64 * KIB,
        10 => 32,
        11 => 0x7FFF_FFFF,
        12 => REGISTERS,
        // CLOCK_RATE in kHz: operations have no duration here, so it is a round number.
        13 => 1_000_000,
        // TEXTURE_ALIGNMENT, to which allocations are aligned
        14 => 512,
        // GPU_OVERLAP, MULTIPROCESSOR_COUNT
        15 => 1,
        16 => device.sms,
        // CAN_MAP_HOST_MEMORY; COMPUTE_MODE (20) is 0: default
        19 => 1,
        // CONCURRENT_KERNELS
        31 => 1,
        // PCI_BUS_ID
        33 => ordinal + 1,
        // MEMORY_CLOCK_RATE, GLOBAL_MEMORY_BUS_WIDTH: as CLOCK_RATE
        36 => 1_000_000,
        37 => 1024,
        // L2_CACHE_SIZE
        38 => 4 * KIB * KIB,
        39 => board.threads_per_sm,
        // ASYNC_ENGINE_COUNT, UNIFIED_ADDRESSING
        40 => 2,
        41 => 1,
        75 => board.capability / 10,
        76 => board.capability % 10,
        // STREAM_PRIORITIES_SUPPORTED, GLOBAL_L1_CACHE_SUPPORTED, LOCAL_L1_CACHE_SUPPORTED
        78..=80 => 1,
        // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, MAX_REGISTERS_PER_MULTIPROCESSOR
        81 => board.shared_per_sm,
        82 => REGISTERS,
        // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
        87 => 2,
        // COMPUTE_PREEMPTION_SUPPORTED, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        90 | 91 => 1,
        // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        97 => board.shared_optin,
        106 => board.blocks_per_sm,
        111 => RESERVED,
        // MEMORY_POOLS_SUPPORTED
        115 => u32::from(device.pools),
        n if (1..=LAST).contains(&n) => 0,
        _ => return None,
    })
}
