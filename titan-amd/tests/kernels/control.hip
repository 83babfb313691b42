// Flow of control: switches, loops with several ends, conditions that are not evaluated.
KERNEL control_switch(u32 *x) {
    u32 v = x[GID], r;
    switch (v % 9) {
    case 0: r = v + 1; break;
    case 1: v *= 3;
    case 2: r = v ^ 0xFF; break;
    case 3: r = v >> 2; break;
    case 5: r = v << 1; break;
    case 7: r = ~v; break;
    default: r = 42;
    }
    x[GID] = r;
}
KERNEL control_collatz(u32 *x) {
    u32 n = x[GID], steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        if (++steps >= 50) break;
    }
    x[GID] = steps;
}
KERNEL control_nested(u32 *x, u32 *y) {
    u32 v = x[GID], s = 0;
    for (u32 i = 0; i < 6; i++) {
        if (i == v % 6) continue;
        for (u32 j = i; j < 8; j++) {
            if (j * i > v % 17) break;
            s += i * 10 + j;
            if (s % 13 == 0) goto out;
        }
    }
    s += 1000;
out:
    y[GID] = s;
}
KERNEL control_returns(u32 *x, u32 *y, u32 n) {
    if (GID >= n) return;
    u32 v = x[GID];
    y[GID] = 1;
    if (v % 2) return;
    y[GID] = 2;
    for (u32 i = 0; i < 4; i++)
        if (v % 5 == i) return;
    y[GID] = v;
}
// A variable that is set only where it is used.
KERNEL control_maybe(u32 *x, u32 *y) {
    u32 v = x[GID], late;
    bool has = v % 3 == 0;
    if (has) late = v * 2;
    u32 r = v + 7;
    if (v % 2) r ^= 0x10;
    if (has) r += late;
    y[GID] = r;
}
KERNEL control_conditions(u32 *x, u32 *y, u32 n) {
    u32 at = x[GID];
    bool a = at < n && y[at] > 3, b = at >= n || y[at] % 2;
    x[GID] = a + 2 * b + 4 * (a ? at : b ? 5 : 6);
}
KERNEL control_search(u32 *x, u32 *keys, u32 *y, u32 n) {
    u32 low = 0, high = n, key = keys[GID];
    while (low < high) {
        u32 mid = (low + high) / 2;
        if (x[mid] < key) low = mid + 1;
        else high = mid;
    }
    y[GID] = low < n && x[low] == key ? low : 0xFFFFFFFF;
}
KERNEL control_last(u32 *x, u32 *y) {
    // Results of the last turn, and of the turn before.
    u32 a = 0, b = 1, turns = x[GID] % 20;
    do {
        u32 c = a + b;
        a = b, b = c;
    } while (turns--);
    y[GID] = a * 1000 + b;
}
KERNEL control_float(float *x, float *y) {
    float v = x[GID], lo = 0.0f, hi = v > 1.0f ? v : 1.0f;
    for (u32 i = 0; i < 30; i++) {
        float mid = 0.5f * (lo + hi);
        if (mid * mid <= v) lo = mid;
        else hi = mid;
    }
    y[GID] = lo;
}
