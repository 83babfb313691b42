//! tidy: table
//! The properties of AMD's architectures: one row per target, each with its source.
//!
//! Sources: "AMD Instinct MI300" Instruction Set Architecture (CDNA3), cited as ISA; the LLVM AMDGPU back end's user guide
//! (`AMDGPUUsage`), cited as LLVM.
//!
//! Deliberately absent: hazards, opcodes and encodings (they come with the encoder), latencies beyond the passes of a
//! matrix instruction, and the number of compute units (a property of a board, queried at run time).

use std::fmt;
use titan_core::ir::{Elem, MMA_TRIPLES};
use titan_core::lane::MmaAtom;
use titan_core::layout::atoms::Atom;

/// The format of 8-bit floats in the instructions of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp8 {
    /// No negative zero and no infinity, bias 8 and 16, NaN is 0x80. Values of the language are OCP and are converted.
    Fnuz,
    /// The formats of the language (OCP).
    Ocp,
}

/// The element type that a matrix instruction multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MfmaElem {
    /// `f64`.
    F64,
    /// `f32`, with the precision of `f32`.
    F32,
    /// `f32` whose significands are rounded to 10 bits of fraction: `tf32` of the language.
    Xf32,
    /// `f16` or `bf16`.
    Half,
    /// FP8 of the machine's flavour, or `i8`.
    Byte,
}

/// One `v_mfma` instruction of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mfma {
    /// The element type of both operands.
    pub elem: MfmaElem,
    /// The number of rows and of columns of the accumulator.
    pub mn: u32,
    /// The extent that is summed over.
    pub k: u32,
    /// The number of registers of each operand in a lane.
    pub operand_registers: u32,
    /// The number of registers of the accumulator in a lane.
    pub accumulator_registers: u32,
    /// The number of passes of four cycles.
    pub passes: u32,
}

/// A target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of the target as in `-mcpu`: `gfx942`.
    pub name: &'static str,
    /// The number of lanes of a wave.
    pub wave_size: u32,
    /// The number of SIMD units of a compute unit.
    pub simds_per_cu: u32,
    /// The number of dies of a device (XCDs), each with a second-level cache, to which it deals programs in turn. A device with another number, as
    /// the MI300A or a part of a device, computes the same.
    pub dies: u32,
    /// The largest number of waves resident on a SIMD unit.
    pub waves_per_simd: u32,
    /// The largest number of work items of a program.
    pub threads_per_group: u32,
    /// The number of vector registers of a lane, shared by the waves of a SIMD unit.
    pub vgprs_per_simd: u32,
    /// The largest number of architectural vector registers of a wave.
    pub arch_vgprs: u32,
    /// The largest number of accumulation vector registers of a wave.
    pub acc_vgprs: u32,
    /// The unit in which vector registers are allocated.
    pub vgpr_granule: u32,
    /// The largest number of scalar registers of a wave.
    pub sgprs: u32,
    /// The local data share of a compute unit, and the largest one of a program, in bytes.
    pub lds_bytes: u32,
    /// The unit in which the local data share is allocated, in bytes.
    pub lds_granule: u32,
    /// The number of banks of the local data share, each four bytes wide.
    pub lds_banks: u32,
    /// The largest count of outstanding vector memory operations in `s_waitcnt`.
    pub vmcnt_max: u32,
    /// The largest count of outstanding operations of the local data share, scalar memory and messages in `s_waitcnt`.
    pub lgkmcnt_max: u32,
    /// Whether a subset of a program's waves can synchronize at a barrier of its own.
    pub named_barriers: bool,
    /// The format of 8-bit floats in its instructions.
    pub fp8: Fp8,
    /// The matrix instructions of the target.
    pub mfma: &'static [Mfma],
}

/// ISA §7.1 "Matrix fused-multiply-add", tables of opcodes and passes; registers follow from 64 lanes.
const MFMA_GFX942: &[Mfma] = &[
    Mfma { elem: MfmaElem::F64, mn: 16, k: 4, operand_registers: 2, accumulator_registers: 8, passes: 8 },
    Mfma { elem: MfmaElem::F32, mn: 32, k: 2, operand_registers: 1, accumulator_registers: 16, passes: 16 },
    Mfma { elem: MfmaElem::F32, mn: 16, k: 4, operand_registers: 1, accumulator_registers: 4, passes: 8 },
    Mfma { elem: MfmaElem::Xf32, mn: 32, k: 4, operand_registers: 2, accumulator_registers: 16, passes: 8 },
    Mfma { elem: MfmaElem::Xf32, mn: 16, k: 8, operand_registers: 2, accumulator_registers: 4, passes: 4 },
    Mfma { elem: MfmaElem::Half, mn: 32, k: 8, operand_registers: 2, accumulator_registers: 16, passes: 8 },
    Mfma { elem: MfmaElem::Half, mn: 16, k: 16, operand_registers: 2, accumulator_registers: 4, passes: 4 },
    Mfma { elem: MfmaElem::Byte, mn: 32, k: 16, operand_registers: 2, accumulator_registers: 16, passes: 8 },
    Mfma { elem: MfmaElem::Byte, mn: 16, k: 32, operand_registers: 2, accumulator_registers: 4, passes: 4 },
];

