// C = A Bᵀ: A of M by K and B of N by K numbers of bf16, C of M by N of f32; K is a multiple of 32.
// Arguments: A, B, C, M, N, K. 512 work items; a workgroup makes 256 by 256 elements, 32 of K at a time.
//
// Tiles are loaded into the local data share directly, into two halves of it in turn: A of 16 KiB, then B of as many, rows
// of 64 bytes. Such loads are linear in the lane, so that the pieces of 16 bytes are permuted where they are read from.
    s_load_dwordx4 s[4:7], s[0:1], 0x0          // A, B
    s_load_dwordx4 s[20:23], s[0:1], 0x10       // C, M, N
    s_load_dword s24, s[0:1], 0x20              // K
    v_and_b32_e32 v0, 0x3ff, v0
    s_waitcnt lgkmcnt(0)
    // Buffers: as long as the matrices, so that rows beyond the last are zero.
    s_lshl_b32 s25, s24, 1                      // bytes of a row of A and B
    s_mov_b32 s8, s4
    s_and_b32 s9, s5, 0xffff
    s_mul_i32 s10, s22, s25
    s_mov_b32 s11, 0x27000
    s_mov_b32 s12, s6
    s_and_b32 s13, s7, 0xffff
    s_mul_i32 s14, s23, s25
    s_mov_b32 s15, 0x27000
    s_lshl_b32 s26, s23, 2                      // bytes of a row of C
    s_mov_b32 s16, s20
    s_and_b32 s17, s21, 0xffff
    s_mul_i32 s18, s22, s26
    s_mov_b32 s19, 0x27000
    // The wave's part of the tile: 128 rows by 64 columns, in two rows and four columns of waves.
    v_and_b32_e32 v5, 63, v0                    // lane
    v_lshrrev_b32_e32 v6, 6, v0
    s_nop 0
    v_readfirstlane_b32 s29, v6
    s_lshr_b32 s30, s29, 2
    s_and_b32 s31, s29, 3
    // What a lane copies: four bytes of row l / 16 of four; in every other four, of a piece further.
    v_lshrrev_b32_e32 v1, 4, v5
    v_and_b32_e32 v2, 15, v5
    v_lshrrev_b32_e32 v3, 2, v2                 // piece
    v_lshrrev_b32_e32 v4, 5, v5
    v_xor_b32_e32 v3, v3, v4
    v_and_b32_e32 v2, 3, v2
    v_lshlrev_b32_e32 v2, 2, v2
    v_lshl_or_b32 v2, v3, 4, v2
    v_xor_b32_e32 v3, 32, v2
    s_lshl_b32 s33, s25, 2
    s_lshl_b32 s35, s25, 3
    s_lshl_b32 s27, s3, 8
    s_lshl_b32 s28, s29, 5
    s_add_u32 s27, s27, s28
    v_add_u32_e32 v6, s27, v1
    v_mul_lo_u32 v6, v6, s25
    v_add_u32_e32 v8, v6, v2
    v_add_u32_e32 v6, v6, v3
    v_add_u32_e32 v9, s33, v6
    v_add_u32_e32 v10, s35, v8
    v_add_u32_e32 v11, s35, v9
    v_add_u32_e32 v12, s35, v10
    v_add_u32_e32 v13, s35, v11
    v_add_u32_e32 v14, s35, v12
    v_add_u32_e32 v15, s35, v13
    s_lshl_b32 s27, s2, 8
    s_lshl_b32 s28, s29, 5
    s_add_u32 s27, s27, s28
    v_add_u32_e32 v6, s27, v1
    v_mul_lo_u32 v6, v6, s25
    v_add_u32_e32 v20, v6, v2
    v_add_u32_e32 v6, v6, v3
    v_add_u32_e32 v21, s33, v6
    v_add_u32_e32 v22, s35, v20
    v_add_u32_e32 v23, s35, v21
    v_add_u32_e32 v24, s35, v22
    v_add_u32_e32 v25, s35, v23
    v_add_u32_e32 v26, s35, v24
    v_add_u32_e32 v27, s35, v25
    s_lshl_b32 s38, s29, 11                     // the wave's part of the tile
    // What a lane multiplies: 8 bytes of row l % 32.
    v_and_b32_e32 v3, 31, v5
    v_lshrrev_b32_e32 v4, 5, v5
    v_lshrrev_b32_e32 v6, 1, v3
    v_and_b32_e32 v6, 3, v6
    v_lshlrev_b32_e32 v6, 4, v6
    v_lshl_or_b32 v6, v3, 6, v6
    v_lshl_or_b32 v6, v4, 3, v6
    s_lshl_b32 s32, s30, 13
    s_lshl_b32 s33, s31, 12
    v_add_u32_e32 v17, s32, v6
    v_add_u32_e32 v18, s33, v6
    // Accumulators: products of zeros.
    v_mov_b32_e32 v52, 0
    v_mov_b32_e32 v53, 0
    s_nop 1
    v_mfma_f32_32x32x8_bf16 a[0:15], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[16:31], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[32:47], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[48:63], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[64:79], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[80:95], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[96:111], v[52:53], v[52:53], 0
    v_mfma_f32_32x32x8_bf16 a[112:127], v[52:53], v[52:53], 0
    s_mov_b32 s34, 0                            // bytes of K that are loaded
    s_mov_b32 s39, 0                            // half that is loaded next
    s_add_u32 m0, s39, s38
    s_nop 0
    buffer_load_dword v8, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v9, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v10, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v11, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v12, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v13, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v14, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v15, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x3900
    s_nop 0
    buffer_load_dword v20, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v21, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v22, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v23, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v24, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v25, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v26, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v27, s[12:15], s34 offen lds
