// Lanes of a wave.
kernel void ballot(global uint *x, global ulong *y) { y[GID] = __builtin_amdgcn_ballot_w64(x[GID] % 3 == 0); }
kernel void any_all(global uint *x, global uint *y) {
    ulong some = __builtin_amdgcn_ballot_w64(x[GID] > 200);
    y[GID] = (some != 0) | (some == ~0ul) << 1;
}
kernel void rank(global uint *x, global uint *y) {
    ulong mask = __builtin_amdgcn_ballot_w64((x[GID] & 1) == 1);
    y[GID] = __builtin_amdgcn_mbcnt_hi((uint)(mask >> 32), __builtin_amdgcn_mbcnt_lo((uint)mask, 0));
}
kernel void first_lane(global uint *x, global uint *y) {
    uint v = 0;
    if (x[GID] > 50) v = __builtin_amdgcn_readfirstlane(x[GID]);
    y[GID] = v + __builtin_amdgcn_readlane(x[GID], 17);
}
kernel void permute(global uint *x, global uint *y) { y[GID] = __builtin_amdgcn_ds_bpermute((63 - (int)LID) * 4, x[GID]); }
kernel void push(global uint *x, global uint *y) { y[GID] = __builtin_amdgcn_ds_permute(((int)LID * 5 & 63) * 4, x[GID]); }
kernel void swizzle(global uint *x, global uint *y) { y[GID] = __builtin_amdgcn_ds_swizzle(x[GID], 0x041f); }
kernel void row_sum(global uint *x, global uint *y) {
    uint v = x[GID];
    v += __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x112, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x114, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x118, 0xf, 0xf, 1);
    y[GID] = v;
}
kernel void wave_sum(global uint *x, global uint *y) {
    uint v = x[GID];
    v += __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x112, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x114, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x118, 0xf, 0xf, 1);
    v += __builtin_amdgcn_update_dpp(0, v, 0x142, 0xa, 0xf, 0);
    v += __builtin_amdgcn_update_dpp(0, v, 0x143, 0xc, 0xf, 0);
    y[GID] = __builtin_amdgcn_readlane(v, 63);
}
kernel void quads(global float *x, global float *y) {
    float v = x[GID];
    int b = __builtin_amdgcn_mov_dpp(__builtin_bit_cast(int, v), 0x1b, 0xf, 0xf, 1);
    y[GID] = v - __builtin_bit_cast(float, b);
}
kernel void butterfly(global float *x, global float *y) {
    float v = x[GID];
    for (int m = 32; m > 0; m /= 2) {
        int from = ((int)LID ^ m) * 4;
        v = __builtin_fmaxf(v, __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(from, __builtin_bit_cast(int, v))));
    }
    y[GID] = v;
}
