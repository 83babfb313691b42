// The local data share, barriers and exchanges between lanes.
template <typename T, T (*F)(T, T)> __device__ T reduced(T v, T *t) {
    t[LID] = v;
    sync();
    for (u32 s = SIZE / 2; s > 0; s /= 2) {
        if (LID < s) t[LID] = F(t[LID], t[LID + s]);
        sync();
    }
    T r = t[0];
    sync();
    return r;
}
__device__ u32 add(u32 a, u32 b) { return a + b; }
__device__ u32 larger(u32 a, u32 b) { return a > b ? a : b; }
__device__ float add_float(float a, float b) { return a + b; }
KERNEL local_reduce(u32 *x, u32 *y) {
    __shared__ u32 t[256];
    u32 s = reduced<u32, add>(x[GID], t), m = reduced<u32, larger>(x[GID], t);
    if (LID == 0) y[2 * GROUP] = s, y[2 * GROUP + 1] = m;
}
KERNEL local_mean(float *x, float *y) {
    __shared__ float t[128];
    float mean = reduced<float, add_float>(x[GID], t) / (float)SIZE;
    float d = x[GID] - mean;
    y[GID] = d * d;
}
KERNEL local_scan(u32 *x, u32 *y) {
    // In each wave by exchanges, then over waves.
    __shared__ u32 sums[4];
    u32 lane = LID % 64, v = x[GID];
    for (u32 d = 1; d < 64; d *= 2) {
        u32 other = (u32)__builtin_amdgcn_ds_bpermute((i32)(4 * (lane - d)), (i32)v);
        if (lane >= d) v += other;
    }
    if (lane == 63) sums[LID / 64] = v;
    sync();
    for (u32 w = 0; w < LID / 64; w++) v += sums[w];
    y[GID] = v;
}
KERNEL local_ballot(u32 *x, u64 *y) {
    u64 odd = __builtin_amdgcn_ballot_w64(x[GID] % 2), big = __builtin_amdgcn_ballot_w64(x[GID] > 1000);
    u32 before = __builtin_amdgcn_mbcnt_hi((u32)(odd >> 32), __builtin_amdgcn_mbcnt_lo((u32)odd, 0));
    y[GID] = (odd & ~big) + before;
}
KERNEL local_first(u32 *x, u32 *y) {
    u32 v = x[GID], r = 0;
    // Each value is handled by all lanes that have it at once.
    for (bool todo = true; todo;) {
        u32 first = __builtin_amdgcn_readfirstlane(v);
        if (v == first) {
            r = first * 2 + (u32)__builtin_popcountl(__builtin_amdgcn_ballot_w64(true));
            todo = false;
        }
    }
    y[GID] = r;
}
KERNEL local_histogram(u8 *x, u32 *y, u32 n) {
    __shared__ u32 bins[4][64];
    for (u32 w = 0; w < 4; w++)
        if (LID < 64) bins[w][LID] = 0;
    sync();
    for (u32 i = LID; i < n; i += SIZE)
        __hip_atomic_fetch_add(&bins[LID / 64][x[i] % 64], 1u, RELAXED, WORKGROUP);
    sync();
    if (LID < 64) y[LID] = bins[0][LID] + bins[1][LID] + bins[2][LID] + bins[3][LID];
}
KERNEL local_stages(u32 *x, u32 *y, u32 steps) {
    // Waves with tasks of their own: two fill one buffer while the others empty the other one.
    __shared__ u32 t[2][128];
    u32 s = 0;
    for (u32 i = 0; i <= steps; i++) {
        if (LID < 128) {
            if (i < steps) t[i % 2][LID] = x[i * 128 + LID] * (i + 1);
        } else if (i > 0) {
            s += t[(i - 1) % 2][LID - 128];
        }
        sync();
    }
    if (LID >= 128) y[LID - 128] = s;
}
KERNEL local_leaves(u32 *x, u32 *y) {
    // Waves end at different times; barriers are of those that are left.
    __shared__ u32 t[256];
    t[LID] = x[LID];
    sync();
    if (LID < 64) {
        y[LID] = t[LID + 64];
        return;
    }
    u32 v = t[LID] + t[LID - 64];
    sync();
    t[LID] = v;
    sync();
    y[LID] = t[LID < 128 ? LID + 64 : LID - 64];
}
KERNEL local_matrix(float *a, float *b, float *c, u32 n) {
    __shared__ float ta[16][17], tb[16][17];
    u32 i = LID % 16, j = LID / 16;
    float s = 0.0f;
    for (u32 k = 0; k < n; k += 16) {
        ta[j][i] = a[j * n + k + i], tb[j][i] = b[(k + j) * 16 + i];
        sync();
#pragma unroll
        for (u32 e = 0; e < 16; e++) s += ta[j][e] * tb[e][i];
        sync();
    }
    c[j * 16 + i] = s;
}
