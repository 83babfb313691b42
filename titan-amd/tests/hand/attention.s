// O = softmax(scale Q Kᵀ) V, for one head of 64: Q, K of rows of 64 numbers of bf16, V transposed (64 rows of as many numbers
// as there are keys), O of rows of 64 numbers of f32. Arguments: Q, K, V, O, keys (a multiple of 16), scale times log2(e).
// One wave makes 16 queries, 16 keys at a time, with the maximum so far.
//
// It multiplies keys by queries, so that lane l has query l % 16 and keys 4 (l / 16) and three more: where the second
// product wants the weights.
    s_load_dwordx8 s[4:11], s[0:1], 0x0         // Q, K, V, O
    s_load_dwordx2 s[12:13], s[0:1], 0x20       // keys, scale
    v_and_b32_e32 v0, 0x3ff, v0
    v_and_b32_e32 v1, 15, v0                    // query, key or element
    v_lshrrev_b32_e32 v2, 4, v0                 // which four of 16
    v_lshlrev_b32_e32 v3, 7, v1
    v_lshl_or_b32 v3, v2, 3, v3                 // offset in rows of 128 bytes
    v_xor_b32_e32 v4, 16, v0
    v_lshlrev_b32_e32 v4, 2, v4                 // partners among the lanes of a query
    v_xor_b32_e32 v5, 32, v0
    v_lshlrev_b32_e32 v5, 2, v5
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s14, s2, 11
    v_add_u32_e32 v6, s14, v3
    global_load_dwordx2 v[16:17], v6, s[4:5]
    global_load_dwordx2 v[18:19], v6, s[4:5] offset:32
    global_load_dwordx2 v[20:21], v6, s[4:5] offset:64
    global_load_dwordx2 v[22:23], v6, s[4:5] offset:96
    s_lshl_b32 s15, s12, 1                      // bytes of a row of V
    v_mul_lo_u32 v7, v1, s15
    v_lshl_or_b32 v7, v2, 3, v7
    s_lshl_b32 s16, s12, 5                      // sixteen rows
    v_mov_b32_e32 v8, v7
    v_add_u32_e32 v9, s16, v8
    v_add_u32_e32 v10, s16, v9
    v_add_u32_e32 v11, s16, v10
    v_mov_b32_e32 v12, 0xff800000               // maximum
    v_mov_b32_e32 v13, 0                        // sum
    v_mov_b32_e32 v40, 0
    v_mov_b32_e32 v41, 0
    v_mov_b32_e32 v42, 0
    v_mov_b32_e32 v43, 0
    v_mov_b32_e32 v44, 0
    v_mov_b32_e32 v45, 0
    v_mov_b32_e32 v46, 0
    v_mov_b32_e32 v47, 0
    v_mov_b32_e32 v48, 0
    v_mov_b32_e32 v49, 0
    v_mov_b32_e32 v50, 0
    v_mov_b32_e32 v51, 0
    v_mov_b32_e32 v52, 0
    v_mov_b32_e32 v53, 0
    v_mov_b32_e32 v54, 0
    v_mov_b32_e32 v55, 0
    s_mov_b32 s17, 0
    s_movk_i32 s20, 0x7fff
