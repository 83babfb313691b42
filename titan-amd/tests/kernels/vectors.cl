// Vectors whose elements are chosen when the kernel runs: by indexed registers, or in private memory.
typedef uint uint8v __attribute__((ext_vector_type(8)));
typedef uint uint16v __attribute__((ext_vector_type(16)));
typedef ulong ulong4v __attribute__((ext_vector_type(4)));
typedef ushort ushort8v __attribute__((ext_vector_type(8)));
kernel void vectors_extract(global uint8v *x, global uint *y, uint at) { y[GID] = x[GID][at % 8] + x[GID][(at + 3) % 8]; }
kernel void vectors_insert(global uint *x, global uint8v *y, uint at) {
    uint8v v = (uint8v)(7);
    v[at % 8] = x[GID], v[(at + 5) % 8] += 1;
    y[GID] = v;
}
kernel void vectors_own_index(global uint16v *x, global uint *y) {
    uint16v v = x[GID];
    uint at = v[0] % 16;
    v[at] += 100;
    y[GID] = v[(at + 1) % 16] + v[at] * 3;
}
kernel void vectors_loop(global uint16v *x, global uint *y) {
    uint16v v = x[GID];
    uint s = 0;
    for (uint i = 0; i < 16; i++) {
        v[i] = v[(i * 7 + 1) % 16] + i;
        s = s * 3 + v[i];
    }
    y[GID] = s;
}
kernel void vectors_wide(global ulong4v *x, global ulong *y, uint at) {
    ulong4v v = x[GID];
    v[at % 4] = v[LID % 4] + 1;
    y[GID] = v[(at + LID) % 4];
}
kernel void vectors_narrow(global ushort8v *x, global ushort *y, uint at) {
    ushort8v v = x[GID];
    v[at % 8] = v[x[GID][1] % 8];
    y[GID] = (ushort)(v[(at + 1) % 8] + v[LID % 8]);
}
kernel void vectors_uniform(global uint *x, constant uint *c, uint at) {
    uint8v v = (uint8v)(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]);
    v[at % 8] = v[(at + 1) % 8] + 5;
    x[GID] = v[(at + c[0]) % 8] + v[at % 8];
}
kernel void vectors_swizzle(global float4 *x, global float4 *y) {
    float4 v = x[GID];
    v.xz = v.wy;
    float3 t = v.zyx * 2.0f;
    y[GID] = (float4)(t, v.w);
}
