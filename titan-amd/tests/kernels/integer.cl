// Integers of 32 and 64 bits.
kernel void mix(global uint *x, global uint *y) {
    uint h = x[GID];
    h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u, h ^= h >> 16;
    y[GID] = h;
}
kernel void divide_u32(global uint *x, global uint *y, global uint2 *z) { z[GID] = (uint2)(x[GID] / y[GID], x[GID] % y[GID]); }
kernel void divide_i32(global int *x, global int *y, global int *z) {
    z[2 * GID] = x[GID] / y[GID];
    z[2 * GID + 1] = x[GID] % y[GID];
}
kernel void divide_u64(global ulong *x, global ulong *y, global ulong *z) {
    z[2 * GID] = x[GID] / y[GID];
    z[2 * GID + 1] = x[GID] % y[GID];
}
kernel void divide_i64(global long *x, global long *y, global long *z) { z[GID] = x[GID] / y[GID]; }
kernel void by_constants(global uint *x, global uint4 *y) { y[GID] = (uint4)(x[GID] / 7, x[GID] % 10, x[GID] / 641, x[GID] / 16); }
kernel void wide_product(global ulong *x, global ulong *y, global ulong *z) { z[GID] = x[GID] * y[GID] + 3; }
kernel void high_product(global uint *x, global uint *y, global uint *z) {
    z[2 * GID] = (uint)(((ulong)x[GID] * y[GID]) >> 32);
    z[2 * GID + 1] = (uint)(((long)(int)x[GID] * (int)y[GID]) >> 32);
}
kernel void shifts(global uint *x, global uint *s, global uint4 *y) {
    uint v = x[GID], n = s[GID] & 31;
    y[GID] = (uint4)(v << n, v >> n, (uint)((int)v >> n), v << n | v >> ((32 - n) & 31));
}
kernel void shifts_64(global ulong *x, global uint *s, global ulong *y) {
    ulong v = x[GID];
    uint n = s[GID] & 63;
    y[3 * GID] = v << n;
    y[3 * GID + 1] = v >> n;
    y[3 * GID + 2] = (ulong)((long)v >> n);
}
kernel void bits(global uint *x, global uint4 *y) {
    uint v = x[GID];
    y[GID] = (uint4)(__builtin_popcount(v), v ? __builtin_clz(v) : 32, v ? __builtin_ctz(v) : 32, __builtin_bitreverse32(v));
}
kernel void bits_64(global ulong *x, global uint *y) {
    ulong v = x[GID];
    y[3 * GID] = __builtin_popcountl(v);
    y[3 * GID + 1] = v ? __builtin_clzl(v) : 64;
    y[3 * GID + 2] = v ? __builtin_ctzl(v) : 64;
}
kernel void extremes(global int *x, global int *y, global int4 *z) {
    int a = x[GID], b = y[GID];
    z[GID] = (int4)(a < b ? a : b, a > b ? a : b, (int)((uint)a < (uint)b ? a : b), (int)((uint)a > (uint)b ? a : b));
}
kernel void extremes_64(global long *x, global long *y, global long *z) {
    long a = x[GID], b = y[GID];
    z[2 * GID] = a < b ? a : b;
    z[2 * GID + 1] = (ulong)a > (ulong)b ? a : b;
}
kernel void saturating(global int *x, global int *y, global int4 *z) {
    int a = x[GID], b = y[GID];
    z[GID] = (int4)(__builtin_elementwise_add_sat(a, b), __builtin_elementwise_sub_sat(a, b),
                    (int)__builtin_elementwise_add_sat((uint)a, (uint)b), (int)__builtin_elementwise_sub_sat((uint)a, (uint)b));
}
kernel void fields(global uint *x, global uint *y) {
    uint v = x[GID];
    y[4 * GID] = v >> 7 & 0x1ff;
    y[4 * GID + 1] = (uint)((int)(v << 9) >> 20);
    y[4 * GID + 2] = (v & 0xffff00ff) | (v >> 16 & 0xff00);
    y[4 * GID + 3] = __builtin_bswap32(v);
}
kernel void collatz(global uint *x, global uint *y) {
    uint v = x[GID], n = 0;
    while (v != 1) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        n++;
    }
    y[GID] = n;
}
kernel void gcd(global uint *x, global uint *y, global uint *z) {
    uint a = x[GID], b = y[GID];
    while (b) {
        uint r = a % b;
        a = b, b = r;
    }
    z[GID] = a;
}
kernel void choose(global uint *x, global uint *y) {
    uint v = x[GID], r;
    switch (v % 9) {
    case 0: r = v * 3; break;
    case 1: r = v ^ 0x5555; break;
    case 2: r = v + 17; break;
    case 3: r = v >> 3; break;
    case 4: r = __builtin_popcount(v); break;
    case 5: r = v * v; break;
    case 7: r = ~v; break;
    default: r = 99;
    }
    y[GID] = r;
}
kernel void nested(global uint *x, global uint *y, uint limit) {
    uint v = x[GID], sum = 0;
    for (uint i = 0; i < (v & 15); i++) {
        if ((v >> i) % 3 == 0) continue;
        for (uint j = i; j < 8; j++) {
            sum += i * j;
            if (sum > limit) goto out;
        }
    }
out:
    y[GID] = sum;
}
kernel void search(global uint *sorted, uint n, global uint *x, global uint *y) {
    uint low = 0, high = n;
    while (low < high) {
        uint mid = (low + high) / 2;
        if (sorted[mid] < x[GID]) low = mid + 1;
        else high = mid;
    }
    y[GID] = low;
}
