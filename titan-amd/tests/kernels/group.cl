// The local data share, and barriers.
kernel void sum(global float *x, global float *y) {
    local float part[256];
    part[LID] = x[GID];
    BARRIER();
    for (uint s = SIZE / 2; s > 0; s /= 2) {
        if (LID < s) part[LID] += part[LID + s];
        BARRIER();
    }
    if (LID == 0) y[GROUP] = part[0];
}
kernel void scan(global uint *x, global uint *y) {
    local uint part[2][256];
    uint at = 0;
    part[0][LID] = x[GID];
    BARRIER();
    for (uint d = 1; d < SIZE; d *= 2) {
        part[1 - at][LID] = part[at][LID] + (LID >= d ? part[at][LID - d] : 0);
        at = 1 - at;
        BARRIER();
    }
    y[GID] = part[at][LID];
}
kernel void histogram(global uchar *x, global uint *y, uint n) {
    local uint bins[256];
    bins[LID] = 0;
    BARRIER();
    for (uint i = LID; i < n; i += 256) __scoped_atomic_fetch_add(&bins[x[i]], 1u, RELAXED, WG);
    BARRIER();
    y[LID] = bins[LID];
}
kernel void transpose(global float *x, global float *y, uint n) {
    local float tile[16][17];
    uint i = LID % 16, j = LID / 16, bx = GROUP, by = __builtin_amdgcn_workgroup_id_y();
    tile[j][i] = x[(by * 16 + j) * n + bx * 16 + i];
    BARRIER();
    y[(bx * 16 + j) * n + by * 16 + i] = tile[i][j];
}
kernel void matmul(global float *a, global float *b, global float *c, uint n) {
    local float ta[16][16], tb[16][16];
    uint i = LID % 16, j = LID / 16, col = GROUP * 16 + i, row = __builtin_amdgcn_workgroup_id_y() * 16 + j;
    float sum = 0.0f;
    for (uint k = 0; k < n; k += 16) {
        ta[j][i] = a[row * n + k + i];
        tb[j][i] = b[(k + j) * n + col];
        BARRIER();
        for (uint e = 0; e < 16; e++) sum = __builtin_fmaf(ta[j][e], tb[e][i], sum);
        BARRIER();
    }
    c[row * n + col] = sum;
}
kernel void bitonic(global uint *x) {
    local uint part[256];
    part[LID] = x[GID];
    BARRIER();
    for (uint k = 2; k <= 256; k *= 2)
        for (uint j = k / 2; j > 0; j /= 2) {
            uint other = LID ^ j;
            if (other > LID) {
                uint a = part[LID], b = part[other];
                if ((a > b) == ((LID & k) == 0)) part[LID] = b, part[other] = a;
            }
            BARRIER();
        }
    x[GID] = part[LID];
}
kernel void local_bytes(global uchar *x, global uchar *y) {
    local uchar part[128];
    local short wide[128];
    part[LID] = x[GID];
    wide[127 - LID] = (short)(x[GID] * 5);
    BARRIER();
    y[GID] = (uchar)(part[127 - LID] + wide[LID]);
}
kernel void local_wide(global double2 *x, global float4 *y, global double2 *z, global float4 *w) {
    local double2 a[64];
    local float4 b[64];
    a[LID] = x[GID], b[LID] = y[GID];
    BARRIER();
    z[GID] = a[63 - LID] + a[LID ^ 1], w[GID] = b[(LID + 5) & 63] + b[(LID + 37) & 63];
}
kernel void borrowed(global uint *x, global uint *y, local uint *part) {
    part[LID] = x[GID];
    BARRIER();
    y[GID] = part[(LID + 1) % SIZE];
}
