// Structures: padding that nobody writes, fields of bits, unions.
struct Padded {
    u8 a;
    u32 b;
    u16 c;
};
NOINLINE Padded made(u32 x) {
    Padded p;
    p.a = (u8)x, p.b = x * 3, p.c = (u16)(x >> 1);
    return p;
}
KERNEL structs_padding(u32 *x, Padded *t, u32 *y) {
    Padded p = made(x[GID]);
    t[GID] = p;
    sync();
    Padded q = t[GROUP * SIZE + SIZE - 1 - LID];
    t[GID].b += 1;
    Padded copies[3] = {q, t[GID], p};
    Padded &r = copies[x[GID] % 3];
    y[GID] = r.a + r.b + r.c;
}
KERNEL structs_padding_local(u32 *x, u32 *y) {
    __shared__ Padded t[64];
    t[LID] = made(x[GID]);
    sync();
    Padded p = t[LID ^ 1], q = t[LID];
    if (p.b > q.b) {
        Padded old = p;
        p = q, q = old;
    }
    y[2 * GID] = p.a + p.b + p.c, y[2 * GID + 1] = q.a + q.b + q.c;
}
struct Bits {
    u32 a : 3;
    u32 b : 7;
    i32 c : 5;
    u32 d : 17;
    u32 e : 9;
};
NOINLINE void fill(Bits *b, u32 x) {
    b->e = x >> 3;
    b->a = x;
    b->d = x * 77;
    b->c = (i32)x - 8;
    b->b = x + 1;
}
#define FIELDS(s) ((s).a + (s).b * 8 + (u32)(s).c * 1024 + (s).d * 5 + (s).e * 3)
KERNEL structs_bits(u32 *x, Bits *t, u32 *y) {
    fill(&t[GID], x[GID]);
    t[GID].d += 1;
    sync();
    Bits b = t[GROUP * SIZE + SIZE - 1 - LID];
    y[GID] = FIELDS(b);
}
KERNEL structs_bits_local(u32 *x, u32 *y) {
    __shared__ Bits t[64];
    fill(&t[LID], x[GID]);
    sync();
    Bits b = t[63 - LID];
    b.c -= 1;
    y[GID] = FIELDS(b);
}
KERNEL structs_bits_private(u32 *x, u32 *y) {
    Bits t[4];
    for (u32 i = 0; i < 4; i++) fill(&t[i], x[GID] + i);
    Bits &b = t[x[GID] % 4];
    b.b ^= 5;
    y[GID] = FIELDS(b);
}
union Any {
    float f;
    u32 u;
    u8 b[4];
    u16 h[2];
};
KERNEL structs_unions(float *x, u32 *y) {
    Any a;
    a.f = x[GID];
    a.b[3] ^= 0x80;
    Any c;
    // The upper half is written where the lower one is read only.
    c.h[0] = a.h[1];
    u32 low = c.b[0] | c.b[1] << 8;
    y[GID] = a.u + low;
}
struct Triple {
    float x, y, z;
};
struct Body {
    Triple at, speed;
    u8 alive;
};
KERNEL structs_nested(Body *bodies, float *y, u32 n) {
    float s = 0.0f;
    for (u32 i = 0; i < n; i++) {
        const Body &b = bodies[(GID + i) % n];
        if (b.alive) s += b.at.x * 2.0f + b.speed.z - b.at.y;
    }
    y[GID] = s;
}
KERNEL structs_flags(u32 *x, bool *t, u32 *y) {
    bool a = x[GID] & 1, b = x[GID] > 100, own[4];
    t[GID] = a != b;
    for (u32 i = 0; i < 4; i++) own[i] = x[GID] >> i & 1;
    sync();
    bool c = t[GROUP * SIZE + (LID + 1) % SIZE];
    y[GID] = (a && !c) + 2 * (b || c) + 4 * own[x[GID] % 4];
}