tile:
    s_mov_b32 s40, s39                          // half that is multiplied
    s_xor_b32 s39, s39, 0x8000
    s_add_u32 s34, s34, 64
    s_cmp_ge_u32 s34, s25
    s_cbranch_scc1 last
    s_add_u32 m0, s39, s38
    s_nop 0
    buffer_load_dword v8, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v9, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v10, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v11, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v12, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v13, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v14, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v15, s[8:11], s34 offen lds
    s_add_u32 m0, m0, 0x3900
    s_nop 0
    buffer_load_dword v20, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v21, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v22, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v23, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v24, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v25, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v26, s[12:15], s34 offen lds
    s_add_u32 m0, m0, 0x100
    s_nop 0
    buffer_load_dword v27, s[12:15], s34 offen lds
    s_waitcnt vmcnt(16)
    s_branch compute
last:
    s_waitcnt vmcnt(0)
compute:
    s_barrier                                   // the tile is there
    s_mov_b32 s36, s40
    s_add_u32 s41, s40, 64
step:
    v_xor_b32_e32 v3, s36, v17
    v_xor_b32_e32 v4, s36, v18
    ds_read_b64 v[52:53], v4 offset:16384
    ds_read_b64 v[54:55], v4 offset:18432
    ds_read_b64 v[56:57], v3
    ds_read_b64 v[58:59], v3 offset:2048
    ds_read_b64 v[60:61], v3 offset:4096
    ds_read_b64 v[62:63], v3 offset:6144
    s_waitcnt lgkmcnt(3)
    v_mfma_f32_32x32x8_bf16 a[0:15], v[56:57], v[52:53], a[0:15]
    v_mfma_f32_32x32x8_bf16 a[16:31], v[56:57], v[54:55], a[16:31]
    s_waitcnt lgkmcnt(2)
    v_mfma_f32_32x32x8_bf16 a[32:47], v[58:59], v[52:53], a[32:47]
    v_mfma_f32_32x32x8_bf16 a[48:63], v[58:59], v[54:55], a[48:63]
    s_waitcnt lgkmcnt(1)
    v_mfma_f32_32x32x8_bf16 a[64:79], v[60:61], v[52:53], a[64:79]
    v_mfma_f32_32x32x8_bf16 a[80:95], v[60:61], v[54:55], a[80:95]
    s_waitcnt lgkmcnt(0)
    v_mfma_f32_32x32x8_bf16 a[96:111], v[62:63], v[52:53], a[96:111]
    v_mfma_f32_32x32x8_bf16 a[112:127], v[62:63], v[54:55], a[112:127]
    s_add_u32 s36, s36, 16
    s_cmp_lg_u32 s36, s41
    s_cbranch_scc1 step
    s_cmp_ge_u32 s34, s25
    s_cbranch_scc1 done
    s_barrier                                   // all have read
    s_branch tile
done:
    // Results: lane l has column l % 32, and rows 4 (l / 32) and three more of each eight.
    s_lshl_b32 s27, s3, 8
    s_lshl_b32 s28, s30, 7
    s_add_u32 s27, s27, s28
    v_and_b32_e32 v3, 31, v5
    v_lshrrev_b32_e32 v4, 5, v5
    v_lshlrev_b32_e32 v4, 2, v4
    v_add_u32_e32 v4, s27, v4                   // row
    s_lshl_b32 s27, s2, 8
    s_lshl_b32 s28, s31, 6
    s_add_u32 s27, s27, s28
    v_add_u32_e32 v3, s27, v3                   // column
    v_mul_lo_u32 v4, v4, s26
    v_lshl_add_u32 v4, v3, 2, v4
    s_mul_i32 s28, s26, 5
    v_cmp_gt_u32_e32 vcc, s23, v3               // columns beyond the last are the next row's: masked
    s_and_saveexec_b64 s[36:37], vcc
    v_mov_b32_e32 v6, v4
    buffer_store_dword a0, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a1, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a2, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a3, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a4, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a5, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a6, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a7, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a8, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a9, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a10, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a11, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a12, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a13, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a14, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a15, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a32, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a33, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a34, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a35, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a36, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a37, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a38, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a39, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a40, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a41, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a42, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a43, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a44, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a45, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a46, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a47, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a64, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a65, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a66, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a67, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a68, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a69, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a70, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a71, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a72, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a73, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a74, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a75, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a76, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a77, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a78, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a79, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a96, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a97, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a98, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a99, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a100, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a101, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a102, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a103, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a104, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a105, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a106, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a107, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a108, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a109, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a110, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a111, v6, s[16:19], 0 offen
    s_mov_b64 exec, s[36:37]
    v_add_u32_e32 v3, 32, v3
    v_add_u32_e32 v4, 0x80, v4
    v_cmp_gt_u32_e32 vcc, s23, v3               // columns beyond the last are the next row's: masked
    s_and_saveexec_b64 s[36:37], vcc
    v_mov_b32_e32 v6, v4
    buffer_store_dword a16, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a17, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a18, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a19, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a20, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a21, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a22, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a23, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a24, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a25, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a26, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a27, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a28, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a29, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a30, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a31, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a48, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a49, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a50, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a51, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a52, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a53, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a54, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a55, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a56, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a57, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a58, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a59, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a60, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a61, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a62, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a63, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a80, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a81, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a82, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a83, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a84, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a85, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a86, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a87, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a88, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a89, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a90, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a91, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a92, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a93, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a94, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a95, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a112, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a113, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a114, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a115, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a116, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a117, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a118, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a119, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a120, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a121, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a122, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a123, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s28, v6
    buffer_store_dword a124, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a125, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a126, v6, s[16:19], 0 offen
    v_add_u32_e32 v6, s26, v6
    buffer_store_dword a127, v6, s[16:19], 0 offen
    s_endpgm
