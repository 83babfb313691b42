// Generic pointers: into global memory, the local data share and private memory, chosen when the kernel runs.
NOINLINE u32 take(u32 *p) {
    u32 v = *p;
    *p = v + 100;
    return v;
}
NOINLINE void exchange(u32 *a, u32 *b) {
    u32 t = *a;
    *a = *b;
    *b = t;
}
NOINLINE u32 total(const u32 *p, u32 n) {
    u32 s = 0;
    for (u32 i = 0; i < n; i++) s += p[i];
    return s;
}
NOINLINE void copy(u8 *to, const u8 *from, u32 n) {
    for (u32 i = 0; i < n; i++) to[i] = from[i];
}
KERNEL generic_pick(u32 *x) {
    __shared__ u32 t[256];
    t[LID] = x[GID] * 2;
    u32 *p = LID % 2 ? &t[LID] : &x[GID];
    *p += 5;
    x[GID] = *p + t[LID];
}
KERNEL generic_three(u32 *x, u32 *y) {
    __shared__ u32 t[128];
    u32 own[2] = {x[GID] + 1, x[GID] + 2};
    t[LID] = x[GID] + 3;
    u32 *p = LID % 3 == 0 ? &x[GID] : LID % 3 == 1 ? &t[LID] : &own[LID % 2];
    u32 first = take(p), second = take(p);
    y[GID] = first * 1000 + second + x[GID] + t[LID] + own[0] + own[1];
}
KERNEL generic_swap(u32 *x) {
    __shared__ u32 t[64];
    u32 own = LID;
    t[LID] = LID * 7;
    exchange(&t[LID], &x[GID]);
    exchange(&own, &t[LID]);
    exchange(&x[GID], &own);
}
KERNEL generic_sum(u32 *x, u32 *y) {
    __shared__ u32 t[64];
    u32 own[8];
    for (u32 i = 0; i < 8; i++) own[i] = x[GID] + i;
    t[LID] = x[GID];
    sync();
    y[GID] = total(t, 64) + total(own, 8) * 3 + total(x, LID % 5);
}
KERNEL generic_atomic(u32 *x, u32 *y) {
    __shared__ u32 t[4];
    if (LID < 4) t[LID] = 0;
    sync();
    u32 *p = LID % 2 ? &t[LID % 4] : &x[LID % 4];
    add_atomic(p, LID);
    sync();
    if (LID < 4) y[LID] = t[LID] + x[LID];
}
KERNEL generic_copy(u8 *x, u8 *y) {
    __shared__ u8 t[64 * 12];
    u8 own[12];
    copy(own, x + GID * 12, 12);
    own[LID % 12] ^= 0x55;
    copy(t + LID * 12, own, 12);
    sync();
    copy(y + GID * 12, t + (63 - LID) * 12, 12);
}
struct Node {
    Node *next;
    u32 value;
};
KERNEL generic_list(Node *nodes, u32 *y, u32 hops) {
    __shared__ Node here[64];
    // The list goes to and fro between the two memories.
    here[LID].value = LID * 3, here[LID].next = &nodes[(LID + 1) % 64];
    nodes[LID].value = LID * 5, nodes[LID].next = &here[(LID + 7) % 64];
    sync();
    Node *at = &here[LID];
    u32 s = 0;
    for (u32 i = 0; i < hops; i++) s = s * 31 + at->value, at = at->next;
    y[LID] = s;
}
KERNEL generic_mixed(u32 *x, u32 *y) {
    __shared__ u32 t[64];
    u32 *p = &t[LID], *q = LID < 64 ? &x[GID] : p;
    // By a generic and by a known address, in turn.
    *p = 3, t[LID] += *p, *p += t[LID], t[LID] *= 2;
    *q = *q + 1, x[GID] += *q, *q = x[GID] - 1;
    y[GID] = *p + x[GID];
}
