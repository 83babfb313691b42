// Numbers of every size, with constants that instructions hold in fewer bits, and the corners of conversions and comparisons.
KERNEL values_masks(u64 *x, u64 *y) {
    u64 v = x[GID];
    u64 r = (v & 0xFFFFFFFF) * 3 + (v & 0x80000000) + (v | 0xFFFFFFFF80000000) + (v ^ 0x7FFFFFFF);
    r += (v & 0xFFFFFFFFFFFFFFF0) + (v ^ 0x00000001FFFFFFFF) + ((v >> 31) & 0x1FFFF) + (v << 33 & 0xFFFFFFFF00000000);
    y[GID] = r - (v > 0x80000000 ? 0xFFFFFFFF : 0xDEADBEEF) + (v == 0xFFFFFFFF ? 0x123456789ABCDEF : v % 0xFFFFFFFF);
}
// The same for all lanes: scalar arithmetic.
KERNEL values_uniform(u64 v, i64 w, u64 *y) {
    u64 r[12] = {
        (v & 0xFFFFFFFF) * 5, v | 0x80000000, v ^ 0xFFFFFFFF, v + 0xFFFFFFFF, v - 0x80000000, v * 0xFFFFFFFF,
        v > 0xFFFFFFFF ? v : 0x80000000, (u64)(w < -0x80000000l ? w : 7), (u64)(w >> 3 & 0xFFFFFFFF), (u64)(w / 3), v % 1000003, (u64)(w > 0x7FFFFFFF),
    };
    u64 s = 0;
    for (u32 i = 0; i < 12; i++) s = s * 31 + r[i];
    y[GID] = s + GID;
}
KERNEL values_compare(i64 *x, u32 *y) {
    i64 v = x[GID], w = x[GID ^ 1];
    u32 r = (v < -1) | (v <= 0x7FFFFFFF) << 1 | (v > -0x80000000l) << 2 | (v >= 0x100000000) << 3;
    r |= ((u64)v < 0xFFFFFFFF) << 4 | ((u64)v > 0x8000000000000000) << 5 | (v < w) << 6 | ((u64)v < (u64)w) << 7 | (v == w) << 8;
    r |= ((i32)v < (i32)w) << 9 | ((u32)v < (u32)w) << 10 | ((i16)v < (i16)w) << 11 | ((u8)v >= (u8)w) << 12;
    y[GID] = r;
}
KERNEL values_bits(u64 *x, u64 *y) {
    u64 v = x[GID];
    u32 n = (u32)(v % 64);
    u64 r = (v << n | v >> (63 - n) >> 1) ^ __builtin_bswap64(v) ^ __builtin_bitreverse64(v);
    r += (u64)__builtin_popcountl(v) * 3 + (u64)(v ? __builtin_clzl(v) : 64) * 5 + (u64)(v ? __builtin_ctzl(v) : 64) * 7;
    r += (u64)((i64)v >> n) + (u64)__builtin_bswap32((u32)v) + (u64)__builtin_rotateleft32((u32)v, n % 32);
    y[GID] = r;
}
KERNEL values_overflow(u64 *x, u64 *y) {
    u64 a = x[GID], b = x[GID ^ 1], s, d, p;
    i64 t, q;
    u32 m;
    u32 r = __builtin_add_overflow(a, b, &s) | __builtin_sub_overflow(a, b, &d) << 1 | __builtin_mul_overflow(a, b, &p) << 2;
    r |= __builtin_add_overflow((i64)a, (i64)b, &t) << 3 | __builtin_mul_overflow((i64)a, (i64)b, &q) << 4;
    r |= __builtin_mul_overflow((u32)a, (u32)b, &m) << 5;
    y[GID] = s + d * 3 + p * 5 + (u64)t * 7 + (u64)q * 11 + m * 13ul + (u64)r * 0x100000001;
}
KERNEL values_to_wide(float *x, double *z, i64 *y) {
    float v = x[GID];
    double w = z[GID];
    y[4 * GID] = (i64)v, y[4 * GID + 1] = (i64)(u64)(v < 0.0f ? -v : v);
    y[4 * GID + 2] = (i64)w, y[4 * GID + 3] = (i64)(u32)(w < 0.0 ? -w : w);
}
KERNEL values_from_wide(u64 *x, float *y, double *z) {
    u64 v = x[GID];
    y[2 * GID] = (float)v, y[2 * GID + 1] = (float)(i64)v;
    z[2 * GID] = (double)v, z[2 * GID + 1] = (double)(i64)v;
}
KERNEL values_ordered(float *x, double *z, u32 *y) {
    float a = x[GID], b = x[GID ^ 1];
    double c = z[GID], d = z[GID ^ 1];
    u32 r = __builtin_isgreater(a, b) | __builtin_isgreaterequal(a, b) << 1 | __builtin_isless(a, b) << 2 | __builtin_islessequal(a, b) << 3;
    r |= __builtin_islessgreater(a, b) << 4 | __builtin_isunordered(a, b) << 5 | (a == b) << 6 | (a != b) << 7;
    r |= !(a < b) << 8 | !(a <= b) << 9 | !(a > b) << 10 | !(a >= b) << 11;
    r |= (c < d) << 12 | (c >= d) << 13 | (c == d) << 14 | !(c > d) << 15 | __builtin_isunordered(c, d) << 16;
    r |= ((f16)a < (f16)b) << 17 | ((f16)a == (f16)b) << 18 | ((f16)a != (f16)b) << 19;
    y[GID] = r;
}
KERNEL values_extremes(float *x, float *y) {
    float a = x[GID], b = x[GID ^ 1];
    y[4 * GID] = __builtin_fminf(a, b), y[4 * GID + 1] = __builtin_fmaxf(a, b);
    y[4 * GID + 2] = __builtin_copysignf(a, b), y[4 * GID + 3] = -__builtin_fabsf(a);
}
KERNEL values_rounding(float *x, double *z, float *y, double *w) {
    float a = x[GID];
    double b = z[GID];
    y[5 * GID] = __builtin_floorf(a), y[5 * GID + 1] = __builtin_ceilf(a), y[5 * GID + 2] = __builtin_truncf(a);
    y[5 * GID + 3] = __builtin_rintf(a), y[5 * GID + 4] = __builtin_roundf(a);
    w[5 * GID] = __builtin_floor(b), w[5 * GID + 1] = __builtin_ceil(b), w[5 * GID + 2] = __builtin_trunc(b);
    w[5 * GID + 3] = __builtin_rint(b), w[5 * GID + 4] = __builtin_round(b);
}
KERNEL values_pointers(u32 *x, u64 *y, u32 n) {
    u32 *at = x + x[GID] % n, *other = &x[n - 1 - x[GID ^ 1] % n];
    i64 distance = at - other;
    u32 *lower = at < other ? at : other, *none = GID % 3 ? at : nullptr;
    y[GID] = (u64)distance * 1000 + *lower % 100 + (none ? *none % 7 : 500) + ((u64)at - (u64)x) / 4;
}
KERNEL values_narrow(u8 *x, i16 *z, u32 *y) {
    u8 a = x[GID], b = x[GID ^ 1];
    i16 c = z[GID], d = z[GID ^ 1];
    u8 s = a + b, p = a * b, q = a / (b | 1), r = (u8)~a >> 3;
    i8 e = (i8)a, f = (i8)b;
    i8 g = (i8)(e * f), h = (i8)(e / (f | 1)), k = e >> 2;
    i16 l = (i16)(c * d), m = (i16)(c / (d | 1)), n = (i16)(c % (d | 1)), o = c << 3;
    y[2 * GID] = s | p << 8 | q << 16 | r << 24;
    y[2 * GID + 1] = (u32)(g * 3 + h * 5 + k * 7 + l * 11 + m * 13 + n * 17 + o * 19);
}
KERNEL values_powers(float *x, float *y) {
    float v = x[GID];
    y[4 * GID] = __builtin_exp2f(v), y[4 * GID + 1] = __builtin_log2f(v < 0.0f ? -v : v);
    y[4 * GID + 2] = __builtin_amdgcn_rsqf(v < 0.0f ? -v : v), y[4 * GID + 3] = __builtin_amdgcn_rcpf(v);
}
