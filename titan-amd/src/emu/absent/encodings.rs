//! tidy: table
//! The encodings of instructions that the manual has and the tables of instructions do not.
//!
//! Source: "AMD Instinct MI300" Instruction Set Architecture, §12.1 to §12.14 for the opcodes, §13 for the formats.
//! Some are LLVM's, which shares its tables with earlier machines; the manual does not list them ([`Absent::used_by`] says which).
//!
//! Deliberately absent: operands. A kernel that uses one of these is refused whatever they are.

use super::Absent;

/// An instruction, recognised by bits of its first word.
pub(super) struct Encoding {
    pub(super) name: &'static str,
    pub(super) mask: u32,
    pub(super) value: u32,
    pub(super) feature: Absent,
}

/// The bits from `lo` to `hi`.
const fn bits(hi: u32, lo: u32) -> u32 {
    (u32::MAX >> (31 - hi)) & !((1 << lo) - 1)
}

/// The fixed bits of a format, which are its highest, and the bits of the opcode.
struct Shape {
    fixed: (u32, u32),
    op: (u32, u32),
}

const SOP2: Shape = Shape { fixed: (30, 0b10), op: (29, 23) };
const SOPK: Shape = Shape { fixed: (28, 0b1011), op: (27, 23) };
const SOP1: Shape = Shape { fixed: (23, 0b1_0111_1101), op: (15, 8) };
const SOPC: Shape = Shape { fixed: (23, 0b1_0111_1110), op: (22, 16) };
const SOPP: Shape = Shape { fixed: (23, 0b1_0111_1111), op: (22, 16) };
const SMEM: Shape = Shape { fixed: (26, 0b11_0000), op: (25, 18) };
const VOP1: Shape = Shape { fixed: (25, 0b011_1111), op: (16, 9) };
const VOP3: Shape = Shape { fixed: (26, 0b11_0100), op: (25, 16) };
const DS: Shape = Shape { fixed: (26, 0b11_0110), op: (24, 17) };
const MUBUF: Shape = Shape { fixed: (26, 0b11_1000), op: (24, 18) };
const MTBUF: Shape = Shape { fixed: (26, 0b11_1010), op: (18, 15) };

const fn at(shape: Shape, op: u32, name: &'static str, feature: Absent) -> Encoding {
    let mask = bits(31, shape.fixed.0) | bits(shape.op.0, shape.op.1);
    Encoding { name, mask, value: shape.fixed.1 << shape.fixed.0 | op << shape.op.1, feature }
}

const CONTROL: &[Encoding] = &[
    at(SOP2, 41, "s_cbranch_g_fork", Absent::ForkAndJoin),
    at(SOP2, 43, "s_rfe_restore_b64", Absent::TrapHandler),
    at(SOPK, 16, "s_cbranch_i_fork", Absent::ForkAndJoin),
    at(SOP1, 31, "s_rfe_b64", Absent::TrapHandler),
    at(SOP1, 46, "s_cbranch_join", Absent::ForkAndJoin),
    at(SOPC, 16, "s_setvskip", Absent::VectorSkip),
    at(SOPP, 11, "s_setkill", Absent::Debugging),
    at(SOPP, 22, "s_ttracedata", Absent::Debugging),
    at(SOPP, 23, "s_cbranch_cdbgsys", Absent::Debugging),
    at(SOPP, 24, "s_cbranch_cdbguser", Absent::Debugging),
    at(SOPP, 25, "s_cbranch_cdbgsys_or_user", Absent::Debugging),
    at(SOPP, 26, "s_cbranch_cdbgsys_and_user", Absent::Debugging),
    at(SOPP, 27, "s_endpgm_saved", Absent::TrapHandler),
    at(SOPP, 30, "s_endpgm_ordered_ps_done", Absent::Graphics),
];

