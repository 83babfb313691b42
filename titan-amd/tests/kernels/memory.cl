// Bytes, shorts, structs, tables, private arrays.
kernel void bytes(global uchar *x, global uchar *y) { y[GID] = (uchar)(x[GID] * 3 + 1); }
kernel void signed_bytes(global char *x, global int *y) { y[GID] = x[GID] * 2; }
kernel void shorts(global short *x, global short *y) { y[GID] = (short)(x[GID] - 1000); }
kernel void unsigned_shorts(global ushort *x, global uint *y) { y[GID] = x[GID] * 65537u; }
kernel void pixels(global uchar4 *x, global uchar4 *y) {
    uchar4 p = x[GID];
    uint grey = (p.x * 77u + p.y * 151u + p.z * 28u) >> 8;
    y[GID] = (uchar4)(grey, grey, grey, p.w);
}
typedef struct {
    uint id;
    float weight;
    ulong tag;
    short parts[4];
} Item;
kernel void structs(global Item *x, global Item *y) {
    Item a = x[GID];
    a.id += a.parts[1], a.weight *= 0.5f, a.tag ^= a.id, a.parts[3] = (short)(a.parts[0] + a.parts[2]);
    y[GID] = a;
}
typedef struct {
    float scale;
    int shift;
    uchar mode;
} Setting;
kernel void by_value(global float *x, global float *y, Setting s, uchar flag) {
    float v = x[GID] * s.scale + (float)s.shift;
    y[GID] = s.mode == 3 && flag ? v : -v;
}
kernel void triples(global float *x, global float *y) {
    float a = x[3 * GID], b = x[3 * GID + 1], c = x[3 * GID + 2];
    y[3 * GID] = c, y[3 * GID + 1] = a, y[3 * GID + 2] = b;
}
kernel void gather(global uint *index, global float *x, global float *y) { y[GID] = x[index[GID]]; }
kernel void scatter(global uint *index, global float *x, global float *y) { y[index[GID]] = x[GID]; }
kernel void stencil(global float *x, global float *y, int n) {
    int i = (int)GID;
    float l = i > 0 ? x[i - 1] : 0.0f, r = i + 1 < n ? x[i + 1] : 0.0f;
    y[i] = l * 0.25f + x[i] * 0.5f + r * 0.25f;
}
constant uint TABLE[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
kernel void table(global uint *x, global uint *y) { y[GID] = TABLE[x[GID] & 15] * x[GID]; }
kernel void private_array(global uint *x, global uint *y) {
    uint stack[24];
    uint v = x[GID];
    for (uint i = 0; i < 24; i++) stack[(i * 7 + v) % 24] = i * v;
    uint sum = 0;
    for (uint i = 0; i < 24; i++) sum = sum * 31 + stack[(v >> (i & 7)) % 24];
    y[GID] = sum;
}
kernel void strided(global uint *x, global uint *y, uint n, uint stride) {
    uint sum = 0;
    for (uint i = GID; i < n; i += stride) sum += x[i];
    y[GID] = sum;
}
kernel void far(global uint *x, global uint *y, long offset) { y[GID] = x[(long)GID + offset]; }
kernel void uniform_loads(constant uint *s, global uint *y) {
    uint sum = 0;
    for (uint i = 0; i < 20; i++) sum += s[i] * (i + 1);
    y[GID] = sum + s[GROUP];
}
