// Atomic operations on memory and on the local data share.
kernel void counters(global uint *x, global uint *c) {
    uint v = x[GID];
    __scoped_atomic_fetch_add(c, v, RELAXED, DEVICE);
    __scoped_atomic_fetch_sub(c + 1, v, RELAXED, DEVICE);
    __scoped_atomic_fetch_and(c + 2, v | 0xf0u, RELAXED, DEVICE);
    __scoped_atomic_fetch_or(c + 3, v & 0xff00u, RELAXED, DEVICE);
    __scoped_atomic_fetch_xor(c + 4, v, RELAXED, DEVICE);
    __scoped_atomic_fetch_min(c + 5, v, RELAXED, DEVICE);
    __scoped_atomic_fetch_max(c + 6, v, RELAXED, DEVICE);
    __scoped_atomic_fetch_min((global int *)c + 7, (int)v, RELAXED, DEVICE);
    __scoped_atomic_fetch_max((global int *)c + 8, (int)v, RELAXED, DEVICE);
}
kernel void spread(global uint *x, global uint *bins) { __scoped_atomic_fetch_add(&bins[x[GID] % 7], GID, RELAXED, DEVICE); }
kernel void tickets(global uint *c, global uint *y) { y[__scoped_atomic_fetch_add(c, 1u, RELAXED, DEVICE)] = GID + 1; }
kernel void wide_counters(global ulong *x, global ulong *c) {
    uint lane = GID % 3;
    __scoped_atomic_fetch_add(c + lane, x[GID], RELAXED, DEVICE);
    __scoped_atomic_fetch_max((global long *)c + 3 + lane, (long)x[GID], RELAXED, DEVICE);
    __scoped_atomic_fetch_xor(c + 6 + lane, x[GID], RELAXED, DEVICE);
}
kernel void compare_swap(global uint *x, global uint *c) {
    uint old = __scoped_atomic_load_n(c, RELAXED, DEVICE);
    while (!__scoped_atomic_compare_exchange_n(c, &old, old * 3 + x[GID] % 5, 0, RELAXED, RELAXED, DEVICE)) {
    }
    __scoped_atomic_fetch_add(c + 1, 1u, RELAXED, DEVICE);
}
kernel void float_add(global float *x, global float *c) { __builtin_amdgcn_global_atomic_fadd_f32(c + GID % 5, x[GID]); }
kernel void double_add(global double *x, global double *c) { __builtin_amdgcn_global_atomic_fadd_f64(c + GID % 3, x[GID]); }
kernel void half_add(global half2 *x, global half2 *c) { __builtin_amdgcn_global_atomic_fadd_v2f16(c + GID % 5, x[GID]); }
kernel void exchange(global uint *x, global uint *y, global uint *z) {
    z[GID] = __scoped_atomic_exchange_n(&y[GID ^ 1], x[GID], RELAXED, DEVICE);
}
kernel void local_counters(global uint *x, global uint *y) {
    local uint c[8];
    local ulong wide[2];
    if (LID < 8) c[LID] = LID == 4 ? ~0u : LID == 2 ? ~0u : 0;
    if (LID < 2) wide[LID] = 0;
    BARRIER();
    uint v = x[GID];
    __scoped_atomic_fetch_add(&c[0], v, RELAXED, WG);
    __scoped_atomic_fetch_sub(&c[1], v, RELAXED, WG);
    __scoped_atomic_fetch_and(&c[2], v, RELAXED, WG);
    __scoped_atomic_fetch_or(&c[3], v, RELAXED, WG);
    __scoped_atomic_fetch_min(&c[4], v, RELAXED, WG);
    __scoped_atomic_fetch_max(&c[5], v, RELAXED, WG);
    __scoped_atomic_fetch_xor(&c[6], v, RELAXED, WG);
    uint slot = __scoped_atomic_fetch_add(&c[7], 1u, RELAXED, WG);
    __scoped_atomic_fetch_add(&wide[v & 1], (ulong)v * v, RELAXED, WG);
    BARRIER();
    if (LID < 8) y[LID] = c[LID];
    if (LID < 2) y[8 + 2 * LID] = (uint)wide[LID], y[9 + 2 * LID] = (uint)(wide[LID] >> 32);
    if (slot == 0) y[12] = 1;
}
kernel void local_float_add(global float *x, global float *y) {
    local float c[4];
    if (LID < 4) c[LID] = 0.0f;
    BARRIER();
    __builtin_amdgcn_ds_faddf(&c[LID % 4], x[GID], __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP, 0);
    BARRIER();
    if (LID < 4) y[LID] = c[LID];
}
