//! Distances between instructions: the fewest states that the emulator lets pass are those that LLVM's own pass for
//! hazards puts between the same two instructions.

use crate::harness::records;
use crate::support::oracle;
use titan_amd::emu::Options;

/// Two instructions in the emulator's text and as LLVM writes them between its passes, and how many states are needed
/// by the emulator beyond what LLVM 19 inserts (later versions of LLVM do, or the manual demands it).
type Pair = (&'static str, &'static str, &'static str, &'static str, u32);

const F16_32: &str = "v_mfma_f32_32x32x8_f16 v[20:35], v[8:9], v[10:11], v[36:51]";
const F16_32_MIR: &str = "early-clobber $vgpr20_vgpr21_vgpr22_vgpr23_vgpr24_vgpr25_vgpr26_vgpr27_vgpr28_vgpr29_vgpr30_vgpr31_vgpr32_vgpr33_vgpr34_vgpr35 = V_MFMA_F32_32X32X8F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47_vgpr48_vgpr49_vgpr50_vgpr51, 0, 0, 0, implicit $mode, implicit $exec";
const F16_16: &str = "v_mfma_f32_16x16x16_f16 v[20:23], v[8:9], v[10:11], v[24:27]";
const F16_16_MIR: &str = "early-clobber $vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr24_vgpr25_vgpr26_vgpr27, 0, 0, 0, implicit $mode, implicit $exec";
const F16_4: &str = "v_mfma_f32_4x4x4_16b_f16 v[20:23], v[8:9], v[10:11], v[24:27]";
const F16_4_MIR: &str = "early-clobber $vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr24_vgpr25_vgpr26_vgpr27, 0, 0, 0, implicit $mode, implicit $exec";
const F32_16: &str = "v_mfma_f32_16x16x4_f32 v[20:23], v8, v10, v[24:27]";
const F32_16_MIR: &str = "early-clobber $vgpr20_vgpr21_vgpr22_vgpr23 = V_MFMA_F32_16X16X4F32_vgprcd_e64 $vgpr8, $vgpr10, $vgpr24_vgpr25_vgpr26_vgpr27, 0, 0, 0, implicit $mode, implicit $exec";
const F64_16: &str = "v_mfma_f64_16x16x4_f64 v[20:27], v[8:9], v[10:11], v[28:35]";
const F64_16_MIR: &str = "early-clobber $vgpr20_vgpr21_vgpr22_vgpr23_vgpr24_vgpr25_vgpr26_vgpr27 = V_MFMA_F64_16X16X4F64_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr28_vgpr29_vgpr30_vgpr31_vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec";

const MOV: (&str, &str) = ("v_mov_b32_e32 v60, v20", "$vgpr60 = V_MOV_B32_e32 $vgpr20, implicit $exec");
const OVER: (&str, &str) = ("v_mov_b32_e32 v20, 0", "$vgpr20 = V_MOV_B32_e32 0, implicit $exec");
const STORE: (&str, &str) =
    ("global_store_dword v[0:1], v20, off", "GLOBAL_STORE_DWORD $vgpr0_vgpr1, $vgpr20, 0, 0, implicit $exec");

const PK_MUL: &str =
    "$vgpr60_vgpr61 = V_PK_MUL_F32 8, $vgpr20_vgpr21, 8, $vgpr12_vgpr13, 0, 0, 0, 0, 0, implicit $mode, implicit $exec";
const PK_ADD: &str =
    "$vgpr8_vgpr9 = V_PK_ADD_F32 8, $vgpr10_vgpr11, 8, $vgpr12_vgpr13, 0, 0, 0, 0, 0, implicit $mode, implicit $exec";
const PK_FMA: &str = "$vgpr24_vgpr25 = V_PK_FMA_F32 8, $vgpr8_vgpr9, 8, $vgpr10_vgpr11, 8, $vgpr12_vgpr13, 0, 0, 0, 0, 0, implicit $mode, implicit $exec";
const EXP: &str = "$vgpr20 = V_EXP_F32_e32 $vgpr8, implicit $mode, implicit $exec";
const EXP_21: &str = "$vgpr21 = V_EXP_F32_e32 $vgpr8, implicit $mode, implicit $exec";
const MAX3: &str = "$vgpr60 = V_MAX3_F32_e64 0, $vgpr8, 0, $vgpr20, 0, $vgpr21, 0, 0, implicit $mode, implicit $exec";
const FIRST: &str = "$sgpr24 = V_READFIRSTLANE_B32 $vgpr60, implicit $exec";
const BUFFER: &str = "$vgpr40_vgpr41_vgpr42_vgpr43 = BUFFER_LOAD_DWORDX4_OFFEN $vgpr0, $sgpr8_sgpr9_sgpr10_sgpr11, $sgpr16, 0, 0, 0, implicit $exec";

