//! tidy: table
//! Packed and mixed-precision arithmetic, dot products, and moves of accumulation registers: VOP3P.
//!
//! Source: ISA §12.10 "VOP3P Instructions", §6.7 "Packed Math".

use super::build::{dot, mix, pk};
use crate::isa::row::{Mods, Row};
use crate::isa::ty::*;

pub(super) const VOP3P: &[Row] = &[
    pk(0, "v_pk_mad_i16", I16X2, &[I16X2, I16X2, I16X2]).mods(Mods::CLAMP),
    pk(1, "v_pk_mul_lo_u16", U16X2, &[U16X2, U16X2]),
    pk(2, "v_pk_add_i16", I16X2, &[I16X2, I16X2]).mods(Mods::CLAMP),
    pk(3, "v_pk_sub_i16", I16X2, &[I16X2, I16X2]).mods(Mods::CLAMP),
    pk(4, "v_pk_lshlrev_b16", I16X2, &[U16X2, I16X2]),
    pk(5, "v_pk_lshrrev_b16", I16X2, &[U16X2, I16X2]),
    pk(6, "v_pk_ashrrev_i16", I16X2, &[U16X2, I16X2]),
    pk(7, "v_pk_max_i16", I16X2, &[I16X2, I16X2]),
    pk(8, "v_pk_min_i16", I16X2, &[I16X2, I16X2]),
    pk(9, "v_pk_mad_u16", U16X2, &[U16X2, U16X2, U16X2]).mods(Mods::CLAMP),
    pk(10, "v_pk_add_u16", U16X2, &[U16X2, U16X2]).mods(Mods::CLAMP),
    pk(11, "v_pk_sub_u16", U16X2, &[U16X2, U16X2]).mods(Mods::CLAMP),
    pk(12, "v_pk_max_u16", U16X2, &[U16X2, U16X2]),
    pk(13, "v_pk_min_u16", U16X2, &[U16X2, U16X2]),
    pk(14, "v_pk_fma_f16", F16X2, &[F16X2, F16X2, F16X2]).negates().mods(Mods::CLAMP),
    pk(15, "v_pk_add_f16", F16X2, &[F16X2, F16X2]).negates().mods(Mods::CLAMP),
    pk(16, "v_pk_mul_f16", F16X2, &[F16X2, F16X2]).negates().mods(Mods::CLAMP),
    pk(17, "v_pk_min_f16", F16X2, &[F16X2, F16X2]).negates().mods(Mods::CLAMP),
    pk(18, "v_pk_max_f16", F16X2, &[F16X2, F16X2]).negates().mods(Mods::CLAMP),
    mix(32, "v_fma_mix_f32", F32),
    mix(33, "v_fma_mixlo_f16", F16),
    mix(34, "v_fma_mixhi_f16", F16),
    dot(35, "v_dot2_f32_f16", F32, F16X2).negates(),
    dot(38, "v_dot2_i32_i16", I32, I16X2),
    dot(39, "v_dot2_u32_u16", U32, U16X2),
    dot(40, "v_dot4_i32_i8", I32, I8X4),
    dot(41, "v_dot4_u32_u8", U32, U8X4),
    dot(42, "v_dot8_i32_i4", I32, I4X8),
    dot(43, "v_dot8_u32_u4", U32, U4X8),
    pk(48, "v_pk_fma_f32", F32X2, &[F32X2, F32X2, F32X2]).negates().mods(Mods::CLAMP),
    pk(49, "v_pk_mul_f32", F32X2, &[F32X2, F32X2]).negates().mods(Mods::CLAMP),
    pk(50, "v_pk_add_f32", F32X2, &[F32X2, F32X2]).negates().mods(Mods::CLAMP),
    pk(51, "v_pk_mov_b32", B32X2, &[B32X2, B32X2]),
    super::build::accvgpr_read(88, "v_accvgpr_read_b32"),
    super::build::accvgpr_write(89, "v_accvgpr_write_b32"),
];
