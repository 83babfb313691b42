// Workgroups that tell each other something, by atomics and fences of the device's scope.
KERNEL grid_tickets(u32 *counter, u32 *y) {
    u32 ticket = __hip_atomic_fetch_add(counter, 1u, RELAXED, AGENT);
    y[ticket] = 1;
}
KERNEL grid_last(u32 *x, u32 *part, u32 *counter, u32 *y) {
    // The workgroup that is last adds up what the others have left.
    __shared__ u32 t[64];
    __shared__ u32 ticket;
    t[LID] = x[GID];
    sync();
    if (LID == 0) {
        u32 s = 0;
        for (u32 i = 0; i < 64; i++) s += t[i];
        part[GROUP] = s;
        ticket = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL, AGENT);
    }
    sync();
    if (ticket == GROUPS - 1 && LID == 0) {
        u32 s = 0;
        for (u32 g = 0; g < GROUPS; g++) s += part[g];
        *y = s;
    }
}
KERNEL grid_flags(u32 *data, u32 *flags, u32 *y) {
    // A chain: each workgroup waits for the one before it.
    u32 v = 1;
    if (GROUP > 0) {
        while (__hip_atomic_load(&flags[GROUP - 1], ACQUIRE, AGENT) == 0) __builtin_amdgcn_s_sleep(1);
        v = data[(GROUP - 1) * 64 + 63 - LID] + LID + 1;
    }
    data[GID] = v;
    sync();
    if (LID == 0) __hip_atomic_store(&flags[GROUP], 1u, RELEASE, AGENT);
    y[GID] = v;
}
KERNEL grid_lock(u32 *lock, u32 *x, u32 times) {
    if (LID != 0) return;
    for (u32 i = 0; i < times; i++) {
        u32 free = 0;
        while (!__hip_atomic_compare_exchange_strong(lock, &free, 1u, ACQUIRE, RELAXED, AGENT)) {
            free = 0;
            __builtin_amdgcn_s_sleep(1);
        }
        // Not an atomic operation: the lock protects it.
        x[0] = x[0] + 1, x[1] = x[1] * 3 + 1;
        __hip_atomic_store(lock, 0u, RELEASE, AGENT);
    }
}
KERNEL grid_barrier(u32 *x, u32 *t, u32 *counter, u32 *y) {
    u32 n = GROUPS * SIZE;
    t[GID] = x[GID] * 2;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    sync();
    if (LID == 0) {
        __hip_atomic_fetch_add(counter, 1u, RELEASE, AGENT);
        while (__hip_atomic_load(counter, ACQUIRE, AGENT) < GROUPS) __builtin_amdgcn_s_sleep(2);
    }
    sync();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    y[GID] = t[(GID + SIZE) % n] + t[n - 1 - GID];
}
KERNEL grid_max(float *x, u32 *bits, u32 n) {
    // A maximum of positive numbers, by comparing and exchanging.
    for (u32 i = GID; i < n; i += GROUPS * SIZE) {
        u32 old = __hip_atomic_load(bits, RELAXED, AGENT), own = __builtin_bit_cast(u32, x[i]);
        while (own > old && !__hip_atomic_compare_exchange_weak(bits, &old, own, RELAXED, RELAXED, AGENT)) {}
    }
}
