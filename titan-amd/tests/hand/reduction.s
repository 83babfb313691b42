// y[g] = the sum of the g-th 1024 numbers of x, of n in all. Arguments: x, y, n. 256 work items, four numbers each:
// first a lane, then a row of 16 lanes by DPP, then the four rows, then the four waves through the local data share.
    s_load_dwordx4 s[4:7], s[0:1], 0x0          // x, y
    s_load_dword s20, s[0:1], 0x10              // n
    v_and_b32_e32 v0, 0x3ff, v0
    v_lshlrev_b32_e32 v5, 4, v0
    s_lshl_b32 s3, s2, 12
    v_add_u32_e32 v5, s3, v5
    s_waitcnt lgkmcnt(0)
    s_mov_b32 s8, s4
    s_and_b32 s9, s5, 0xffff
    s_lshl_b32 s10, s20, 2
    s_mov_b32 s11, 0x27000
    buffer_load_dwordx4 v[2:5], v5, s[8:11], 0 offen
    s_waitcnt vmcnt(0)
    v_add_f32_e32 v1, v2, v3
    v_add_f32_e32 v3, v4, v5
    v_add_f32_e32 v1, v1, v3
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:0
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_shr:4 row_mask:0xf bank_mask:0xf bound_ctrl:0
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xf bound_ctrl:0
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_bcast:15 row_mask:0xa bank_mask:0xf
    s_nop 1
    v_add_f32_dpp v1, v1, v1 row_bcast:31 row_mask:0xc bank_mask:0xf
    s_nop 0
    v_readlane_b32 s21, v1, 63                  // the wave's sum
    v_lshrrev_b32_e32 v6, 6, v0
    v_lshlrev_b32_e32 v6, 2, v6
    v_mov_b32_e32 v7, s21
    ds_write_b32 v6, v7                         // each lane the same
    s_waitcnt lgkmcnt(0)
    s_barrier
    v_mov_b32_e32 v8, 0
    ds_read_b128 v[8:11], v8
    s_waitcnt lgkmcnt(0)
    v_add_f32_e32 v8, v8, v9
    v_add_f32_e32 v10, v10, v11
    v_add_f32_e32 v8, v8, v10
    v_cmp_eq_u32_e32 vcc, 0, v0
    s_and_saveexec_b64 s[22:23], vcc
    s_cbranch_execz end
    v_mov_b32_e32 v9, 0
    s_lshl_b32 s3, s2, 2
    s_add_u32 s6, s6, s3
    s_addc_u32 s7, s7, 0
    global_store_dword v9, v8, s[6:7]
end:
    s_endpgm
