// Waves of a workgroup exchange data through global memory: no wait stands between a store and the barrier.
KERNEL exchange_reverse(u32 *x, u32 *t) {
    t[GID] = x[GID] * 3;
    sync();
    x[GID] = t[GROUP * SIZE + SIZE - 1 - LID];
}
KERNEL exchange_stencil(float *a, float *b, u32 steps) {
    float *from = a, *to = b;
    for (u32 s = 0; s < steps; s++) {
        float l = from[LID > 0 ? LID - 1 : 0], r = from[LID < SIZE - 1 ? LID + 1 : SIZE - 1];
        to[LID] = (l + 2.0f * from[LID] + r) * 0.25f;
        sync();
        float *old = from;
        from = to, to = old;
    }
}
KERNEL exchange_scan(u32 *x, u32 *t) {
    u32 *from = x, *to = t;
    for (u32 d = 1; d < SIZE; d *= 2) {
        to[LID] = from[LID] + (LID >= d ? from[LID - d] : 0);
        sync();
        u32 *old = from;
        from = to, to = old;
    }
}
KERNEL exchange_transpose(u32 *x, u32 *t, u32 *y) {
    u32 at = GROUP * 256;
    t[at + LID] = x[at + LID];
    sync();
    y[at + LID] = t[at + LID % 16 * 16 + LID / 16];
}
KERNEL exchange_sort(u32 *x) {
    for (u32 k = 2; k <= SIZE; k *= 2)
        for (u32 j = k / 2; j > 0; j /= 2) {
            u32 other = LID ^ j;
            if (other > LID) {
                u32 a = x[LID], b = x[other];
                if ((a > b) == ((LID & k) == 0)) x[LID] = b, x[other] = a;
            }
            sync();
        }
}
KERNEL exchange_overwrite(u32 *x, u32 *y) {
    u32 v = x[LID ^ 64];
    sync();
    x[LID] = LID;
    sync();
    y[LID] = v + x[LID ^ 128];
}
KERNEL exchange_bins(u32 *x, u32 *bins, u32 *y, u32 n) {
    bins[LID] = LID;
    sync();
    for (u32 i = LID; i < n; i += SIZE) add_atomic(&bins[x[i] % 256], 1u);
    sync();
    y[LID] = bins[255 - LID];
}
KERNEL exchange_bytes(u8 *x, u8 *t, u32 *y) {
    t[LID] = (u8)(x[LID] + 1);
    sync();
    if (LID < SIZE / 4) y[LID] = ((u32 *)t)[SIZE / 4 - 1 - LID];
}
