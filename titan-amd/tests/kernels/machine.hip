// What compilers make of less usual parts of the language and of the machine.
typedef unsigned __int128 u128;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

// Exchanges between lanes by patterns: a Fourier transform's order, rotations, rows.
KERNEL machine_swizzles(u32 *x, u32 *y) {
    i32 v = (i32)x[GID];
    u32 reversed = (u32)__builtin_amdgcn_ds_swizzle(v, 0xE000), partly = (u32)__builtin_amdgcn_ds_swizzle(v, 0xE003);
    u32 left = (u32)__builtin_amdgcn_ds_swizzle(v, 0xC000 | 3 << 5), right = (u32)__builtin_amdgcn_ds_swizzle(v, 0xC400 | 1 << 5 | 1);
    u32 quad = (u32)__builtin_amdgcn_ds_swizzle(v, 0x8000 | 0x39);
    y[GID] = reversed + 3 * partly + 5 * left + 7 * right + 11 * quad;
}
KERNEL machine_rows(u32 *x, u32 *y) {
    i32 v = (i32)x[GID];
    u32 mirror = (u32)__builtin_amdgcn_update_dpp(0, v, 0x140, 0xF, 0xF, true), half = (u32)__builtin_amdgcn_update_dpp(0, v, 0x141, 0xF, 0xF, true);
    u32 turned = (u32)__builtin_amdgcn_update_dpp(0, v, 0x123, 0xF, 0xF, true), third = (u32)__builtin_amdgcn_update_dpp(0, v, 0x153, 0xF, 0xF, true);
    // Lanes that nothing is moved to keep what they had; so do rows that are left out.
    u32 kept = (u32)__builtin_amdgcn_update_dpp(7, v, 0x104, 0xF, 0xF, false), some = (u32)__builtin_amdgcn_update_dpp(9, v, 0x111, 0x5, 0xF, true);
    y[GID] = mirror + 3 * half + 5 * turned + 7 * third + 11 * kept + 13 * some;
}
// More values than registers: some of them are kept in private memory.
extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1024, 1024))) void machine_pressure(u32 *x, u32 *y, u32 n) {
    u32 v[160];
#pragma unroll
    for (u32 i = 0; i < 160; i++) v[i] = x[(GID * 3 + i * 7) % n];
    u32 s = 0;
#pragma unroll
    for (u32 i = 0; i < 160; i++) s = s * 33 + v[159 - i];
    __builtin_amdgcn_s_barrier();
#pragma unroll
    for (u32 i = 0; i < 160; i++) s ^= v[(i * 77) % 160] >> (i % 5);
    y[GID] = s;
}
// All of the local data share.
KERNEL machine_full(u32 *x, u32 *y) {
    __shared__ u32 t[16384];
    for (u32 i = LID; i < 16384; i += SIZE) t[i] = x[i % 512] + i;
    sync();
    u32 s = 0;
    for (u32 i = 0; i < 64; i++) s = s * 5 + t[(LID * 257 + i * 1023) % 16384];
    y[LID] = s;
}
extern __shared__ u32 some[];
KERNEL machine_dynamic(u32 *x, u32 *y) {
    some[SIZE - 1 - LID] = x[GID];
    sync();
    y[GID] = some[LID] + some[LID ^ 1];
}
KERNEL machine_axes(u32 *y) {
    u32 lx = __builtin_amdgcn_workitem_id_x(), ly = __builtin_amdgcn_workitem_id_y(), lz = __builtin_amdgcn_workitem_id_z();
    u32 gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
    u32 sx = __builtin_amdgcn_workgroup_size_x(), sy = __builtin_amdgcn_workgroup_size_y(), sz = __builtin_amdgcn_workgroup_size_z();
    u32 nx = __builtin_amdgcn_grid_size_x(), ny = __builtin_amdgcn_grid_size_y();
    u32 ix = gx * sx + lx, iy = gy * sy + ly, iz = gz * sz + lz;
    y[(iz * ny + iy) * nx + ix] = ix | iy << 8 | iz << 16 | (lx + ly + lz) << 24;
}
// Variables of the code object.
__device__ u32 offsets[4] = {100, 200, 300, 400};
__constant__ u32 weights[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ u32 tally, tickets;
__device__ u32 *const where = &offsets[2];
KERNEL machine_variables(u32 *x, u32 *y) {
    u32 v = weights[x[GID] % 8] + offsets[GROUP % 4] + *where;
    __hip_atomic_fetch_add(&tally, v, RELAXED, AGENT);
    y[1 + GID] = v;
    u32 ticket = __hip_atomic_fetch_add(&tickets, 1u, __ATOMIC_ACQ_REL, AGENT);
    if (ticket == GROUPS * SIZE - 1) y[0] = __hip_atomic_load(&tally, RELAXED, AGENT);
}
KERNEL machine_wide(u64 *x, u64 *y) {
    u128 a = (u128)x[2 * GID] << 64 | x[2 * GID + 1], b = (u128)x[2 * GID + 1] * x[2 * GID];
    u32 by = (u32)(x[2 * GID] % 127);
    u128 r = (a + b) ^ (a >> by) ^ (b << (127 - by));
    if (a < b) r -= a * b;
    y[2 * GID] = (u64)r, y[2 * GID + 1] = (u64)(r >> 64);
}
NOINLINE u64 many(u32 a, u64 b, u8 c, u16 d, float e, double f, u32x4 g, u32 h, u64 i, u32x4 j, u32x4 k, u32x4 l, u32x4 m, u64 n, u32 *o) {
    *o += a;
    return a + b * 3 + c * 5 + d * 7 + (u64)(e * 2.0f) + (u64)(f * 4.0) + g.x + g.w * 11 + h * 13 + i * 17 + j.y + k.z * 19 + l.w * 23 +
           m.x * 29 + m.w * 31 + n * 37;
}
KERNEL machine_arguments(u32 *x, u64 *y) {
    u32 v = x[GID], out = 5;
    u32x4 g = {v, v + 1, v + 2, v + 3};
    u64 r = many(v, (u64)v << 33, (u8)v, (u16)v, (float)(v % 64), (double)(v % 32), g, v ^ 1, (u64)v * v, g + 1, g * 2, g - 3, g ^ 5, ~(u64)v, &out);
    y[GID] = r + out;
}
struct Large {
    u32 words[37];
    u8 tail[3];
};
NOINLINE void fill(Large *s, u32 v) {
    for (u32 i = 0; i < 37; i++) s->words[i] = v + i * i;
    for (u32 i = 0; i < 3; i++) s->tail[i] = (u8)(v >> (8 * i));
}
KERNEL machine_copies(u32 *x, Large *z, u32 *y) {
    __shared__ Large t[32];
    Large own;
    fill(&own, x[GID]);
    t[LID % 32] = own;
    sync();
    Large other = t[(LID + 1) % 32];
    z[GID] = other;
    __builtin_memcpy(own.words, other.words + 5, 81);
    y[GID] = own.words[0] + own.words[20] * 3 + own.words[36] + other.tail[2];
}
KERNEL machine_hints(u32 *x, u32 *y) {
    __builtin_amdgcn_s_setprio(2);
    u32 v = __builtin_nontemporal_load(&x[GID]), w = *(volatile u32 *)&x[GID ^ 1];
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_s_sleep(1);
    *(volatile u32 *)&y[GID] = v;
    __builtin_nontemporal_store(y[GID] + w, &y[GID]);
    __builtin_amdgcn_s_setprio(0);
}
KERNEL machine_scopes(u32 *x, u32 *y) {
    u32 v = __hip_atomic_load(&x[GID], __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);
    __hip_atomic_store(&y[GID], v * 2, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
    u32 w = __hip_atomic_exchange(&y[GID], v, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_SINGLETHREAD);
    __hip_atomic_fetch_and(&x[GID], 0xFFFF, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_WAVEFRONT);
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
    y[GID] += w + __hip_atomic_load(&x[GID], ACQUIRE, AGENT);
}
KERNEL machine_local_floats(float *x, float *y, double *z) {
    __shared__ float least, most, total;
    __shared__ double wide;
    if (LID == 0) least = 1e30f, most = -1e30f, total = 0.0f, wide = 0.0;
    sync();
    __hip_atomic_fetch_min(&least, x[LID], RELAXED, WORKGROUP);
    __hip_atomic_fetch_max(&most, x[LID], RELAXED, WORKGROUP);
    // Small integers, whose sum does not depend on the order.
    __hip_atomic_fetch_add(&total, (float)(LID % 16), RELAXED, WORKGROUP);
    __hip_atomic_fetch_add(&wide, (double)(LID % 8), RELAXED, WORKGROUP);
    sync();
    if (LID == 0) y[0] = least, y[1] = most, y[2] = total, z[0] = wide;
}
KERNEL machine_bytes(u32 *x, u32 *z, u32 *y) {
    u32 a = x[GID], b = z[GID];
    u32 r[8] = {
        __builtin_amdgcn_perm(a, b, 0x07020C04),
        __builtin_amdgcn_alignbyte(a, b, 3),
        __builtin_amdgcn_alignbit(a, b, 13),
        __builtin_amdgcn_sad_u8(a, b, 5),
        __builtin_amdgcn_msad_u8(a, b, 5),
        __builtin_amdgcn_lerp(a, b, 0x01010101),
        __builtin_amdgcn_ubfe(a, 5, 11),
        (u32)__builtin_amdgcn_sbfe((i32)a, 3, 9),
    };
    for (u32 i = 0; i < 8; i++) y[8 * GID + i] = r[i];
}
KERNEL machine_parts(float *x, float *y, i32 *z) {
    float v = x[GID], w = x[GID ^ 1], u = x[GID ^ 2];
    y[4 * GID] = __builtin_amdgcn_fmed3f(v, w, u), y[4 * GID + 1] = __builtin_amdgcn_fractf(v);
    y[4 * GID + 2] = __builtin_amdgcn_frexp_mantf(w), y[4 * GID + 3] = __builtin_ldexpf(u, (i32)(GID % 7) - 3);
    z[2 * GID] = __builtin_amdgcn_frexp_expf(w), z[2 * GID + 1] = __builtin_amdgcn_classf(v, 0x0F8) + 2 * __builtin_amdgcn_classf(w, 0x207);
}
KERNEL machine_clock(u32 *x, u32 *y) {
    u64 before = __builtin_readcyclecounter();
    u32 v = x[GID] * 5;
    y[GID] = v;
    u64 after = __builtin_readcyclecounter();
    y[GID] = v + (after >= before);
}
// A number of turns that waves agree on, with a barrier in each.
KERNEL machine_agreed(u32 *x, u32 *y) {
    __shared__ u32 turns, t[128];
    if (LID == 0) turns = x[0] % 9;
    t[LID] = x[LID];
    sync();
    u32 n = __builtin_amdgcn_readfirstlane(turns);
    for (u32 i = 0; i < n; i++) {
        u32 v = t[(LID + 1 + i) % 128];
        sync();
        t[LID] = v * 3 + LID;
        sync();
    }
    y[LID] = t[LID];
}
