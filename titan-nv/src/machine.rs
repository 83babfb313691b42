//! tidy: table
//! The properties of NVIDIA's architectures: one row per target, each with its source.
//!
//! Sources: the CUDA C++ Programming Guide, appendix "Compute Capabilities", table "Technical Specifications per Compute
//! Capability" (threads, registers, shared memory); the PTX ISA manual, "PTX ISA Notes" and "Target ISA Notes" of the
//! instruction (which version and target has it).
//!
//! Deliberately absent: latencies and throughputs (they belong to the scheduler), the number of SMs (a property of a
//! board, which is queried at run time), and the spelling of instructions.

use std::fmt;

/// A feature that only some architectures have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Feature {
    /// `cp.async`: copies to shared memory that bypass registers. PTX 7.0, sm_80.
    CpAsync,
    /// `ldmatrix`: a warp loads 8×8 matrices of 16-bit elements. PTX 6.5, sm_75.
    LdMatrix,
    /// `mma.sync` on f16, bf16, tf32, i8 and f64. PTX 7.0, sm_80.
    MmaSync,
    /// `mbarrier`: barriers in shared memory with arrival tokens. PTX 7.0, sm_80.
    MBarrier,
    /// Conversions to and from `e4m3` and `e5m2`. PTX 8.1, sm_89.
    Fp8Convert,
    /// `mma.sync` on `e4m3` and `e5m2`. PTX 8.4, sm_89.
    Fp8Mma,
    /// Thread block clusters, distributed shared memory, `barrier.cluster`. PTX 7.8, sm_90.
    Cluster,
    /// Bulk copies to several programs of a cluster, without a loss of speed. PTX ISA, `cp.async.bulk.tensor`: other targets than sm_90a and
    /// sm_100a to sm_110a may execute `.multicast::cluster` much more slowly, and sm_120a is such a target.
    Multicast,
    /// `cp.async.bulk.tensor`: tiles copied by the tensor memory accelerator. PTX 8.0, sm_90.
    Tma,
    /// `mbarrier.try_wait` and `arrive.expect_tx`: barriers that count bytes. PTX 7.8 and 8.0, sm_90.
    TransactionBarrier,
    /// `stmatrix`: the inverse of `ldmatrix`. PTX 7.8, sm_90.
    StMatrix,
    /// `setmaxnreg`: registers moved between warpgroups. PTX 8.0, sm_90a and later targets with an `a`.
    SetMaxNReg,
    /// `tensormap.replace`: tensor maps that kernels change. PTX 8.3, sm_90a and later targets with an `a`.
    ReplaceMap,
    /// `wgmma.mma_async`: MMAs of a warpgroup. PTX 8.0, sm_90a and no other target.
    Wgmma,
    /// `tcgen05`: tensor memory and its MMAs. PTX 8.6, sm_100a and sm_103a; not sm_120a. Kernels are not lowered to it.
    Tcgen05,
}

/// The extents of one matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaShape {
    /// The instruction's family.
    pub family: Feature,
    /// The bits of an operand's element.
    pub bits: u32,
    /// The number of rows of the accumulator.
    pub m: u32,
    /// The number of columns of the accumulator: the least and the greatest.
    pub n: (u32, u32),
    /// The extent that is summed over.
    pub k: u32,
}

/// A target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of the target as in `.target`: `sm_90a`.
    pub name: &'static str,
    /// The compute capability, times ten.
    pub capability: u32,
    /// The lowest PTX ISA version that has the target, times ten.
    pub ptx: u32,
    /// The number of lanes of a warp.
    pub warp_size: u32,
    /// The largest number of warps resident on an SM.
    pub warps_per_sm: u32,
    /// The largest number of programs (thread blocks) resident on an SM.
    pub blocks_per_sm: u32,
    /// The largest number of threads of a program.
    pub threads_per_block: u32,
    /// The number of 32-bit registers of an SM.
    pub registers_per_sm: u32,
    /// The largest number of 32-bit registers of a thread: R0 to R254, since R255 reads as zero.
    pub registers_per_thread: u32,
    /// The shared memory of an SM, in bytes.
    pub shared_per_sm: u32,
    /// The largest shared memory of a program, in bytes: that of the SM less 1 KiB, which the system reserves.
    pub shared_per_block: u32,
    /// The features of the target.
    pub features: &'static [Feature],
    /// The matrix instructions of the target.
    pub mma: &'static [MmaShape],
}

