// C without an environment: kernels whose pointers are generic, so that every access is by generic addresses.
typedef unsigned int u32;
typedef unsigned long u64;
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"))) void
#define LID __builtin_amdgcn_workitem_id_x()
#define GID (__builtin_amdgcn_workgroup_id_x() * 64 + LID)
static __attribute__((address_space(3), loader_uninitialized)) u32 shared[64];
KERNEL plain_sum(u32 *x, u32 *y, u32 n) {
    u32 s = 0;
    for (u32 i = 0; i < n; i++) s += x[i * 64 + LID];
    y[LID] = s;
}
KERNEL plain_chain(u32 *x, u32 *y, u32 steps) {
    u32 at = GID;
    for (u32 i = 0; i < steps; i++) at = x[at];
    y[GID] = at;
}
KERNEL plain_update(u64 *x) {
    // Loads and stores of one address follow each other.
    for (u32 i = 0; i < 5; i++) {
        x[GID] += i;
        x[GID] = x[GID] * 3 ^ x[GID] >> 7;
    }
}
KERNEL plain_shared(u32 *x, u32 *y) {
    shared[LID] = x[GID];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    u32 *p = (u32 *)&shared[63 - LID];
    u32 *q = LID % 2 ? p : &x[GID];
    *q += 1;
    y[GID] = *q * 2 + *p;
}
