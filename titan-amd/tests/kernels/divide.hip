// Quotients, remainders and roots.
KERNEL divide_f32(float *a, float *b, float *y) { y[GID] = a[GID] / b[GID]; }
KERNEL divide_f64(double *a, double *b, double *y) { y[GID] = a[GID] / b[GID]; }
KERNEL divide_f16(f16 *a, f16 *b, f16 *y) { y[GID] = a[GID] / b[GID]; }
KERNEL divide_reciprocals(float *a, double *b, float *y, double *z) {
    y[GID] = 1.0f / a[GID];
    z[GID] = 1.0 / b[GID];
}
KERNEL divide_roots(float *a, double *b, float *y, double *z) {
    y[GID] = __builtin_sqrtf(a[GID]);
    z[GID] = __builtin_sqrt(b[GID]);
}
KERNEL divide_signed(i32 *a, i32 *b, i32 *y) {
    i32 p = a[GID], q = b[GID];
    u32 r = (u32)p, s = (u32)q;
    y[4 * GID] = p / q, y[4 * GID + 1] = p % q, y[4 * GID + 2] = (i32)(r / s), y[4 * GID + 3] = (i32)(r % s);
}
KERNEL divide_long(i64 *a, i64 *b, i64 *y) {
    i64 p = a[GID], q = b[GID];
    u64 r = (u64)p, s = (u64)q;
    y[4 * GID] = p / q, y[4 * GID + 1] = p % q, y[4 * GID + 2] = (i64)(r / s), y[4 * GID + 3] = (i64)(r % s);
}
KERNEL divide_short(i16 *a, i16 *b, i16 *y) {
    i16 p = a[GID], q = b[GID];
    y[4 * GID] = p / q, y[4 * GID + 1] = p % q;
    y[4 * GID + 2] = (i16)((u8)p / (u8)(q | 1)), y[4 * GID + 3] = (i16)((u16)p % (u16)(q | 1));
}
KERNEL divide_constants(i32 *a, u64 *b, i32 *y, u64 *z) {
    y[GID] = a[GID] / 7 + a[GID] % 1000 + (i32)((u32)a[GID] / 10u);
    z[GID] = b[GID] / 1000003 + b[GID] % 10;
}