/// `mma.sync.aligned` of Ampere, which all later targets have. PTX ISA, "Matrix multiply-accumulate operation using mma instruction",
/// shapes.
const MMA_SM80: &[MmaShape] = &[
    MmaShape { family: Feature::MmaSync, bits: 64, m: 8, n: (8, 8), k: 4 },
    MmaShape { family: Feature::MmaSync, bits: 32, m: 16, n: (8, 8), k: 8 },
    MmaShape { family: Feature::MmaSync, bits: 16, m: 16, n: (8, 8), k: 16 },
    MmaShape { family: Feature::MmaSync, bits: 8, m: 16, n: (8, 8), k: 32 },
];

/// `wgmma.mma_async` takes N in steps of 8. PTX ISA, "Asynchronous warpgroup level matrix instructions", shapes.
const MMA_SM90A: &[MmaShape] = &[
    MmaShape { family: Feature::Wgmma, bits: 32, m: 64, n: (8, 256), k: 8 },
    MmaShape { family: Feature::Wgmma, bits: 16, m: 64, n: (8, 256), k: 16 },
    MmaShape { family: Feature::Wgmma, bits: 8, m: 64, n: (8, 256), k: 32 },
    MmaShape { family: Feature::MmaSync, bits: 64, m: 8, n: (8, 8), k: 4 },
    MmaShape { family: Feature::MmaSync, bits: 32, m: 16, n: (8, 8), k: 8 },
    MmaShape { family: Feature::MmaSync, bits: 16, m: 16, n: (8, 8), k: 16 },
    MmaShape { family: Feature::MmaSync, bits: 8, m: 16, n: (8, 8), k: 32 },
];

const AMPERE: &[Feature] = &[Feature::CpAsync, Feature::LdMatrix, Feature::MmaSync, Feature::MBarrier];
const ADA: &[Feature] =
    &[Feature::CpAsync, Feature::LdMatrix, Feature::MmaSync, Feature::MBarrier, Feature::Fp8Convert, Feature::Fp8Mma];
const HOPPER: &[Feature] = &[
    Feature::CpAsync,
    Feature::LdMatrix,
    Feature::MmaSync,
    Feature::MBarrier,
    Feature::Fp8Convert,
    Feature::Fp8Mma,
    Feature::Cluster,
    Feature::Multicast,
    Feature::Tma,
    Feature::TransactionBarrier,
    Feature::StMatrix,
    Feature::SetMaxNReg,
    Feature::ReplaceMap,
    Feature::Wgmma,
];
const BLACKWELL: &[Feature] = &[
    Feature::CpAsync,
    Feature::LdMatrix,
    Feature::MmaSync,
    Feature::MBarrier,
    Feature::Fp8Convert,
    Feature::Fp8Mma,
    Feature::Cluster,
    Feature::Multicast,
    Feature::Tma,
    Feature::TransactionBarrier,
    Feature::StMatrix,
    Feature::SetMaxNReg,
    Feature::ReplaceMap,
    Feature::Tcgen05,
];
const BLACKWELL_RTX: &[Feature] = &[
    Feature::CpAsync,
    Feature::LdMatrix,
    Feature::MmaSync,
    Feature::MBarrier,
    Feature::Fp8Convert,
    Feature::Fp8Mma,
    Feature::Cluster,
    Feature::Tma,
    Feature::TransactionBarrier,
    Feature::StMatrix,
    Feature::SetMaxNReg,
    Feature::ReplaceMap,
];

const KIB: u32 = 1024;

/// The properties that all rows share: 32 lanes, 1024 threads, 64 Ki registers, at most 255 for a thread. Programming guide, as above.
const COMMON: Machine = Machine {
    name: "",
    capability: 0,
    ptx: 0,
    warp_size: 32,
    warps_per_sm: 64,
    blocks_per_sm: 32,
    threads_per_block: 1024,
    registers_per_sm: 64 * KIB,
    registers_per_thread: 255,
    shared_per_sm: 0,
    shared_per_block: 0,
    features: &[],
    mma: &[],
};

