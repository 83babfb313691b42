// z = x + y, for n numbers of 32 bits. Arguments: x, y, z, n. 256 work items, one number each.
// Ranges of buffers are as long as the vectors: the last workgroup needs no comparison.
    s_load_dwordx4 s[4:7], s[0:1], 0x0          // x, y
    s_load_dwordx2 s[16:17], s[0:1], 0x10       // z
    s_load_dword s20, s[0:1], 0x18              // n
    v_and_b32_e32 v0, 0x3ff, v0
    s_lshl_b32 s3, s2, 8
    v_add_lshl_u32 v0, v0, s3, 2                // offset in bytes
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s20, s20, 2
    s_mov_b32 s8, s4
    s_and_b32 s9, s5, 0xffff
    s_mov_b32 s10, s20
    s_mov_b32 s11, 0x27000
    s_mov_b32 s12, s6
    s_and_b32 s13, s7, 0xffff
    s_mov_b32 s14, s20
    s_mov_b32 s15, 0x27000
    s_and_b32 s17, s17, 0xffff
    s_mov_b32 s18, s20
    s_mov_b32 s19, 0x27000
    buffer_load_dword v1, v0, s[8:11], 0 offen
    buffer_load_dword v2, v0, s[12:15], 0 offen
    s_waitcnt vmcnt(0)
    v_add_f32_e32 v1, v1, v2
    buffer_store_dword v1, v0, s[16:19], 0 offen
    s_endpgm