const SCALAR_MEMORY: &[Encoding] = &[
    at(SMEM, 5, "s_scratch_load_dword", Absent::ScalarScratch),
    at(SMEM, 6, "s_scratch_load_dwordx2", Absent::ScalarScratch),
    at(SMEM, 7, "s_scratch_load_dwordx4", Absent::ScalarScratch),
    at(SMEM, 16, "s_store_dword", Absent::ScalarStores),
    at(SMEM, 17, "s_store_dwordx2", Absent::ScalarStores),
    at(SMEM, 18, "s_store_dwordx4", Absent::ScalarStores),
    at(SMEM, 21, "s_scratch_store_dword", Absent::ScalarStores),
    at(SMEM, 22, "s_scratch_store_dwordx2", Absent::ScalarStores),
    at(SMEM, 23, "s_scratch_store_dwordx4", Absent::ScalarStores),
    at(SMEM, 24, "s_buffer_store_dword", Absent::ScalarStores),
    at(SMEM, 25, "s_buffer_store_dwordx2", Absent::ScalarStores),
    at(SMEM, 26, "s_buffer_store_dwordx4", Absent::ScalarStores),
    at(SMEM, 38, "s_atc_probe", Absent::TranslationProbes),
    at(SMEM, 39, "s_atc_probe_buffer", Absent::TranslationProbes),
    at(SMEM, 40, "s_dcache_discard", Absent::ScalarStores),
    at(SMEM, 41, "s_dcache_discard_x2", Absent::ScalarStores),
    at(SMEM, 64, "s_buffer_atomic_swap", Absent::ScalarAtomics),
    at(SMEM, 65, "s_buffer_atomic_cmpswap", Absent::ScalarAtomics),
    at(SMEM, 66, "s_buffer_atomic_add", Absent::ScalarAtomics),
    at(SMEM, 67, "s_buffer_atomic_sub", Absent::ScalarAtomics),
    at(SMEM, 68, "s_buffer_atomic_smin", Absent::ScalarAtomics),
    at(SMEM, 69, "s_buffer_atomic_umin", Absent::ScalarAtomics),
    at(SMEM, 70, "s_buffer_atomic_smax", Absent::ScalarAtomics),
    at(SMEM, 71, "s_buffer_atomic_umax", Absent::ScalarAtomics),
    at(SMEM, 72, "s_buffer_atomic_and", Absent::ScalarAtomics),
    at(SMEM, 73, "s_buffer_atomic_or", Absent::ScalarAtomics),
    at(SMEM, 74, "s_buffer_atomic_xor", Absent::ScalarAtomics),
    at(SMEM, 75, "s_buffer_atomic_inc", Absent::ScalarAtomics),
    at(SMEM, 76, "s_buffer_atomic_dec", Absent::ScalarAtomics),
    at(SMEM, 96, "s_buffer_atomic_swap_x2", Absent::ScalarAtomics),
    at(SMEM, 97, "s_buffer_atomic_cmpswap_x2", Absent::ScalarAtomics),
    at(SMEM, 98, "s_buffer_atomic_add_x2", Absent::ScalarAtomics),
    at(SMEM, 99, "s_buffer_atomic_sub_x2", Absent::ScalarAtomics),
    at(SMEM, 100, "s_buffer_atomic_smin_x2", Absent::ScalarAtomics),
    at(SMEM, 101, "s_buffer_atomic_umin_x2", Absent::ScalarAtomics),
    at(SMEM, 102, "s_buffer_atomic_smax_x2", Absent::ScalarAtomics),
    at(SMEM, 103, "s_buffer_atomic_umax_x2", Absent::ScalarAtomics),
    at(SMEM, 104, "s_buffer_atomic_and_x2", Absent::ScalarAtomics),
    at(SMEM, 105, "s_buffer_atomic_or_x2", Absent::ScalarAtomics),
    at(SMEM, 106, "s_buffer_atomic_xor_x2", Absent::ScalarAtomics),
    at(SMEM, 107, "s_buffer_atomic_inc_x2", Absent::ScalarAtomics),
    at(SMEM, 108, "s_buffer_atomic_dec_x2", Absent::ScalarAtomics),
    at(SMEM, 128, "s_atomic_swap", Absent::ScalarAtomics),
    at(SMEM, 129, "s_atomic_cmpswap", Absent::ScalarAtomics),
    at(SMEM, 130, "s_atomic_add", Absent::ScalarAtomics),
    at(SMEM, 131, "s_atomic_sub", Absent::ScalarAtomics),
    at(SMEM, 132, "s_atomic_smin", Absent::ScalarAtomics),
    at(SMEM, 133, "s_atomic_umin", Absent::ScalarAtomics),
    at(SMEM, 134, "s_atomic_smax", Absent::ScalarAtomics),
    at(SMEM, 135, "s_atomic_umax", Absent::ScalarAtomics),
    at(SMEM, 136, "s_atomic_and", Absent::ScalarAtomics),
    at(SMEM, 137, "s_atomic_or", Absent::ScalarAtomics),
    at(SMEM, 138, "s_atomic_xor", Absent::ScalarAtomics),
    at(SMEM, 139, "s_atomic_inc", Absent::ScalarAtomics),
    at(SMEM, 140, "s_atomic_dec", Absent::ScalarAtomics),
    at(SMEM, 160, "s_atomic_swap_x2", Absent::ScalarAtomics),
    at(SMEM, 161, "s_atomic_cmpswap_x2", Absent::ScalarAtomics),
    at(SMEM, 162, "s_atomic_add_x2", Absent::ScalarAtomics),
    at(SMEM, 163, "s_atomic_sub_x2", Absent::ScalarAtomics),
    at(SMEM, 164, "s_atomic_smin_x2", Absent::ScalarAtomics),
    at(SMEM, 165, "s_atomic_umin_x2", Absent::ScalarAtomics),
    at(SMEM, 166, "s_atomic_smax_x2", Absent::ScalarAtomics),
    at(SMEM, 167, "s_atomic_umax_x2", Absent::ScalarAtomics),
    at(SMEM, 168, "s_atomic_and_x2", Absent::ScalarAtomics),
    at(SMEM, 169, "s_atomic_or_x2", Absent::ScalarAtomics),
    at(SMEM, 170, "s_atomic_xor_x2", Absent::ScalarAtomics),
    at(SMEM, 171, "s_atomic_inc_x2", Absent::ScalarAtomics),
    at(SMEM, 172, "s_atomic_dec_x2", Absent::ScalarAtomics),
];