/// The targets, oldest first.
const MACHINES: &[Machine] = &[
    // Programming guide, column 8.0. PTX ISA, release history: sm_80 since 7.0.
    Machine {
        name: "sm_80",
        capability: 80,
        ptx: 70,
        shared_per_sm: 164 * KIB,
        shared_per_block: 163 * KIB,
        features: AMPERE,
        mma: MMA_SM80,
        ..COMMON
    },
    // Programming guide, column 8.6. PTX ISA, release history: sm_86 since 7.1.
    Machine {
        name: "sm_86",
        capability: 86,
        ptx: 71,
        warps_per_sm: 48,
        blocks_per_sm: 16,
        shared_per_sm: 100 * KIB,
        shared_per_block: 99 * KIB,
        features: AMPERE,
        mma: MMA_SM80,
        ..COMMON
    },
    // Programming guide, column 8.9. PTX ISA, release history: sm_89 since 7.8.
    Machine {
        name: "sm_89",
        capability: 89,
        ptx: 78,
        warps_per_sm: 48,
        blocks_per_sm: 24,
        shared_per_sm: 100 * KIB,
        shared_per_block: 99 * KIB,
        features: ADA,
        mma: MMA_SM80,
        ..COMMON
    },
    // Programming guide, column 9.0. PTX ISA, release history: sm_90a since 8.0.
    Machine {
        name: "sm_90a",
        capability: 90,
        ptx: 80,
        shared_per_sm: 228 * KIB,
        shared_per_block: 227 * KIB,
        features: HOPPER,
        mma: MMA_SM90A,
        ..COMMON
    },
    // Programming guide, column 10.0. PTX ISA, release history: sm_100a since 8.6.
    Machine {
        name: "sm_100a",
        capability: 100,
        ptx: 86,
        shared_per_sm: 228 * KIB,
        shared_per_block: 227 * KIB,
        features: BLACKWELL,
        mma: MMA_SM80,
        ..COMMON
    },
    // Programming guide, column 10.3. PTX ISA, release history: sm_103a since 8.8.
    Machine {
        name: "sm_103a",
        capability: 103,
        ptx: 88,
        shared_per_sm: 228 * KIB,
        shared_per_block: 227 * KIB,
        features: BLACKWELL,
        mma: MMA_SM80,
        ..COMMON
    },
    // Programming guide, column 12.0. PTX ISA, release history: sm_120a since 8.7. It has no tensor memory.
    Machine {
        name: "sm_120a",
        capability: 120,
        ptx: 87,
        warps_per_sm: 48,
        blocks_per_sm: 24,
        shared_per_sm: 100 * KIB,
        shared_per_block: 99 * KIB,
        features: BLACKWELL_RTX,
        mma: MMA_SM80,
        ..COMMON
    },
];

impl Machine {
    /// All targets, oldest first.
    #[must_use]
    pub const fn all() -> &'static [Machine] {
        MACHINES
    }

    /// The target with this name.
    ///
    /// # Errors
    /// If there is none; the error lists all targets.
    pub fn from_name(name: &str) -> Result<&'static Machine, UnknownMachine> {
        MACHINES.iter().find(|m| m.name == name).ok_or_else(|| UnknownMachine { asked: name.to_owned() })
    }

    /// The targets whose code runs on devices of a compute capability, times ten, the best one first.
    #[must_use]
    pub fn of_capability(capability: u32) -> Vec<&'static Machine> {
        // Reversed, a target with a suffix comes before the one of the same compute capability without.
        MACHINES.iter().rev().filter(|m| m.runs_on(capability)).collect()
    }

    /// Whether its code runs on devices of a compute capability, times ten: PTX of `sm_XY` runs on every later device, of `sm_XYa` on its
    /// own only. PTX ISA, directive `.target`.
    #[must_use]
    pub fn runs_on(&self, capability: u32) -> bool {
        if self.name.ends_with('a') { self.capability == capability } else { self.capability <= capability }
    }

    /// Whether the target has a feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}

/// The error for a target that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMachine {
    /// The name that was requested.
    pub asked: String,
}

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = MACHINES.iter().map(|m| format!("`{}`", m.name)).collect();
        write!(f, "there is no NVIDIA target `{}`; the known ones are {}", self.asked, known.join(", "))?;
        let close = MACHINES.iter().find(|m| m.name.strip_suffix('a') == Some(self.asked.as_str()));
        close.map_or(Ok(()), |m| write!(f, "\n  help: kernels need what only `{}` has", m.name))
    }
}

impl std::error::Error for UnknownMachine {}