const PAIRS: &[Pair] = &[
    // Vector arithmetic, then a product.
    ("v_mov_b32_e32 v8, 0", F16_16, "$vgpr8 = V_MOV_B32_e32 0, implicit $exec", F16_16_MIR, 0),
    ("v_mov_b32_e32 v24, 0", F16_16, "$vgpr24 = V_MOV_B32_e32 0, implicit $exec", F16_16_MIR, 0),
    // Products, then what reads the result.
    (F16_32, MOV.0, F16_32_MIR, MOV.1, 0),
    (F16_16, MOV.0, F16_16_MIR, MOV.1, 0),
    (F16_4, MOV.0, F16_4_MIR, MOV.1, 0),
    (F32_16, MOV.0, F32_16_MIR, MOV.1, 0),
    (F64_16, MOV.0, F64_16_MIR, MOV.1, 0),
    (F16_32, STORE.0, F16_32_MIR, STORE.1, 0),
    (F16_16, STORE.0, F16_16_MIR, STORE.1, 0),
    (F32_16, STORE.0, F32_16_MIR, STORE.1, 0),
    (F64_16, STORE.0, F64_16_MIR, STORE.1, 0),
    // Overwritten.
    (F16_32, OVER.0, F16_32_MIR, OVER.1, 0),
    (F16_16, OVER.0, F16_16_MIR, OVER.1, 0),
    (F32_16, OVER.0, F32_16_MIR, OVER.1, 0),
    (F64_16, OVER.0, F64_16_MIR, OVER.1, 0),
    // The sum's old registers, overwritten.
    (F16_32, "v_mov_b32_e32 v36, 0", F16_32_MIR, "$vgpr36 = V_MOV_B32_e32 0, implicit $exec", 0),
    (F16_16, "v_mov_b32_e32 v24, 0", F16_16_MIR, "$vgpr24 = V_MOV_B32_e32 0, implicit $exec", 0),
    // Products, then products.
    (
        F16_16,
        "v_mfma_f32_16x16x16_f16 v[40:43], v[20:21], v[10:11], v[44:47]",
        F16_16_MIR,
        "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr20_vgpr21, $vgpr10_vgpr11, $vgpr44_vgpr45_vgpr46_vgpr47, 0, 0, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        F16_16,
        "v_mfma_f32_16x16x16_f16 v[40:43], v[8:9], v[10:11], v[22:25]",
        F16_16_MIR,
        "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr22_vgpr23_vgpr24_vgpr25, 0, 0, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        F16_16,
        "v_mfma_f32_16x16x16_f16 v[40:43], v[8:9], v[10:11], v[20:23]",
        F16_16_MIR,
        "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_MFMA_F32_16X16X16F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        F16_4,
        "v_mfma_f32_4x4x4_16b_f16 v[40:43], v[8:9], v[10:11], v[20:23]",
        F16_4_MIR,
        "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        // Another product with the same accumulator: LLVM's pull request 218363.
        F16_16,
        "v_mfma_f32_16x16x16_bf16 v[40:43], v[8:9], v[10:11], v[20:23]",
        F16_16_MIR,
        "early-clobber $vgpr40_vgpr41_vgpr42_vgpr43 = V_MFMA_F32_16X16X16BF16_1K_vgprcd_e64 $vgpr8_vgpr9, $vgpr10_vgpr11, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, 0, implicit $mode, implicit $exec",
        5,
    ),
    // Scalar registers that vector arithmetic writes.
    (
        "v_readfirstlane_b32 s20, v8",
        "v_mov_b32_e32 v60, s20",
        "$sgpr20 = V_READFIRSTLANE_B32 $vgpr8, implicit $exec",
        "$vgpr60 = V_MOV_B32_e32 $sgpr20, implicit $exec",
        0,
    ),
    (
        "v_readfirstlane_b32 s20, v8",
        "buffer_load_dword v60, off, s[20:23], 0",
        "$sgpr20 = V_READFIRSTLANE_B32 $vgpr8, implicit $exec",
        "$vgpr60 = BUFFER_LOAD_DWORD_OFFSET $sgpr20_sgpr21_sgpr22_sgpr23, 0, 0, 0, 0, implicit $exec",
        0,
    ),
    (
        "v_cmp_eq_u32_e32 vcc, 0, v8",
        "v_cndmask_b32_e32 v60, v8, v9, vcc",
        "V_CMP_EQ_U32_e32 0, $vgpr8, implicit-def $vcc, implicit $exec",
        "$vgpr60 = V_CNDMASK_B32_e32 $vgpr8, $vgpr9, implicit $vcc, implicit $exec",
        0,
    ),
    (
        "v_cmp_eq_u32_e32 vcc, 0, v8",
        "v_div_fmas_f32 v60, v8, v9, v10",
        "V_CMP_EQ_U32_e32 0, $vgpr8, implicit-def $vcc, implicit $exec",
        "$vgpr60 = V_DIV_FMAS_F32_e64 0, $vgpr8, 0, $vgpr9, 0, $vgpr10, 0, 0, implicit $mode, implicit $vcc, implicit $exec",
        0,
    ),
    (
        "v_readfirstlane_b32 s20, v8",
        "v_readlane_b32 s24, v9, s20",
        "$sgpr20 = V_READFIRSTLANE_B32 $vgpr8, implicit $exec",
        "$sgpr24 = V_READLANE_B32 $vgpr9, $sgpr20",
        0,
    ),
    (
        "v_mov_b32_e32 v60, 0",
        "v_readfirstlane_b32 s20, v60",
        "$vgpr60 = V_MOV_B32_e32 0, implicit $exec",
        "$sgpr20 = V_READFIRSTLANE_B32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_cmpx_eq_u32_e32 vcc, v8, v8",
        "v_readlane_b32 s24, v9, 1",
        "V_CMPX_EQ_U32_e32 $vgpr8, $vgpr8, implicit-def $exec, implicit-def $vcc, implicit $exec",
        "$sgpr24 = V_READLANE_B32 $vgpr9, 1",
        0,
    ),
    (
        "v_cmpx_eq_u32_e32 vcc, v8, v8",
        F16_16,
        "V_CMPX_EQ_U32_e32 $vgpr8, $vgpr8, implicit-def $exec, implicit-def $vcc, implicit $exec",
        F16_16_MIR,
        0,
    ),
    (
        "v_cmpx_eq_u32_e32 vcc, v8, v8",
        "v_mov_b32_dpp v60, v8 row_shr:1 row_mask:0xf bank_mask:0xf",
        "V_CMPX_EQ_U32_e32 $vgpr8, $vgpr8, implicit-def $exec, implicit-def $vcc, implicit $exec",
        "$vgpr60 = V_MOV_B32_dpp $vgpr60, $vgpr8, 273, 15, 15, 0, implicit $exec",
        0,
    ),
    // Vector registers.
    (
        "v_exp_f32_e32 v60, v8",
        "v_add_f32_e32 v61, v60, v8",
        "$vgpr60 = V_EXP_F32_e32 $vgpr8, implicit $mode, implicit $exec",
        "$vgpr61 = V_ADD_F32_e32 $vgpr60, $vgpr8, implicit $mode, implicit $exec",
        0,
    ),
    (
        "v_mov_b32_e32 v60, 0",
        "v_mov_b32_dpp v61, v60 row_shr:1 row_mask:0xf bank_mask:0xf",
        "$vgpr60 = V_MOV_B32_e32 0, implicit $exec",
        "$vgpr61 = V_MOV_B32_dpp $vgpr61, $vgpr60, 273, 15, 15, 0, implicit $exec",
        0,
    ),
    (
        "v_add_u32_sdwa v60, v8, v9 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_ADD_U32_sdwa 0, $vgpr8, 0, $vgpr9, 0, 5, 2, 6, 6, implicit $exec, implicit $vgpr60(tied-def 0)",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    // Writes of a part of a register: only those that move bits within it.
    (
        "v_cvt_pk_fp8_f32 v60, v8, v9",
        "v_cvt_pk_bf8_f32 v60, v10, v11 op_sel:[0,0,1]",
        "$vgpr60 = V_CVT_PK_FP8_F32_e64 0, $vgpr8, 0, $vgpr9, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr60 = V_CVT_PK_BF8_F32_e64 8, $vgpr10, 0, $vgpr11, $vgpr60, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        "v_cvt_pk_fp8_f32 v60, v8, v9 op_sel:[0,0,1]",
        "v_cvt_pk_bf8_f32 v60, v10, v11",
        "$vgpr60 = V_CVT_PK_FP8_F32_e64 8, $vgpr8, 0, $vgpr9, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr60 = V_CVT_PK_BF8_F32_e64 0, $vgpr10, 0, $vgpr11, $vgpr60, 0, implicit $mode, implicit $exec",
        0,
    ),
    (
        "v_cvt_pk_bf8_f32 v60, v8, v9",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_CVT_PK_BF8_F32_e64 0, $vgpr8, 0, $vgpr9, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_cvt_sr_fp8_f32 v60, v8, v9",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_CVT_SR_FP8_F32_e64 0, $vgpr8, 0, $vgpr9, 0, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        // The second byte: later versions of LLVM keep the distance.
        "v_cvt_sr_fp8_f32 v60, v8, v9 op_sel:[0,0,1,0]",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_CVT_SR_FP8_F32_e64 0, $vgpr8, 0, $vgpr9, 4, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        1,
    ),
    (
        "v_cvt_sr_bf8_f32 v60, v8, v9 op_sel:[0,0,0,1]",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_CVT_SR_BF8_F32_e64 8, $vgpr8, 0, $vgpr9, 0, $vgpr60, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_mad_u16 v60, v8, v9, v10 op_sel:[0,0,0,1]",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_MAD_U16_gfx9_e64 8, $vgpr8, 0, $vgpr9, 0, $vgpr10, 0, 0, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_mad_u16 v60, v8, v9, v10 op_sel:[1,0,0,0]",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_MAD_U16_gfx9_e64 4, $vgpr8, 0, $vgpr9, 0, $vgpr10, 0, 0, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_fma_mixhi_f16 v60, v8, v9, v10",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_FMA_MIXHI_F16 0, $vgpr8, 0, $vgpr9, 0, $vgpr10, 0, $vgpr60, 0, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_add_u32_sdwa v60, v8, v9 dst_sel:WORD_0 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_ADD_U32_sdwa 0, $vgpr8, 0, $vgpr9, 0, 4, 0, 6, 6, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "v_cvt_f32_fp8_sdwa v60, v8 src0_sel:BYTE_2",
        "v_mov_b32_e32 v61, v60",
        "$vgpr60 = V_CVT_F32_FP8_sdwa 0, $vgpr8, 0, 0, 2, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_e32 $vgpr60, implicit $exec",
        0,
    ),
    (
        "global_store_dwordx4 v[0:1], v[20:23], off",
        OVER.0,
        "GLOBAL_STORE_DWORDX4 $vgpr0_vgpr1, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, implicit $exec",
        OVER.1,
        0,
    ),
    (
        "buffer_store_dwordx4 v[20:23], off, s[8:11], 0",
        OVER.0,
        "BUFFER_STORE_DWORDX4_OFFSET_exact $vgpr20_vgpr21_vgpr22_vgpr23, $sgpr8_sgpr9_sgpr10_sgpr11, 0, 0, 0, 0, implicit $exec",
        OVER.1,
        0,
    ),
    (
        // With a register for the offset: LLVM's pull request 197267.
        "buffer_store_dwordx4 v[20:23], off, s[8:11], s16",
        OVER.0,
        "BUFFER_STORE_DWORDX4_OFFSET_exact $vgpr20_vgpr21_vgpr22_vgpr23, $sgpr8_sgpr9_sgpr10_sgpr11, $sgpr16, 0, 0, 0, implicit $exec",
        OVER.1,
        1,
    ),
    // Arithmetic on two numbers, extremes of three, permutations of bytes.
    (F16_16, "v_pk_mul_f32 v[60:61], v[20:21], v[12:13]", F16_16_MIR, PK_MUL, 0),
    (F16_32, "v_pk_mul_f32 v[60:61], v[20:21], v[12:13]", F16_32_MIR, PK_MUL, 0),
    (F16_16, "v_pk_fma_f32 v[24:25], v[8:9], v[10:11], v[12:13]", F16_16_MIR, PK_FMA, 0),
    ("v_pk_fma_f32 v[24:25], v[8:9], v[10:11], v[12:13]", F16_16, PK_FMA, F16_16_MIR, 0),
    ("v_pk_add_f32 v[8:9], v[10:11], v[12:13]", F16_16, PK_ADD, F16_16_MIR, 0),
    ("v_exp_f32_e32 v20, v8", "v_pk_mul_f32 v[60:61], v[20:21], v[12:13]", EXP, PK_MUL, 0),
    ("v_exp_f32_e32 v21, v8", "v_max3_f32 v60, v8, v20, v21", EXP_21, MAX3, 0),
    ("v_max3_f32 v60, v8, v20, v21", "v_readfirstlane_b32 s24, v60", MAX3, FIRST, 0),
    (
        "v_med3_f32 v60, v8, v20, v21",
        "v_mov_b32_dpp v61, v60 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "$vgpr60 = V_MED3_F32_e64 0, $vgpr8, 0, $vgpr20, 0, $vgpr21, 0, 0, implicit $mode, implicit $exec",
        "$vgpr61 = V_MOV_B32_dpp $vgpr61, $vgpr60, 177, 15, 15, 0, implicit $exec",
        0,
    ),
    (
        "v_readfirstlane_b32 s24, v60",
        "v_perm_b32 v60, v8, v9, s24",
        FIRST,
        "$vgpr60 = V_PERM_B32_e64 $vgpr8, $vgpr9, $sgpr24, implicit $exec",
        0,
    ),
    (
        "v_perm_b32 v8, v60, v61, v62",
        F16_16,
        "$vgpr8 = V_PERM_B32_e64 $vgpr60, $vgpr61, $vgpr62, implicit $exec",
        F16_16_MIR,
        0,
    ),
    // The scalar offset and the descriptor of a load from a buffer.
    (
        "v_readfirstlane_b32 s16, v60",
        "buffer_load_dwordx4 v[40:43], v0, s[8:11], s16 offen",
        "$sgpr16 = V_READFIRSTLANE_B32 $vgpr60, implicit $exec",
        BUFFER,
        0,
    ),
    (
        "v_readfirstlane_b32 s10, v60",
        "buffer_load_dwordx4 v[40:43], v0, s[8:11], s16 offen",
        "$sgpr10 = V_READFIRSTLANE_B32 $vgpr60, implicit $exec",
        BUFFER,
        0,
    ),
    (
        "v_cmp_lt_u32_e64 s[16:17], v8, v9",
        "v_cndmask_b32_e64 v60, v8, v9, s[16:17]",
        "$sgpr16_sgpr17 = V_CMP_LT_U32_e64 $vgpr8, $vgpr9, implicit $exec",
        "$vgpr60 = V_CNDMASK_B32_e64 0, $vgpr8, 0, $vgpr9, $sgpr16_sgpr17, implicit $exec",
        0,
    ),
    // The mode, which kernels leave at their start.
    (
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0",
        "S_SETREG_IMM32_B32 0, 577, implicit-def $mode, implicit $mode",
        "S_SETREG_IMM32_B32 0, 577, implicit-def $mode, implicit $mode",
        0,
    ),
    (
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0",
        "v_max_f32_e32 v60, v8, v9",
        "S_SETREG_IMM32_B32 0, 577, implicit-def $mode, implicit $mode",
        "$vgpr60 = V_MAX_F32_e32 $vgpr8, $vgpr9, implicit $mode, implicit $exec",
        0,
    ),
    // Scalar arithmetic.
    (
        "s_mov_b32 m0, 0",
        "buffer_load_dword off, s[8:11], 0 lds",
        "$m0 = S_MOV_B32 0",
        "BUFFER_LOAD_DWORD_LDS_OFFSET $sgpr8_sgpr9_sgpr10_sgpr11, 0, 0, 0, 0, implicit $exec, implicit $m0",
        0,
    ),
    (
        "s_mov_b32 m0, 0",
        "s_movrels_b32 s24, s20",
        "$m0 = S_MOV_B32 0",
        "$sgpr24 = S_MOVRELS_B32 $sgpr20, implicit $m0",
        0,
    ),
    (
        "s_mov_b32 m0, 0",
        "s_movreld_b64 s[24:25], s[20:21]",
        "$m0 = S_MOV_B32 0",
        "S_MOVRELD_B64 $sgpr24_sgpr25, $sgpr20_sgpr21, implicit $m0",
        0,
    ),
    (
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0",
        "s_getreg_b32 s20, hwreg(HW_REG_MODE)",
        "S_SETREG_IMM32_B32 240, 14337, implicit-def $mode, implicit $mode",
        "$sgpr20 = S_GETREG_B32 63489, implicit $mode",
        0,
    ),
];

/// The fewest states with which the emulator says nothing of a hazard.
fn ours(first: &str, second: &str) -> u32 {
    let mut setup = String::from(
        "s_mov_b64 vcc, 0\ns_mov_b32 s10, 0x40\ns_mov_b32 s11, 0x27000\ns_mov_b32 s16, 0\ns_mov_b64 s[20:21], s[8:9]\ns_mov_b64 s[22:23], s[10:11]\ns_mov_b32 m0, 0\n",
    );
    (8..64).for_each(|v| setup.push_str(&format!("v_mov_b32_e32 v{v}, 0\n")));
    setup.push_str("s_nop 15\ns_nop 7\n");
    for states in 0..=24_u32 {
        let nops = match states {
            0 => String::new(),
            1..=16 => format!("s_nop {}\n", states - 1),
            _ => format!("s_nop 15\ns_nop {}\n", states - 17),
        };
        match records(&format!("{setup}{first}\n{nops}{second}"), (0, 4), &[], &Options::default()) {
            Err(error) if error.code().name() == "hazard" => {}
            // Other complaints come when the second instruction is executed: the distance was enough.
            Ok(_) | Err(_) => return states,
        }
    }
    panic!("{first}; {second}: never enough")
}

/// What LLVM puts in between, for all pairs at once.
fn theirs(llc: &std::path::PathBuf) -> Vec<u32> {
    let mut text = String::new();
    for (i, (_, _, first, second, _)) in PAIRS.iter().enumerate() {
        text.push_str(&format!("---\nname: pair{i}\ntracksRegLiveness: false\nbody: |\n  bb.0:\n    {first}\n    {second}\n    S_ENDPGM 0\n...\n"));
    }
    let args =
        ["-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-run-pass", "post-RA-hazard-rec", "-x", "mir", "-", "-o", "-"];
    let (out, err) = oracle::run(llc, &args, &text);
    assert!(err.is_empty(), "{err}");
    let mut all = Vec::new();
    for function in out.split("\nname:").skip(1) {
        let body = function.split_once("bb.0:").expect("a body").1;
        let lines: Vec<&str> = body.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let nops =
            lines.iter().filter_map(|l| l.strip_prefix("S_NOP ")).map(|n| n.parse::<u32>().expect("a count") + 1);
        all.push(nops.sum());
    }
    all
}

#[test]
fn distances_are_those_that_llvm_keeps() {
    let Some(llc) = oracle::program("llc") else { return oracle::skipped("distances against llc") };
    let theirs = theirs(&llc);
    assert_eq!(theirs.len(), PAIRS.len());
    let mut wrong = Vec::new();
    for ((first, second, _, _, more), theirs) in PAIRS.iter().zip(theirs) {
        let ours = ours(first, second);
        if ours != theirs + more {
            wrong.push(format!(
                "{first}; {second}: the emulator demands {ours}, LLVM inserts {theirs}, expected {more} more"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_hazard_names_both_instructions_and_the_states() {
    let body = "v_mov_b32_e32 v8, 0\nv_mov_b32_e32 v9, 0\nv_mov_b32_e32 v10, 0\nv_mov_b32_e32 v11, 0\ns_nop 1
        v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[10:11], 0\ns_nop 3\nv_mov_b32_e32 v20, v12";
    let error = records(body, (0, 0), &[], &Options::default()).unwrap_err().to_string();
    for want in [
        "error[emu::hazard]",
        "7 wait states are needed between them, and there are 4",
        "v_mov_b32_e32 v20, v12",
        "wave 0 of workgroup (0, 0, 0)",
        "against the first instruction",
        "v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[10:11], 0",
    ] {
        assert!(error.contains(want), "{want} is not in:\n{error}");
    }
}