const VECTOR: &[Encoding] = &[
    at(VOP1, 53, "v_clrexcp", Absent::Exceptions),
    at(VOP1, 55, "v_screen_partition_4se_b32", Absent::Graphics),
    at(VOP3, 437, "v_clrexcp", Absent::Exceptions),
    at(VOP3, 439, "v_screen_partition_4se_b32", Absent::Graphics),
    at(VOP3, 452, "v_cubeid_f32", Absent::Graphics),
    at(VOP3, 453, "v_cubesc_f32", Absent::Graphics),
    at(VOP3, 454, "v_cubetc_f32", Absent::Graphics),
    at(VOP3, 455, "v_cubema_f32", Absent::Graphics),
];

const DATA_SHARE: &[Encoding] = &[
    at(DS, 152, "ds_gws_sema_release_all", Absent::WaveSync),
    at(DS, 153, "ds_gws_init", Absent::WaveSync),
    at(DS, 154, "ds_gws_sema_v", Absent::WaveSync),
    at(DS, 155, "ds_gws_sema_br", Absent::WaveSync),
    at(DS, 156, "ds_gws_sema_p", Absent::WaveSync),
    at(DS, 157, "ds_gws_barrier", Absent::WaveSync),
    at(DS, 189, "ds_consume", Absent::AppendAndConsume),
    at(DS, 190, "ds_append", Absent::AppendAndConsume),
];

