// One element for each work item.
kernel void copy(global uint *x, global uint *y) { y[GID] = x[GID]; }
kernel void fill(global uint *y, uint v) { y[GID] = v; }
kernel void saxpy(global float *x, global float *y, float a) { y[GID] = __builtin_fmaf(a, x[GID], y[GID]); }
kernel void add4(global float4 *x, global float4 *y, global float4 *z) { z[GID] = x[GID] + y[GID]; }
kernel void tail(global float *x, global float *y, uint n) {
    if (GID < n) y[GID] = x[GID] * 2.0f - 1.0f;
}
kernel void relu(global float *x, global float *y) { y[GID] = __builtin_fmaxf(x[GID], 0.0f); }
kernel void clamped(global float *x, global float *y) {
    y[GID] = __builtin_fminf(__builtin_fmaxf(x[GID], -1.0f), 1.0f);
}
kernel void signs(global float *x, global float *y) {
    y[GID] = __builtin_copysignf(__builtin_fabsf(x[GID]) + 1.0f, -x[GID]);
}
kernel void rounding(global float *x, global float4 *y) {
    float v = x[GID];
    y[GID] = (float4)(__builtin_floorf(v), __builtin_ceilf(v), __builtin_truncf(v), __builtin_rintf(v));
}
kernel void quotient(global float *x, global float *y, global float *z) { z[GID] = x[GID] / y[GID]; }
kernel void root(global float *x, global float *y) { y[GID] = __builtin_sqrtf(x[GID]); }
kernel void sigmoid(global float *x, global float *y) {
    y[GID] = __builtin_amdgcn_rcpf(1.0f + __builtin_amdgcn_exp2f(-1.442695041f * x[GID]));
}
kernel void compare(global float *x, global float *y, global uint *z) {
    float a = x[GID], b = y[GID];
    z[GID] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5 |
             __builtin_isunordered(a, b) << 6 | (uint)__builtin_isinf(a) << 7;
}
kernel void to_int(global float *x, global int *y, global uint *z) {
    y[GID] = (int)x[GID];
    z[GID] = (uint)__builtin_fabsf(x[GID]);
}
kernel void to_float(global int *x, global float *y, global float *z) {
    y[GID] = (float)x[GID];
    z[GID] = (float)(uint)x[GID];
}
kernel void long_to_float(global long *x, global float *y, global double *z) {
    y[GID] = (float)x[GID];
    z[GID] = (double)x[GID];
}
kernel void scale_exponent(global float *x, global int *e, global float *y) { y[GID] = __builtin_ldexpf(x[GID], e[GID]); }
kernel void polynomial(global float *x, global float *y) {
    float v = x[GID], r = 0.125f;
    for (int i = 0; i < 6; i++) r = __builtin_fmaf(r, v, (float)i * 0.5f);
    y[GID] = r;
}
kernel void grid_2d(global uint *y, uint width) {
    uint i = __builtin_amdgcn_workgroup_id_x() * (uint)__builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
    uint j = __builtin_amdgcn_workgroup_id_y() * (uint)__builtin_amdgcn_workgroup_size_y() + __builtin_amdgcn_workitem_id_y();
    uint k = __builtin_amdgcn_workgroup_id_z() * (uint)__builtin_amdgcn_workgroup_size_z() + __builtin_amdgcn_workitem_id_z();
    y[(k * 8 + j) * width + i] = i * 10000 + j * 100 + k;
}