keys:
    global_load_dwordx2 v[24:25], v3, s[6:7]
    global_load_dwordx2 v[26:27], v3, s[6:7] offset:32
    global_load_dwordx2 v[28:29], v3, s[6:7] offset:64
    global_load_dwordx2 v[30:31], v3, s[6:7] offset:96
    global_load_dwordx2 v[56:57], v8, s[8:9]
    global_load_dwordx2 v[58:59], v9, s[8:9]
    global_load_dwordx2 v[60:61], v10, s[8:9]
    global_load_dwordx2 v[62:63], v11, s[8:9]
    s_waitcnt vmcnt(7)
    v_mfma_f32_16x16x16_bf16 v[32:35], v[24:25], v[16:17], 0
    s_waitcnt vmcnt(6)
    v_mfma_f32_16x16x16_bf16 v[32:35], v[26:27], v[18:19], v[32:35]
    s_waitcnt vmcnt(5)
    v_mfma_f32_16x16x16_bf16 v[32:35], v[28:29], v[20:21], v[32:35]
    s_waitcnt vmcnt(4)
    v_mfma_f32_16x16x16_bf16 v[32:35], v[30:31], v[22:23], v[32:35]
    s_nop 6
    v_mul_f32_e32 v32, s13, v32
    v_mul_f32_e32 v33, s13, v33
    v_mul_f32_e32 v34, s13, v34
    v_mul_f32_e32 v35, s13, v35
    // The largest of the query's sixteen, and of those before.
    v_max_f32_e32 v36, v32, v33
    v_max3_f32 v36, v36, v34, v35
    ds_bpermute_b32 v37, v4, v36
    s_waitcnt lgkmcnt(0)
    v_max_f32_e32 v36, v36, v37
    ds_bpermute_b32 v37, v5, v36
    s_waitcnt lgkmcnt(0)
    v_max3_f32 v36, v36, v37, v12
    v_sub_f32_e32 v37, v12, v36
    v_exp_f32_e32 v37, v37                      // what sums so far shrink by
    v_mov_b32_e32 v12, v36
    v_sub_f32_e32 v32, v32, v12
    v_sub_f32_e32 v33, v33, v12
    v_sub_f32_e32 v34, v34, v12
    v_sub_f32_e32 v35, v35, v12
    v_exp_f32_e32 v32, v32
    v_exp_f32_e32 v33, v33
    v_exp_f32_e32 v34, v34
    v_exp_f32_e32 v35, v35
    v_mul_f32_e32 v13, v13, v37
    v_add_f32_e32 v38, v32, v33
    v_add_f32_e32 v39, v34, v35
    v_add_f32_e32 v38, v38, v39
    v_add_f32_e32 v13, v13, v38
    // Weights as bf16, to nearest even.
    v_bfe_u32 v38, v32, 16, 1
    v_add3_u32 v32, v32, v38, s20
    v_bfe_u32 v38, v33, 16, 1
    v_add3_u32 v33, v33, v38, s20
    v_bfe_u32 v38, v34, 16, 1
    v_add3_u32 v34, v34, v38, s20
    v_bfe_u32 v38, v35, 16, 1
    v_add3_u32 v35, v35, v38, s20
    s_mov_b32 s21, 0x7060302
    v_perm_b32 v32, v33, v32, s21
    v_perm_b32 v33, v35, v34, s21
    v_mul_f32_e32 v40, v40, v37
    v_mul_f32_e32 v41, v41, v37
    v_mul_f32_e32 v42, v42, v37
    v_mul_f32_e32 v43, v43, v37
    v_mul_f32_e32 v44, v44, v37
    v_mul_f32_e32 v45, v45, v37
    v_mul_f32_e32 v46, v46, v37
    v_mul_f32_e32 v47, v47, v37
    v_mul_f32_e32 v48, v48, v37
    v_mul_f32_e32 v49, v49, v37
    v_mul_f32_e32 v50, v50, v37
    v_mul_f32_e32 v51, v51, v37
    v_mul_f32_e32 v52, v52, v37
    v_mul_f32_e32 v53, v53, v37
    v_mul_f32_e32 v54, v54, v37
    v_mul_f32_e32 v55, v55, v37
    s_waitcnt vmcnt(3)
    v_mfma_f32_16x16x16_bf16 v[40:43], v[56:57], v[32:33], v[40:43]
    s_waitcnt vmcnt(2)
    v_mfma_f32_16x16x16_bf16 v[44:47], v[58:59], v[32:33], v[44:47]
    s_waitcnt vmcnt(1)
    v_mfma_f32_16x16x16_bf16 v[48:51], v[60:61], v[32:33], v[48:51]
    s_waitcnt vmcnt(0)
    v_mfma_f32_16x16x16_bf16 v[52:55], v[62:63], v[32:33], v[52:55]
    v_add_u32_e32 v3, 0x800, v3
    v_add_u32_e32 v8, 32, v8
    v_add_u32_e32 v9, 32, v9
    v_add_u32_e32 v10, 32, v10
    v_add_u32_e32 v11, 32, v11
    s_add_u32 s17, s17, 16
    s_cmp_lt_u32 s17, s12
    s_cbranch_scc1 keys
    // The sum over the lanes of a query, and its reciprocal.
    ds_bpermute_b32 v37, v4, v13
    s_waitcnt lgkmcnt(0)
    v_add_f32_e32 v13, v13, v37
    ds_bpermute_b32 v37, v5, v13
    s_waitcnt lgkmcnt(0)
    v_add_f32_e32 v13, v13, v37
    v_rcp_f32_e32 v13, v13
    s_lshl_b32 s14, s2, 12
    v_lshlrev_b32_e32 v6, 8, v1
    v_lshl_or_b32 v6, v2, 4, v6
    v_add_u32_e32 v6, s14, v6
    v_mul_f32_e32 v40, v40, v13
    v_mul_f32_e32 v41, v41, v13
    v_mul_f32_e32 v42, v42, v13
    v_mul_f32_e32 v43, v43, v13
    v_mul_f32_e32 v44, v44, v13
    v_mul_f32_e32 v45, v45, v13
    v_mul_f32_e32 v46, v46, v13
    v_mul_f32_e32 v47, v47, v13
    v_mul_f32_e32 v48, v48, v13
    v_mul_f32_e32 v49, v49, v13
    v_mul_f32_e32 v50, v50, v13
    v_mul_f32_e32 v51, v51, v13
    v_mul_f32_e32 v52, v52, v13
    v_mul_f32_e32 v53, v53, v13
    v_mul_f32_e32 v54, v54, v13
    v_mul_f32_e32 v55, v55, v13
    global_store_dwordx4 v6, v[40:43], s[10:11]
    global_store_dwordx4 v6, v[44:47], s[10:11] offset:64
    global_store_dwordx4 v6, v[48:51], s[10:11] offset:128
    global_store_dwordx4 v6, v[52:55], s[10:11] offset:192
    s_endpgm
