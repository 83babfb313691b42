// Matrix products: A is m by k, B is n by k (its columns are rows in memory), D is m by n; one wave.
#define L ((int)LID)
kernel void mfma_f16_16(global half *a, global half *b, global float *d) {
    half4 x = *(global half4 *)(a + L % 16 * 16 + L / 16 * 4), y = *(global half4 *)(b + L % 16 * 16 + L / 16 * 4);
    float4 r = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, (float4)0.0f, 0, 0, 0);
    for (int i = 0; i < 4; i++) d[(L / 16 * 4 + i) * 16 + L % 16] = r[i];
}
kernel void mfma_f16_32(global half *a, global half *b, global float *d) {
    float16v r = 0.0f;
    for (int k = 0; k < 32; k += 8) {
        half4 x = *(global half4 *)(a + L % 32 * 32 + k + L / 32 * 4), y = *(global half4 *)(b + L % 32 * 32 + k + L / 32 * 4);
        r = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, r, 0, 0, 0);
    }
    for (int i = 0; i < 16; i++) d[(i / 4 * 8 + L / 32 * 4 + i % 4) * 32 + L % 32] = r[i];
}
kernel void mfma_bf16_16(global short *a, global short *b, global float *d) {
    short4 x = *(global short4 *)(a + L % 16 * 16 + L / 16 * 4), y = *(global short4 *)(b + L % 16 * 16 + L / 16 * 4);
    float4 r = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, (float4)0.0f, 0, 0, 0);
    for (int i = 0; i < 4; i++) d[(L / 16 * 4 + i) * 16 + L % 16] = r[i];
}
kernel void mfma_bf16_32(global short *a, global short *b, global float *d) {
    short4 x = *(global short4 *)(a + L % 32 * 8 + L / 32 * 4), y = *(global short4 *)(b + L % 32 * 8 + L / 32 * 4);
    float16v r = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x, y, (float16v)0.0f, 0, 0, 0);
    for (int i = 0; i < 16; i++) d[(i / 4 * 8 + L / 32 * 4 + i % 4) * 32 + L % 32] = r[i];
}
kernel void mfma_i8_16(global long *a, global long *b, global int *d) {
    int4 r = __builtin_amdgcn_mfma_i32_16x16x32_i8(a[L % 16 * 4 + L / 16], b[L % 16 * 4 + L / 16], (int4)0, 0, 0, 0);
    for (int i = 0; i < 4; i++) d[(L / 16 * 4 + i) * 16 + L % 16] = r[i];
}
kernel void mfma_fp8_16(global long *a, global long *b, global float *d) {
    float4 r = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a[L % 16 * 4 + L / 16], b[L % 16 * 4 + L / 16], (float4)0.0f, 0, 0, 0);
    for (int i = 0; i < 4; i++) d[(L / 16 * 4 + i) * 16 + L % 16] = r[i];
}
kernel void mfma_f32_32(global float *a, global float *b, global float *d) {
    float16v r = 0.0f;
    for (int k = 0; k < 4; k += 2)
        r = __builtin_amdgcn_mfma_f32_32x32x2f32(a[L % 32 * 4 + k + L / 32], b[L % 32 * 4 + k + L / 32], r, 0, 0, 0);
    for (int i = 0; i < 16; i++) d[(i / 4 * 8 + L / 32 * 4 + i % 4) * 32 + L % 32] = r[i];
}
kernel void mfma_f64_16(global double *a, global double *b, global double *d) {
    double4 r = __builtin_amdgcn_mfma_f64_16x16x4f64(a[L % 16 * 4 + L / 16], b[L % 16 * 4 + L / 16], (double4)0.0, 0, 0, 0);
    for (int i = 0; i < 4; i++) d[(i * 4 + L / 16) * 16 + L % 16] = r[i];
}