/// The targets.
const MACHINES: &[Machine] = &[
    // ISA §2 "Program organization" (waves, LDS), §3.6 "Storage: GPRs and LDS" (registers, granules), §4.4 "Manually
    // inserted wait states" and §12 S_WAITCNT (counters), §7.1 (matrix instructions); LLVM "Memory model gfx942".
    Machine {
        name: "gfx942",
        wave_size: 64,
        simds_per_cu: 4,
        // CDNA3 white paper: 8 XCDs with 4 MiB of L2 each; workgroups go to them round robin.
        dies: 8,
        waves_per_simd: 8,
        threads_per_group: 1024,
        vgprs_per_simd: 512,
        arch_vgprs: 256,
        acc_vgprs: 256,
        vgpr_granule: 8,
        sgprs: 102,
        lds_bytes: 64 * 1024,
        lds_granule: 512,
        lds_banks: 32,
        vmcnt_max: 63,
        lgkmcnt_max: 15,
        named_barriers: false,
        fp8: Fp8::Fnuz,
        mfma: MFMA_GFX942,
    },
];

impl Machine {
    /// All targets.
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

    /// The number of waves of a kernel that a SIMD unit holds, by the vector registers of a lane, both kinds together; 0 if a wave
    /// cannot have that many.
    ///
    /// ISA §3.6.4: registers are allocated in granules from one file.
    #[must_use]
    pub fn waves_by_registers(&self, registers: u32) -> u32 {
        if registers > self.arch_vgprs + self.acc_vgprs {
            return 0;
        }
        let allocated = registers.max(1).next_multiple_of(self.vgpr_granule);
        (self.vgprs_per_simd / allocated).min(self.waves_per_simd)
    }
}

/// The matrix instructions of a machine with their fragments, the preferred ones first.
///
/// * Operands are exchanged, so that a lane holds adjacent elements of a row of the accumulator ([`Atom::exchanged`]).
/// * A fragment has 16 bytes of a lane, the widest access of LDS, and serves as many instructions as that takes ([`Atom::over`]); the
///   fragment of one instruction is for tiles with fewer elements along K, and for accumulators that become operands.
/// * Those of 16 × 16 elements come first: they have the rate of the larger ones and half their latency.
///
/// Absent are those of 8-bit floats of another format than the language's: such tiles are multiplied as `f16`, which is exact.
pub(crate) fn atoms(machine: &Machine) -> Vec<Atom> {
    let of_elem = |elem: Elem| {
        Some(match elem {
            Elem::F64 => MfmaElem::F64,
            Elem::F32 => MfmaElem::F32,
            Elem::Tf32 => MfmaElem::Xf32,
            Elem::F16 | Elem::Bf16 => MfmaElem::Half,
            Elem::I8 => MfmaElem::Byte,
            Elem::E4m3 | Elem::E5m2 if machine.fp8 == Fp8::Ocp => MfmaElem::Byte,
            Elem::E4m3
            | Elem::E5m2
            | Elem::Bool
            | Elem::I4
            | Elem::U4
            | Elem::U8
            | Elem::I16
            | Elem::U16
            | Elem::I32
            | Elem::U32
            | Elem::I64
            | Elem::U64 => return None,
        })
    };
    let mut atoms = Vec::new();
    for (a, b, acc) in MMA_TRIPLES {
        let Some(elem) = of_elem(*a) else { continue };
        for mfma in [16, 32].iter().filter_map(|mn| machine.mfma.iter().find(|i| i.elem == elem && i.mn == *mn)) {
            let mma = MmaAtom { m: mfma.mn, n: mfma.mn, k: mfma.k, a: *a, b: *b, acc: *acc };
            let one = Atom::in_columns(mma).exchanged();
            let together = WIDEST / mfma.operand_registers.max(1);
            atoms.extend([together, 1].into_iter().map(|n| one.clone().over(n)));
        }
    }
    atoms
}

/// The registers that the widest read of LDS fills: ISA §11.3, `DS_READ_B128`.
const WIDEST: u32 = 4;

/// The error for a target that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMachine {
    /// The name that was requested.
    pub asked: String,
}

impl fmt::Display for UnknownMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = MACHINES.iter().map(|m| format!("`{}`", m.name)).collect();
        write!(f, "there is no AMD target `{}`; the known ones are {}", self.asked, known.join(", "))
    }
}

impl std::error::Error for UnknownMachine {}
