// Numbers of 8 and 16 bits, packed in registers.
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
typedef i16 i16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));
typedef u8 u8x4 __attribute__((ext_vector_type(4)));
typedef f16 f16x4 __attribute__((ext_vector_type(4)));
KERNEL small_fp8(float *x, u32 *y) {
    // The old register is undefined: each conversion writes a half of it, or a byte.
    i32 v = __builtin_amdgcn_cvt_pk_fp8_f32(x[4 * GID], x[4 * GID + 1], 0, false);
    v = __builtin_amdgcn_cvt_pk_bf8_f32(x[4 * GID + 2], x[4 * GID + 3], v, true);
    y[2 * GID] = (u32)v;
    i32 w = __builtin_amdgcn_cvt_sr_fp8_f32(x[4 * GID], 0, 0, 0);
    w = __builtin_amdgcn_cvt_sr_fp8_f32(x[4 * GID + 1], 0, w, 1);
    w = __builtin_amdgcn_cvt_sr_bf8_f32(x[4 * GID + 2], 0, w, 2);
    w = __builtin_amdgcn_cvt_sr_bf8_f32(x[4 * GID + 3], 0, w, 3);
    y[2 * GID + 1] = (u32)w;
}
KERNEL small_from_fp8(u32 *x, float *y) {
    i32 v = (i32)x[GID];
    y[4 * GID] = __builtin_amdgcn_cvt_f32_fp8(v, 0), y[4 * GID + 1] = __builtin_amdgcn_cvt_f32_fp8(v, 2);
    y[4 * GID + 2] = __builtin_amdgcn_cvt_f32_bf8(v, 1), y[4 * GID + 3] = __builtin_amdgcn_cvt_f32_bf8(v, 3);
}
KERNEL small_halves(f16x2 *x, f16x2 *y, f16x2 *z) {
    f16x2 a = x[GID], b = y[GID];
    f16x2 s = a * b + a;
    if (LID % 2) s.y = b.x;
    z[GID] = s - a.yx;
}
KERNEL small_mixed(f16 *x, float *y, f16 *z) {
    float a = (float)x[GID] * y[GID] + (float)x[GID ^ 1];
    z[2 * GID] = (f16)a, z[2 * GID + 1] = (f16)(a * 0.5f);
}
NOINLINE u16 to_bf16(float x) {
    u32 b = __builtin_bit_cast(u32, x);
    return (u16)((b + 0x7FFF + (b >> 16 & 1)) >> 16);
}
KERNEL small_bf16(float *x, u32 *y) { y[GID] = to_bf16(x[2 * GID]) | (u32)to_bf16(x[2 * GID + 1]) << 16; }
KERNEL small_dots(u32 *x, u32 *y, i32 *z) {
    i32 a = (i32)x[GID], b = (i32)y[GID];
    z[GID] = __builtin_amdgcn_sdot4(a, b, __builtin_amdgcn_sdot8(a, b, 7, false), false);
}
KERNEL small_shorts(i16x2 *x, i16x2 *y, i16x2 *z) {
    i16x2 a = x[GID], b = y[GID];
    i16x2 m = a > b ? a : b;
    z[GID] = (m + b * (i16)3) - (a >> (i16)2);
}
KERNEL small_bytes(u8x4 *x, u8x4 *y, u8x4 *z) {
    u8x4 a = x[GID], b = y[GID];
    u8x4 s = (a + b) ^ (a & b.wzyx);
    s.y = a.w;
    z[GID] = s << (u8)1;
}
KERNEL small_shuffle(u32 *x, u32 *y, u32 *z) {
    u32 a = x[GID], b = y[GID];
    z[4 * GID] = __builtin_amdgcn_perm(a, b, 0x06040200), z[4 * GID + 1] = __builtin_amdgcn_alignbyte(a, b, 3);
    z[4 * GID + 2] = __builtin_bswap32(a) + (a << 13 | b >> 19);
    z[4 * GID + 3] = (u32)__builtin_popcount(a & b) + (u32)__builtin_clz(a | 1) + __builtin_bitreverse32(b);
}
// Arithmetic of 16 bits in registers of 32, whose upper halves are whatever they are.
KERNEL small_wrap(u16 *x, u16 *y, u32 *z) {
    u16 a = x[GID], b = y[GID];
    u16 s = (u16)(a + b), p = (u16)(a * b), d = (u16)(a - b), h = (u16)(s >> 3);
    u8 c = (u8)(a ^ b), e = (u8)(c + 200);
    z[GID] = s + p * 3u + d * 5u + h * 7u + c * 11u + e * 13u + (s < d);
}
