//! Kernels that use what the emulator does not have, and how the refusal names it.

use titan_amd::emu::Absent;

/// The feature, words of the error, and the instructions.
pub(super) type Example = (Absent, &'static str, &'static str);

/// Descriptors of buffers in `s[8:11]`, of 256 bytes; two words are missing.
macro_rules! buffer {
    ($high:literal, $flags:literal, $access:literal) => {
        concat!("s_or_b32 s9, s9, ", $high, "\ns_mov_b32 s10, 0x100\ns_mov_b32 s11, ", $flags, "\n", $access)
    };
}

/// Those of instructions that have no row are in the table of the emulator, each with a word.
pub(super) const EXAMPLES: &[Example] = &[
    (Absent::VectorSkip, "`VSKIP`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0x1"),
    (Absent::ForkAndJoin, "`CSP`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 29, 3), 0x1"),
    (Absent::Debugging, "`DISABLE_PERF`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 26, 1), 0x1"),
    (Absent::Exceptions, "`EXCP_EN`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 7), 0x4"),
    (Absent::Exceptions, "`DEBUG`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 11, 1), 0x1"),
    (Absent::Exceptions, "`EXCP_EN`", "s_mov_b32 s4, 0x1f0000\ns_setreg_b32 hwreg(HW_REG_MODE), s4"),
    (Absent::TrapHandler, "`ttmp0`", "s_mov_b32 ttmp0, 0"),
    (Absent::TrapHandler, "`ttmp11`", "s_mov_b32 s4, ttmp11"),
    (Absent::TrapHandler, "`ttmp14`", "s_mov_b64 s[4:5], ttmp[14:15]"),
    (Absent::TrapHandler, "`ttmp1`", "v_mov_b32_e32 v4, ttmp1"),
    (Absent::TrapHandler, "`ttmp4`", "s_load_dword ttmp4, s[0:1], 0x0"),
    (Absent::TrapHandler, "`xnack_mask_lo`", "s_mov_b64 xnack_mask, 0"),
    (Absent::TrapHandler, "`xnack_mask_hi`", "s_add_u32 s4, xnack_mask_hi, 1"),
    (Absent::PrivateBase, "`flat_scratch_lo`", "s_mov_b64 flat_scratch, s[8:9]"),
    (Absent::PrivateBase, "`flat_scratch_hi`", "s_mov_b32 s4, flat_scratch_hi"),
    (Absent::Messages, "`s_sendmsg ", "s_sendmsg sendmsg(MSG_INTERRUPT)"),
    (Absent::Messages, "`s_sendmsghalt ", "s_sendmsghalt sendmsg(MSG_INTERRUPT)"),
    (Absent::Halts, "`s_sethalt ", "s_sethalt 1"),
    (Absent::HardwareRegisters, "HW_REG_TRAPSTS", "s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS)"),
    (Absent::HardwareRegisters, "HW_REG_HW_ID", "s_getreg_b32 s4, hwreg(HW_REG_HW_ID, 8, 4)"),
    (Absent::HardwareRegisters, "HW_REG_STATUS", "s_getreg_b32 s4, hwreg(HW_REG_STATUS)"),
    (Absent::HardwareRegisters, "HW_REG_LDS_ALLOC", "s_getreg_b32 s4, hwreg(HW_REG_LDS_ALLOC)"),
    (Absent::HardwareRegisters, "HW_REG_TRAPSTS", "s_setreg_b32 hwreg(HW_REG_TRAPSTS, 0, 9), s8"),
    (Absent::HardwareRegisters, "HW_REG_XCC_ID", "s_setreg_b32 hwreg(HW_REG_XCC_ID), s8"),
    (Absent::Rounding, "`v_add_f32`", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0x3\nv_add_f32_e32 v4, v2, v3"),
    (Absent::PairedExchange, "`ds_wrxchg2_rtn_b32 ", "ds_wrxchg2_rtn_b32 v[4:5], v3, v2, v3 offset1:1"),
    (Absent::PairedExchange, "`ds_wrxchg2st64_rtn_b32 ", "ds_wrxchg2st64_rtn_b32 v[4:5], v3, v2, v3 offset1:1"),
    (Absent::PairedExchange, "`ds_wrxchg2_rtn_b64 ", "ds_wrxchg2_rtn_b64 v[4:7], v3, v[2:3], v[2:3] offset1:1"),
    (Absent::PairedExchange, "`ds_wrxchg2st64_rtn_b64 ", "ds_wrxchg2st64_rtn_b64 v[4:7], v3, v[2:3], v[2:3] offset1:1"),
    (Absent::PairedExchange, "`ds_condxchg32_rtn_b64 ", "ds_condxchg32_rtn_b64 v[4:5], v3, v[2:3]"),
    (Absent::NarrowLdsLoads, "`global_load_lds_ubyte ", "s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_ubyte v[0:1], off"),
    (
        Absent::NarrowLdsLoads,
        "`global_load_lds_sshort ",
        "s_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_sshort v[0:1], off",
    ),
    (Absent::NarrowLdsLoads, "`scratch_load_lds_sbyte ", "s_mov_b32 m0, 0\ns_nop 0\nscratch_load_lds_sbyte v3, off"),
    (
        Absent::NarrowLdsLoads,
        "`buffer_load_ushort ",
        buffer!("0", "0x27000", "s_mov_b32 m0, 0\ns_nop 0\nbuffer_load_ushort v3, s[8:11], 0 offen lds"),
    ),
    (
        Absent::SwizzledBuffers,
        "descriptor",
        buffer!("0x80040000", "0x27000", "buffer_load_dword v4, v3, s[8:11], 0 offen"),
    ),
    (
        Absent::SwizzledBuffers,
        "descriptor",
        buffer!("0x80040000", "0x27000", "buffer_store_dword v2, v3, s[8:11], 0 idxen"),
    ),
    (Absent::LaneNumberBuffers, "descriptor", buffer!("0x40000", "0x827000", "buffer_load_dword v4, off, s[8:11], 0")),
    (
        Absent::LaneNumberBuffers,
        "descriptor",
        buffer!("0x40000", "0x827000", "buffer_atomic_add v2, v3, s[8:11], 0 offen"),
    ),
    (Absent::UnstridedIndices, "descriptor", buffer!("0", "0x27000", "buffer_load_dword v4, v2, s[8:11], 0 idxen")),
    (Absent::OtherDescriptors, "descriptor", buffer!("0", "0x40027000", "buffer_load_dword v4, v3, s[8:11], 0 offen")),
    (Absent::SparseMatrices, "`v_smfmac_f32_16x16x32_f16 ", "v_smfmac_f32_16x16x32_f16 v[4:7], v[8:9], v[10:13], v2"),
    (
        Absent::SparseMatrices,
        "`v_smfmac_f32_32x32x32_fp8_bf8 ",
        "v_smfmac_f32_32x32x32_fp8_bf8 v[16:31], v[8:9], v[10:13], v2",
    ),
    (Absent::WindowedDifferences, "`v_qsad_pk_u16_u8 ", "v_qsad_pk_u16_u8 v[4:5], v[2:3], v2, v[2:3]"),
    (Absent::WindowedDifferences, "`v_mqsad_u32_u8 ", "v_mqsad_u32_u8 v[4:7], v[2:3], v2, v[8:11]"),
    (Absent::PackedAccumulation, "`v_cvt_pkaccum_u8_f32 ", "v_cvt_pkaccum_u8_f32 v2, v3, v3"),
    (Absent::TrigonometricReduction, "`v_trig_preop_f64 ", "v_trig_preop_f64 v[4:5], v[2:3], v2"),
    (Absent::IntegerClamp, " clamp`", "v_mad_u64_u32 v[4:5], vcc, v2, v3, v[2:3] clamp"),
    (Absent::IntegerClamp, " clamp`", "v_mad_i32_i24 v4, v2, v3, v2 clamp"),
    (Absent::IntegerClamp, " clamp`", "v_mul_u32_u24_e64 v4, v2, v3 clamp"),
    (Absent::IntegerClamp, " clamp`", "v_pk_mad_u16 v4, v2, v3, v2 clamp"),
    (Absent::IntegerClamp, " clamp`", "v_sad_u8 v4, v2, v3, v2 clamp"),
    (Absent::IntegerClamp, " clamp`", "v_cvt_u32_f32_e64 v4, v2 clamp"),
    (Absent::IntegerClamp, " clamp`", "v_cvt_pknorm_i16_f32 v4, v2, v3 clamp"),
];

/// The names of instructions that begin so as operations on the global data share, and the words: `ds_add_u32 v2, v3`, `ds_read_b32 v4, v3`,
/// `ds_write_b64 v2, v[2:3]`.
pub(super) const WORDS: &[(Absent, &str, [u32; 2])] = &[
    (Absent::GlobalDataShare, "`ds_add_u32` with `gds`", [0xD801_0000, 0x0000_0302]),
    (Absent::GlobalDataShare, "`ds_read_b32` with `gds`", [0xD86D_0000, 0x0400_0003]),
    (Absent::GlobalDataShare, "`ds_write_b64` with `gds`", [0xD89B_0000, 0x0000_0202]),
];

/// A word of the descriptor, by its offset, and the bits that are set.
pub(super) type Bits = (usize, u32);

const RSRC1: usize = 48;
const RSRC2: usize = 52;
const PROPERTIES: usize = 56;

/// The feature, words of the error, and the bits that ask for it; more bits, without which the descriptor would contradict itself.
pub(super) const DESCRIPTORS: &[(Absent, &str, Bits, Bits)] = &[
    (Absent::Exceptions, "`ENABLE_EXCEPTION_*`", (RSRC2, 1 << 24), (RSRC2, 0)),
    (Absent::Exceptions, "`ENABLE_EXCEPTION_*`", (RSRC2, 1 << 30), (RSRC2, 0)),
    (Absent::Exceptions, "`ENABLE_EXCEPTION_*`", (RSRC2, 1 << 13), (RSRC2, 0)),
    (Absent::Exceptions, "`ENABLE_EXCEPTION_*`", (RSRC2, 1 << 14), (RSRC2, 0)),
    (Absent::Exceptions, "`DEBUG_MODE`", (RSRC1, 1 << 22), (RSRC2, 0)),
    (Absent::TrapHandler, "`PRIV`", (RSRC1, 1 << 20), (RSRC2, 0)),
    (Absent::Debugging, "`CDBG_USER`", (RSRC1, 1 << 25), (RSRC2, 0)),
    (Absent::PrivateBase, "PRIVATE_SEGMENT_BUFFER`", (PROPERTIES, 1), (RSRC2, 8 << 1)),
    (Absent::PrivateBase, "FLAT_SCRATCH_INIT`", (PROPERTIES, 1 << 5), (RSRC2, 8 << 1)),
];

/// Instructions, and whether their results depend on the rounding of `MODE`.
pub(super) const ROUNDING: &[(&str, bool)] = &[
    ("v_add_f32_e32 v8, v4, v5", true),
    ("v_fma_f32 v8, v4, v5, v6", true),
    ("v_fmac_f32_e32 v4, v5, v6", true),
    ("v_mul_f16_e32 v8, v4, v5", true),
    ("v_add_f64 v[8:9], v[4:5], v[6:7]", true),
    ("v_ldexp_f32 v8, v4, v5", true),
    ("v_fract_f32_e32 v8, v4", true),
    ("v_rcp_f32_e32 v8, v4", true),
    ("v_exp_f32_e32 v8, v4", true),
    ("v_sqrt_f64_e32 v[8:9], v[4:5]", true),
    ("v_cvt_f16_f32_e32 v8, v4", true),
    ("v_cvt_f32_f64_e32 v8, v[4:5]", true),
    ("v_cvt_f32_u32_e32 v8, v4", true),
    ("v_cvt_f16_i16_e32 v8, v4", true),
    ("v_cvt_pk_fp8_f32 v4, v5, v6", true),
    ("v_cvt_pknorm_i16_f32 v8, v4, v5", true),
    ("v_pk_fma_f16 v8, v4, v5, v6", true),
    ("v_pk_add_f32 v[8:9], v[4:5], v[6:7]", true),
    ("v_fma_mix_f32 v8, v4, v5, v6", true),
    ("v_fma_mixlo_f16 v4, v5, v6, v7", true),
    ("v_div_scale_f32 v8, vcc, v4, v5, v4", true),
    ("v_div_fmas_f32 v8, v4, v5, v6", true),
    ("v_div_fixup_f32 v8, v4, v5, v6", true),
    ("v_max_f32_e64 v8, v4, v5 mul:2", true),
    ("v_max_f32_e32 v8, v4, v5", false),
    ("v_med3_f32 v8, v4, v5, v6", false),
    ("v_pk_min_f16 v8, v4, v5", false),
    ("v_cmp_lt_f32_e32 vcc, v4, v5", false),
    ("v_cmp_class_f64_e32 vcc, v[4:5], v6", false),
    ("v_rndne_f32_e32 v8, v4", false),
    ("v_trunc_f64_e32 v[8:9], v[4:5]", false),
    ("v_frexp_mant_f32_e32 v8, v4", false),
    ("v_cvt_i32_f32_e32 v8, v4", false),
    ("v_cvt_u32_f64_e32 v8, v[4:5]", false),
    ("v_cvt_f64_f32_e32 v[8:9], v4", false),
    ("v_cvt_f64_i32_e32 v[8:9], v4", false),
    ("v_cvt_f32_f16_e32 v8, v4", false),
    ("v_cvt_f32_ubyte1_e32 v8, v4", false),
    ("v_cvt_f32_fp8_e32 v8, v4", false),
    ("v_cvt_pkrtz_f16_f32 v8, v4, v5", false),
    ("v_dot2_f32_f16 v8, v4, v5, v6", false),
    ("v_mov_b32_e32 v8, v4", false),
    ("v_cndmask_b32_e32 v8, v4, v5, vcc", false),
    ("v_add_u32_e32 v8, v4, v5", false),
    ("v_mfma_f32_4x4x4_16b_f16 v[8:11], v[4:5], v[6:7], 0", false),
];
