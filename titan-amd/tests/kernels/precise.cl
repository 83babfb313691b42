// Numbers of 64 and of 16 bits.
kernel void double_ops(global double *x, global double *y, global double *z) {
    double a = x[GID], b = y[GID];
    z[6 * GID] = a + b, z[6 * GID + 1] = a * b, z[6 * GID + 2] = __builtin_fma(a, b, a), z[6 * GID + 3] = __builtin_fmin(a, b);
    z[6 * GID + 4] = __builtin_floor(a), z[6 * GID + 5] = __builtin_rint(b);
}
kernel void double_quotient(global double *x, global double *y, global double *z) { z[GID] = x[GID] / y[GID]; }
kernel void double_root(global double *x, global double *y) { y[GID] = __builtin_sqrt(x[GID]); }
kernel void double_convert(global double *x, global float *f, global int *i, global long *l) {
    f[GID] = (float)x[GID], i[GID] = (int)x[GID], l[GID] = (long)(x[GID] * 1e6);
}
kernel void half_ops(global half *x, global half *y, global half *z) {
    half a = x[GID], b = y[GID];
    z[5 * GID] = a + b, z[5 * GID + 1] = a * b, z[5 * GID + 2] = a - b, z[5 * GID + 3] = a < b ? a : b;
    z[5 * GID + 4] = __builtin_fmaf16(a, b, a);
}
kernel void half_pairs(global half2 *x, global half2 *y, global half2 *z) {
    half2 a = x[GID], b = y[GID];
    z[3 * GID] = a + b, z[3 * GID + 1] = a * b, z[3 * GID + 2] = __builtin_elementwise_max(a, -b);
}
kernel void half_quotient(global half *x, global half *y, global half *z) { z[GID] = x[GID] / y[GID]; }
kernel void half_convert(global half *x, global float *y, global half *z) {
    y[GID] = (float)x[GID] * 3.0f;
    z[GID] = (half)((float)x[GID] * 1.00390625f);
}
kernel void mixed(global half *x, global half *y, global float *z) {
    float sum = 0.0f;
    for (int i = 0; i < 8; i++) sum = __builtin_fmaf((float)x[GID * 8 + i], (float)y[GID * 8 + i], sum);
    z[GID] = sum;
}
kernel void short_pairs(global short2 *x, global short2 *y, global short2 *z) {
    short2 a = x[GID], b = y[GID];
    z[4 * GID] = a + b, z[4 * GID + 1] = a * b, z[4 * GID + 2] = __builtin_elementwise_min(a, b), z[4 * GID + 3] = a >> (b & (short2)15);
}
kernel void dot_bytes(global uint *x, global uint *y, global int *z) {
    z[GID] = __builtin_amdgcn_sdot4((int)x[GID], (int)y[GID], 1000, 0);
}
kernel void dot_halves(global half2 *x, global half2 *y, global float *z) {
    z[GID] = __builtin_amdgcn_fdot2(x[GID], y[GID], 1.0f, 0);
}
kernel void packed_floats(global float2 *x, global float2 *y, global float2 *z) { z[GID] = __builtin_elementwise_fma(x[GID], y[GID], x[GID]) + y[GID]; }
