// Kernels with one mistake each. What they read wrongly is volatile where a compiler would use the mistake.
KERNEL bad_no_barrier(u32 *x, u32 *y) {
    __shared__ u32 t[256];
    t[LID] = x[GID];
    y[GID] = t[LID ^ 64];
}
KERNEL bad_reduce(u32 *x, u32 *y) {
    __shared__ u32 t[256];
    t[LID] = x[GID];
    sync();
    for (u32 n = 128; n > 0; n /= 2)
        if (LID < n) t[LID] += t[LID + n];
    if (LID == 0) y[GROUP] = t[0];
}
KERNEL bad_overwrite(u32 *x, u32 *y) {
    __shared__ u32 t[256];
    u32 s = 0;
    for (u32 i = 0; i < 3; i++) {
        t[LID] = x[GID] + i;
        sync();
        s += t[255 - LID];
    }
    y[GID] = s;
}
KERNEL bad_mixed(u32 *x, u32 *y) {
    // An atomic operation does not order the plain load of another wave.
    __shared__ u32 sum;
    if (LID == 0) sum = 0;
    sync();
    __hip_atomic_fetch_add(&sum, x[GID], RELAXED, WORKGROUP);
    y[GID] = *(volatile u32 *)&sum;
}
KERNEL bad_lds_unwritten(u32 *x, u32 *y) {
    __shared__ volatile u32 t[256];
    if (LID % 2) t[LID] = x[GID];
    sync();
    y[GID] = t[LID ^ 1] | 1;
}
KERNEL bad_lds_byte(u32 *x, u32 *y) {
    __shared__ volatile u8 t[1024];
    for (u32 i = 0; i < 3; i++) t[LID * 4 + i] = (u8)(x[GID] >> 8 * i);
    sync();
    y[GID] = *(volatile u32 *)&t[LID * 4];
}
KERNEL bad_private_unwritten(u32 *x, u32 *y) {
    volatile u32 t[8];
    for (u32 i = 0; i < 8; i++)
        if (i != 5) t[i] = x[GID] + i;
    y[GID] = t[x[GID] % 8];
}
struct Half {
    u16 value;
    // Two bytes of padding.
    u32 more;
};
KERNEL bad_padding(u32 *x, u32 *y) {
    volatile Half h;
    h.value = (u16)x[GID], h.more = x[GID];
    y[GID] = *(volatile u32 *)&h;
}
KERNEL bad_branch(u32 *x, u32 *y) {
    volatile u32 own[2];
    own[0] = 1;
    u32 r = 3;
    if (own[x[GID] % 2] & 4) r = x[GID] * 5;
    y[GID] = r;
}
KERNEL bad_address(u32 *x, u32 *y) {
    volatile u32 own[2];
    own[0] = 0;
    y[GID] = x[own[x[GID] % 2] & 7];
}
KERNEL bad_memory_unwritten(u32 *x, u32 *y, u32 *never) { y[GID] = x[GID] + never[GID]; }
KERNEL bad_load(u32 *x, u32 *y) { y[GID] = x[GID + 1]; }
KERNEL bad_store(u32 *x, u32 *y) { y[GID * 2] = x[GID]; }
KERNEL bad_before(u32 *x, u32 *y) { y[GID] = (x - 1)[GID]; }
KERNEL bad_null(u32 *x, u32 *y, u32 *null) { null[LID] = x[GID]; }
KERNEL bad_freed(u32 *x, u32 *y, u32 *freed) { y[GID] = x[GID] + freed[GID]; }
KERNEL bad_lds_bounds(u32 *x, u32 *y) {
    __shared__ volatile u32 t[256];
    t[LID + x[GID] % 2 * 256] = 1;
    y[GID] = 1;
}
KERNEL bad_atomic_alignment(u32 *x, u32 *y) { add_atomic((u32 *)((u8 *)y + 4 * LID + 2), x[GID]); }
__device__ const u32 constants[4] = {1, 2, 3, 4};
KERNEL bad_constant(u32 *x, u32 *y) { *(volatile u32 *)&constants[x[GID] % 4] = 7; }
NOINLINE void helper(volatile u32 *p, u32 n) {
    for (u32 i = 0; i <= n; i++) p[i] = i;
}
KERNEL bad_called(u32 *x, u32 *y) {
    if (LID == 0) helper(y, 256);
}
NOINLINE u32 depth(u32 n, volatile u32 *p) {
    volatile u32 own[16];
    own[n % 16] = n;
    return n == 0 ? *p : depth(n - 1, &own[n % 16]) + own[n % 16];
}
KERNEL bad_recursion(u32 *x, u32 *y) { y[GID] = depth(x[GID] % 2 + 1000, x); }
KERNEL bad_trap(u32 *x, u32 *y) {
    y[GID] = 1;
    if (x[GID] == 7) __builtin_trap();
}
KERNEL bad_endless(u32 *x, volatile u32 *y) {
    y[GID] = 0;
    while (y[GID] == 0) {
    }
}
