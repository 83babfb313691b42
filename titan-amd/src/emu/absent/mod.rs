//! What the emulator does not have: features of the machine that kernels may use and that it refuses, each by its name.
//!
//! | module | contents |
//! |---|---|
//! | [`encodings`] | instructions of the manual that have no row in the tables of instructions |
//! | [`computed`] | instructions with a row whose results the emulator does not compute |
//! | [`asked`] | what descriptors of kernels ask for |
//!
//! Refusals that depend on operands, registers or modes are where these are read; all of them name a feature of this table. The page
//! docs/amd-emulator.md has the same table, and titan-amd/tests/emu/absent runs an example of each.
//!
//! Deliberately absent: what is wrong on the machine as well, such as a misaligned atomic operation. It has error codes of its own.

pub(crate) mod asked;
pub(crate) mod computed;
mod encodings;

use super::error::ErrorCode;
use super::fail::Fail;
use super::op::Refused;
use crate::isa::decode;
use std::fmt;

/// The columns of a feature: its name, the section of the manual, and what a kernel has of it.
type Columns = (&'static str, &'static str, &'static str);

macro_rules! features {
    ($($variant:ident: $name:literal, $section:literal, $used_by:literal;)*) => {
        /// A feature of gfx942 that the emulator does not have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Absent {
            $(#[doc = $name] $variant,)*
        }

        impl Absent {
            /// All features.
            pub const ALL: &[Absent] = &[$(Absent::$variant,)*];

            const fn columns(self) -> Columns {
                match self {
                    $(Absent::$variant => ($name, $section, $used_by),)*
                }
            }
        }
    };
}

features! {
    ScalarStores: "scalar stores", "§8.2.1", "`s_store_*`, `s_buffer_store_*`, `s_scratch_store_*`, `s_dcache_discard*`";
    ScalarScratch: "scalar loads of private memory", "§8.2.1", "`s_scratch_load_*`";
    ScalarAtomics: "scalar atomic operations", "§8.2.2", "`s_atomic_*`, `s_buffer_atomic_*`";
    TranslationProbes: "probes of the translation of addresses", "§12.6", "of LLVM `s_atc_probe`, `s_atc_probe_buffer`";
    ForkAndJoin: "fork and join", "§4.6", "`s_cbranch_g_fork`, `s_cbranch_i_fork`, `s_cbranch_join`; `CSP` of `MODE`";
    VectorSkip: "the mode in which vector instructions are skipped", "§3.5", "`s_setvskip`; `VSKIP` of `MODE`";
    TrapHandler: "the trap handler and its registers", "§3.10",
        "`s_rfe_b64`, `s_endpgm_saved`, of LLVM `s_rfe_restore_b64`; `ttmp0` to `ttmp15`, `xnack_mask`; `PRIV` of a kernel's descriptor";
    PrivateBase: "the base of private memory in scalar registers", "§10.7",
        "`flat_scratch`; a kernel's descriptor that asks for it, or for a private segment buffer";
    Exceptions: "exceptions of floating-point operations and of memory", "§3.10",
        "`v_clrexcp`; `EXCP_EN` and `DEBUG` of `MODE`; a kernel's descriptor that enables exceptions";
    Debugging: "branches and marks for debuggers and profilers", "§12.5",
        "`s_cbranch_cdbg*`, `s_setkill`, `s_ttracedata`; `DISABLE_PERF` of `MODE`; `CDBG_USER` of a kernel's descriptor";
    Messages: "messages to the host", "§12.5.1", "`s_sendmsg`, `s_sendmsghalt`";
    Halts: "halted waves", "§12.5", "`s_sethalt`";
    EarlierCaches: "control of the caches of earlier machines", "§9.1.10", "of LLVM `buffer_wbinvl1`, `buffer_wbinvl1_vol`";
    HardwareRegisters: "hardware registers other than `MODE` and `XCC_ID`", "§5.8", "`s_getreg_b32`, `s_setreg_b32`, `s_setreg_imm32_b32`";
    Rounding: "rounding other than to nearest", "§6.4", "`FP_ROUND` of `MODE`, where an instruction rounds by it";
    GlobalDataShare: "the global data share", "§11.1", "`gds` at an operation of the local data share";
    WaveSync: "synchronization of all waves (GWS)", "§11.4", "`ds_gws_*`";
    AppendAndConsume: "counters for appending and consuming", "§12.12", "`ds_append`, `ds_consume`";
    PairedExchange: "exchanges of two elements", "§12.12", "`ds_wrxchg2*`, `ds_condxchg32_rtn_b64`";
    NarrowLdsLoads: "loads of bytes and shorts into the local data share", "§9.1.9",
        "`buffer_load_{u,s}{byte,short} … lds`, `{global,scratch}_load_lds_{u,s}{byte,short}`";
    LdsStores: "stores from the local data share to memory", "§9.1.9", "of LLVM `buffer_store_lds_dword`";
    TypedBuffers: "conversions by a buffer's format", "§9.1.4", "`buffer_load_format_*`, `buffer_store_format_*`, `tbuffer_*`";
    SwizzledBuffers: "swizzled buffers", "§9.1.5.2", "the bit *swizzle enable* of a descriptor";
    LaneNumberBuffers: "buffers that add the lane's number", "§9.1.5", "the bit *add tid enable* of a descriptor";
    UnstridedIndices: "indices into buffers without a stride", "§9.1.5.1", "`idxen` with a descriptor whose stride is 0";
    OtherDescriptors: "descriptors of other types than a buffer's", "§9.1.8", "the field *type* of a descriptor";
    SparseMatrices: "sparse MMAs", "§7.4", "`v_smfmac_*`";
    Graphics: "instructions for graphics", "§12.11",
        "`v_cube{id,sc,tc,ma}_f32`; of LLVM `s_endpgm_ordered_ps_done`, `v_screen_partition_4se_b32`";
    WindowedDifferences: "sums of differences over a window of bytes", "§12.11", "`v_qsad_pk_u16_u8`, `v_mqsad_*`";
    PackedAccumulation: "conversions that add to a byte", "§12.11", "`v_cvt_pkaccum_u8_f32`";
    TrigonometricReduction: "the digits of 2/π", "§12.11", "`v_trig_preop_f64`";
    IntegerClamp: "`clamp` at integer operations other than sums, differences and dot products", "§6.5",
        "`v_mad_*`, `v_mul_*`, `v_sad_*`, conversions to integers";
}

impl Absent {
    /// The name of the feature, as errors have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.columns().0
    }

    /// The section of the manual ("AMD Instinct MI300" Instruction Set Architecture) that describes it.
    #[must_use]
    pub const fn section(self) -> &'static str {
        self.columns().1
    }

    /// The instructions, operands or bits by which a kernel uses it.
    #[must_use]
    pub const fn used_by(self) -> &'static str {
        self.columns().2
    }

    /// The instructions of the feature that the tables of instructions do not have, each with a word that encodes it.
    pub fn instructions(self) -> impl Iterator<Item = (&'static str, u32)> {
        encodings::all().filter(move |e| e.feature == self).map(|e| (e.name, e.value))
    }
}

/// The refusal of a feature, with the instruction or the operand that uses it.
pub(crate) fn refusal(feature: Absent, what: impl fmt::Display) -> String {
    format!("the emulator does not have {}: {what}", feature.name())
}

/// The same as an error.
#[cold]
pub(crate) fn refuse(feature: Absent, what: impl fmt::Display) -> Fail {
    Fail::new(ErrorCode::Unsupported, refusal(feature, what))
}

/// The refusal of bytes that the decoder does not know, if the manual or LLVM has an instruction for them.
pub(crate) fn undecoded(bytes: &[u8]) -> Option<Refused> {
    let (first, rest) = bytes.split_first_chunk()?;
    let word = u32::from_le_bytes(*first);
    if let Some(known) = encodings::all().find(|e| word & e.mask == e.value) {
        return Some(Refused::absent(known.feature, format_args!("`{}`", known.name)));
    }
    // The same operation on the local data share.
    let local = encodings::without_gds(word)?;
    let (inst, _) = decode(&[&local.to_le_bytes(), rest].concat()).ok()?;
    Some(Refused::absent(Absent::GlobalDataShare, format_args!("`{}` with `gds`", inst.row().name)))
}
