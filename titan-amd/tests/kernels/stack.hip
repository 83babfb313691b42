// Stacks: recursion, calls through pointers, arrays that are indexed, structures by value.
NOINLINE u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
NOINLINE u32 ackermann(u32 m, u32 n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
NOINLINE bool is_odd(u32 n);
NOINLINE bool is_even(u32 n) { return n == 0 ? true : is_odd(n - 1); }
NOINLINE bool is_odd(u32 n) { return n == 0 ? false : is_even(n - 1); }
NOINLINE void quicksort(i32 *t, i32 low, i32 high) {
    if (low >= high) return;
    i32 pivot = t[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (t[i] < pivot) i++;
        while (t[j] > pivot) j--;
        if (i <= j) {
            i32 v = t[i];
            t[i++] = t[j], t[j--] = v;
        }
    }
    quicksort(t, low, j);
    quicksort(t, i, high);
}
KERNEL stack_fib(u32 *x) { x[GID] = fib(x[GID]); }
KERNEL stack_ackermann(u32 *x) { x[GID] = ackermann(2, x[GID]); }
KERNEL stack_mutual(u32 *x) { x[GID] = is_even(x[GID]) ? 1 : 2; }
KERNEL stack_sort(i32 *x) {
    i32 t[16];
    for (i32 i = 0; i < 16; i++) t[i] = x[GID * 16 + i];
    quicksort(t, 0, 15);
    for (i32 i = 0; i < 16; i++) x[GID * 16 + i] = t[i];
}
NOINLINE u32 twice(u32 x) { return 2 * x; }
NOINLINE u32 square(u32 x) { return x * x; }
NOINLINE u32 plus_one(u32 x) { return x + 1; }
NOINLINE u32 both(u32 x) { return twice(x) + square(x); }
typedef u32 (*Function)(u32);
__device__ Function const table[4] = {twice, square, plus_one, both};
KERNEL stack_pointers(u32 *x, u32 *which) { x[GID] = table[which[GID] % 4](x[GID]); }
KERNEL stack_uniform_pointer(u32 *x, u32 which) {
    Function f = table[which % 4];
    x[GID] = f(x[GID]) + f(3);
}
KERNEL stack_array(u32 *x, u32 *y) {
    u32 t[32];
    for (u32 i = 0; i < 32; i++) t[i] = i * i + x[GID];
    u32 at = x[GID] % 32;
    t[at] += 1000;
    y[GID] = t[at] + t[(at + 5) % 32] + t[31 - at];
}
struct Big {
    u32 a[6];
    float b;
    u8 c;
};
NOINLINE Big changed(Big s, u32 k) {
    s.a[k % 6] += k;
    s.b *= 2.0f;
    s.c ^= 0xFF;
    return s;
}
KERNEL stack_structs(u32 *x, u32 *y) {
    Big s;
    for (u32 i = 0; i < 6; i++) s.a[i] = x[GID] + i;
    s.b = (float)LID, s.c = (u8)LID;
    s = changed(changed(s, LID), 2);
    u32 sum = s.c;
    for (u32 i = 0; i < 6; i++) sum += s.a[i] * (i + 1);
    y[GID] = sum + (u32)s.b;
}
NOINLINE u32 deep(u32 n, u32 *kept) {
    u32 own[2] = {n, n * n};
    if (n == 0) return *kept;
    u32 below = deep(n - 1, n % 2 ? &own[0] : kept);
    return below + own[n % 2];
}
KERNEL stack_deep(u32 *x) {
    u32 seed = 7;
    x[GID] = deep(x[GID], &seed);
}
