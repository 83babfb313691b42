//! tidy: table
//! MMAs: the instructions of VOP3P that use the matrix core.
//!
//! Source: ISA §7.1.2 "List of Dense MFMA instructions" (cycles, hence passes of four), §7.4 "Sparse Matrices", §12.10.
//! Passes of `f64` MMAs: §7.1.2, table 28.

use super::build::{mfma, smfmac};
use crate::isa::row::{Mods, Row, Unit};
use crate::isa::ty::*;

pub(super) const MAI: &[Row] = &[
    mfma(62, "v_mfma_f32_16x16x8_xf32", F32X4, XF32X2, XF32X2, 4).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(63, "v_mfma_f32_32x32x4_xf32", F32X16, XF32X2, XF32X2, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(64, "v_mfma_f32_32x32x1_2b_f32", F32X32, F32, F32, 16).unit(Unit::Sgemm).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(65, "v_mfma_f32_16x16x1_4b_f32", F32X16, F32, F32, 8).unit(Unit::Sgemm).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(66, "v_mfma_f32_4x4x1_16b_f32", F32X4, F32, F32, 2).unit(Unit::Sgemm).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(68, "v_mfma_f32_32x32x2_f32", F32X16, F32, F32, 16).unit(Unit::Sgemm).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(69, "v_mfma_f32_16x16x4_f32", F32X4, F32, F32, 8).unit(Unit::Sgemm).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(72, "v_mfma_f32_32x32x4_2b_f16", F32X32, F16X4, F16X4, 16)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(73, "v_mfma_f32_16x16x4_4b_f16", F32X16, F16X4, F16X4, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(74, "v_mfma_f32_4x4x4_16b_f16", F32X4, F16X4, F16X4, 2).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(76, "v_mfma_f32_32x32x8_f16", F32X16, F16X4, F16X4, 8).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(77, "v_mfma_f32_16x16x16_f16", F32X4, F16X4, F16X4, 4).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(80, "v_mfma_i32_32x32x4_2b_i8", I32X32, I8X4, I8X4, 16).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(81, "v_mfma_i32_16x16x4_4b_i8", I32X16, I8X4, I8X4, 8).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(82, "v_mfma_i32_4x4x4_16b_i8", I32X4, I8X4, I8X4, 2).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(86, "v_mfma_i32_32x32x16_i8", I32X16, I8X8, I8X8, 8).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(87, "v_mfma_i32_16x16x32_i8", I32X4, I8X8, I8X8, 4).unit(Unit::Xdl).mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(93, "v_mfma_f32_32x32x4_2b_bf16", F32X32, BF16X4, BF16X4, 16)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(94, "v_mfma_f32_16x16x4_4b_bf16", F32X16, BF16X4, BF16X4, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(95, "v_mfma_f32_4x4x4_16b_bf16", F32X4, BF16X4, BF16X4, 2)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(96, "v_mfma_f32_32x32x8_bf16", F32X16, BF16X4, BF16X4, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(97, "v_mfma_f32_16x16x16_bf16", F32X4, BF16X4, BF16X4, 4)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    smfmac(98, "v_smfmac_f32_16x16x32_f16", F32X4, F16X4, F16X8, 4),
    smfmac(100, "v_smfmac_f32_32x32x16_f16", F32X16, F16X4, F16X8, 8),
    smfmac(102, "v_smfmac_f32_16x16x32_bf16", F32X4, BF16X4, BF16X8, 4),
    smfmac(104, "v_smfmac_f32_32x32x16_bf16", F32X16, BF16X4, BF16X8, 8),
    smfmac(106, "v_smfmac_i32_16x16x64_i8", I32X4, I8X8, I8X16, 4),
    smfmac(108, "v_smfmac_i32_32x32x32_i8", I32X16, I8X8, I8X16, 8),
    mfma(110, "v_mfma_f64_16x16x4_f64", F64X4, F64, F64, 8).unit(Unit::Dgemm).mods(Mods::MATRIX_NEG),
    mfma(111, "v_mfma_f64_4x4x4_4b_f64", F64, F64, F64, 4).unit(Unit::Dgemm).mods(Mods::MATRIX_NEG),
    mfma(112, "v_mfma_f32_16x16x32_bf8_bf8", F32X4, BF8X8, BF8X8, 4)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(113, "v_mfma_f32_16x16x32_bf8_fp8", F32X4, BF8X8, FP8X8, 4)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(114, "v_mfma_f32_16x16x32_fp8_bf8", F32X4, FP8X8, BF8X8, 4)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(115, "v_mfma_f32_16x16x32_fp8_fp8", F32X4, FP8X8, FP8X8, 4)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(116, "v_mfma_f32_32x32x16_bf8_bf8", F32X16, BF8X8, BF8X8, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(117, "v_mfma_f32_32x32x16_bf8_fp8", F32X16, BF8X8, FP8X8, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(118, "v_mfma_f32_32x32x16_fp8_bf8", F32X16, FP8X8, BF8X8, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    mfma(119, "v_mfma_f32_32x32x16_fp8_fp8", F32X16, FP8X8, FP8X8, 8)
        .unit(Unit::Xdl)
        .mods(Mods::BROADCAST.and(Mods::BLGP)),
    smfmac(120, "v_smfmac_f32_16x16x64_bf8_bf8", F32X4, BF8X8, BF8X16, 4),
    smfmac(121, "v_smfmac_f32_16x16x64_bf8_fp8", F32X4, BF8X8, FP8X16, 4),
    smfmac(122, "v_smfmac_f32_16x16x64_fp8_bf8", F32X4, FP8X8, BF8X16, 4),
    smfmac(123, "v_smfmac_f32_16x16x64_fp8_fp8", F32X4, FP8X8, FP8X16, 4),
    smfmac(124, "v_smfmac_f32_32x32x32_bf8_bf8", F32X16, BF8X8, BF8X16, 8),
    smfmac(125, "v_smfmac_f32_32x32x32_bf8_fp8", F32X16, BF8X8, FP8X16, 8),
    smfmac(126, "v_smfmac_f32_32x32x32_fp8_bf8", F32X16, FP8X8, BF8X16, 8),
    smfmac(127, "v_smfmac_f32_32x32x32_fp8_fp8", F32X16, FP8X8, FP8X16, 8),
];