const BUFFERS: &[Encoding] = &[
    at(MUBUF, 0, "buffer_load_format_x", Absent::TypedBuffers),
    at(MUBUF, 1, "buffer_load_format_xy", Absent::TypedBuffers),
    at(MUBUF, 2, "buffer_load_format_xyz", Absent::TypedBuffers),
    at(MUBUF, 3, "buffer_load_format_xyzw", Absent::TypedBuffers),
    at(MUBUF, 4, "buffer_store_format_x", Absent::TypedBuffers),
    at(MUBUF, 5, "buffer_store_format_xy", Absent::TypedBuffers),
    at(MUBUF, 6, "buffer_store_format_xyz", Absent::TypedBuffers),
    at(MUBUF, 7, "buffer_store_format_xyzw", Absent::TypedBuffers),
    at(MUBUF, 8, "buffer_load_format_d16_x", Absent::TypedBuffers),
    at(MUBUF, 9, "buffer_load_format_d16_xy", Absent::TypedBuffers),
    at(MUBUF, 10, "buffer_load_format_d16_xyz", Absent::TypedBuffers),
    at(MUBUF, 11, "buffer_load_format_d16_xyzw", Absent::TypedBuffers),
    at(MUBUF, 12, "buffer_store_format_d16_x", Absent::TypedBuffers),
    at(MUBUF, 13, "buffer_store_format_d16_xy", Absent::TypedBuffers),
    at(MUBUF, 14, "buffer_store_format_d16_xyz", Absent::TypedBuffers),
    at(MUBUF, 15, "buffer_store_format_d16_xyzw", Absent::TypedBuffers),
    at(MUBUF, 38, "buffer_load_format_d16_hi_x", Absent::TypedBuffers),
    at(MUBUF, 39, "buffer_store_format_d16_hi_x", Absent::TypedBuffers),
    at(MUBUF, 61, "buffer_store_lds_dword", Absent::LdsStores),
    at(MUBUF, 62, "buffer_wbinvl1", Absent::EarlierCaches),
    at(MUBUF, 63, "buffer_wbinvl1_vol", Absent::EarlierCaches),
    at(MTBUF, 0, "tbuffer_load_format_x", Absent::TypedBuffers),
    at(MTBUF, 1, "tbuffer_load_format_xy", Absent::TypedBuffers),
    at(MTBUF, 2, "tbuffer_load_format_xyz", Absent::TypedBuffers),
    at(MTBUF, 3, "tbuffer_load_format_xyzw", Absent::TypedBuffers),
    at(MTBUF, 4, "tbuffer_store_format_x", Absent::TypedBuffers),
    at(MTBUF, 5, "tbuffer_store_format_xy", Absent::TypedBuffers),
    at(MTBUF, 6, "tbuffer_store_format_xyz", Absent::TypedBuffers),
    at(MTBUF, 7, "tbuffer_store_format_xyzw", Absent::TypedBuffers),
    at(MTBUF, 8, "tbuffer_load_format_d16_x", Absent::TypedBuffers),
    at(MTBUF, 9, "tbuffer_load_format_d16_xy", Absent::TypedBuffers),
    at(MTBUF, 10, "tbuffer_load_format_d16_xyz", Absent::TypedBuffers),
    at(MTBUF, 11, "tbuffer_load_format_d16_xyzw", Absent::TypedBuffers),
    at(MTBUF, 12, "tbuffer_store_format_d16_x", Absent::TypedBuffers),
    at(MTBUF, 13, "tbuffer_store_format_d16_xy", Absent::TypedBuffers),
    at(MTBUF, 14, "tbuffer_store_format_d16_xyz", Absent::TypedBuffers),
    at(MTBUF, 15, "tbuffer_store_format_d16_xyzw", Absent::TypedBuffers),
];

/// The bit of an operation on the local data share that makes it one on the global one.
const GDS: u32 = 1 << 16;

/// An operation on the global data share as one on the local data share.
pub(super) const fn without_gds(word: u32) -> Option<u32> {
    let is_ds = word >> DS.fixed.0 == DS.fixed.1;
    if is_ds && word & GDS != 0 { Some(word & !GDS) } else { None }
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Encoding> {
    [CONTROL, SCALAR_MEMORY, VECTOR, DATA_SHARE, BUFFERS].into_iter().flatten()
}
