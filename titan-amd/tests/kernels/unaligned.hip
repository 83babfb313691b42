// Accesses whose addresses are multiples of nothing.
struct __attribute__((packed)) Record {
    u8 a;
    u32 b;
    u16 c;
    u64 d;
};
typedef u16 __attribute__((aligned(1), may_alias)) any16;
typedef u32 __attribute__((aligned(1), may_alias)) any32;
typedef u64 __attribute__((aligned(1), may_alias)) any64;
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float4v __attribute__((aligned(4))) any_float4;
KERNEL unaligned_records(Record *x, u64 *y) {
    Record r = x[GID];
    x[GID].b = r.b + 1, x[GID].d = r.d * 3, x[GID].c = (u16)(r.c ^ 0xFFFF);
    y[GID] = r.a + r.b + r.c + r.d;
}
KERNEL unaligned_stream(u8 *x, u32 *y) { y[GID] = *(any32 *)(x + GID) + *(any16 *)(x + GID + 1); }
KERNEL unaligned_stores(u8 *y, u64 *x) {
    *(any64 *)(y + 11 * GID) = x[GID];
    *(any16 *)(y + 11 * GID + 8) = (u16)(x[GID] >> 7);
    y[11 * GID + 10] = (u8)LID;
}
KERNEL unaligned_local(u8 *x, u64 *y) {
    __shared__ u8 t[64 * 9 + 8];
    for (u32 i = 0; i < 9; i++) t[LID * 9 + i] = x[GID * 9 + i];
    if (LID < 8) t[64 * 9 + LID] = (u8)LID;
    sync();
    *(any32 *)(t + LID * 9 + 2) += 5;
    sync();
    y[GID] = *(any64 *)(t + LID * 9 + 1) ^ *(any32 *)(t + LID * 9 + 5);
}
KERNEL unaligned_private(u8 *x, u64 *y) {
    u8 t[40];
    for (u32 i = 0; i < 40; i++) t[i] = x[GID + i];
    u32 at = x[GID] % 24;
    *(any32 *)(t + at) = 0x01020304;
    y[GID] = *(any64 *)(t + at / 2) + *(any64 *)(t + 24);
}
KERNEL unaligned_vectors(float *x, float *y) { *(any_float4 *)(y + 5 * GID) = *(any_float4 *)(x + 5 * GID + 1) * 2.0f; }
KERNEL unaligned_copies(u8 *x, u8 *y) {
    __builtin_memcpy(y + 23 * GID, x + 23 * GID + 1, 13);
    __builtin_memcpy(y + 23 * GID + 13, x + 23 * GID + 3, 7);
    __builtin_memset(y + 23 * GID + 20, (int)LID, 3);
}
