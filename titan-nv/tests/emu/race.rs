//! Races on shared memory: each with a twin in which they are ordered.

use crate::harness::{fails, gives};
use titan_nv::emu::ErrorCode;

const WORDS: &str = ".shared .align 16 .b32 w[256];\n";
const START: &str = "mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0; xor.b32 %r2, %ti, NEAR; mad.lo.u32 %r3, %r2, 4, %r0; mov.u32 %v, 1;\n";

/// `sync` between the accesses orders them; without it they race, whichever comes first.
fn pair(near: u32, first: &str, sync: &str, second: &str) -> String {
    let start = START.replace("NEAR", &near.to_string()) + "st.shared.u32 [%r1], 99; bar.sync 0;\n";
    let body = |sync: &str| start.clone() + first + "\n" + sync + "\n" + second + "\n";
    gives("sm_80", WORDS, &body(sync), 64, |_| 0);
    let message = fails(WORDS, &body(""), 64, ErrorCode::Race, "shared");
    assert!(message.contains(first) && message.contains(second), "{message}");
    message
}

#[test]
fn between_warps() {
    let message = pair(32, "st.shared.u32 [%r1], %ti;", "bar.sync 0;", "ld.shared.u32 %v, [%r3];");
    assert!(message.contains("of `w` in shared memory, not ordered after a"), "{message}");
    assert!(message.contains("\n  against a") && message.contains("help: order them by `bar.sync`"), "{message}");
    pair(32, "ld.shared.u32 %v, [%r3];", "bar.sync 0;", "st.shared.u32 [%r1], %ti;");
    pair(32, "st.shared.u32 [%r1], %ti;", "bar.sync 0;", "st.shared.u32 [%r3], 7;");
}

#[test]
fn within_a_warp_too() {
    pair(1, "st.shared.u32 [%r1], %ti;", "bar.warp.sync -1;", "ld.shared.u32 %v, [%r3];");
    // Exchanging registers orders no memory.
    let body = START.replace("NEAR", "1")
        + "st.shared.u32 [%r1], %ti; shfl.sync.idx.b32 %r4, %ti, 0, 31, -1;\nld.shared.u32 %v, [%r3];";
    fails(WORDS, &body, 32, ErrorCode::Race, "ld.shared");
}

#[test]
fn a_warps_own_order_is_not_the_blocks() {
    let body = START.replace("NEAR", "32")
        + "st.shared.u32 [%r1], 99; bar.sync 0; st.shared.u32 [%r1], %ti; bar.warp.sync -1;\nld.shared.u32 %v, [%r3];";
    fails(WORDS, &body, 64, ErrorCode::Race, "shared");
}

#[test]
fn common_bytes_of_different_accesses() {
    let body = "mov.u32 %r0, w; setp.ge.u32 %p0, %ti, 32; @%p0 bra B;
        mad.lo.u32 %r1, %lane, 4, %r0; st.shared.u32 [%r1], 0; bra E;
        B: mad.lo.u32 %r1, %lane, 2, %r0; add.u32 %r2, %lane, 1;
        st.shared.u16 [%r1+OFF], %r2;
        E: mov.u32 %v, 0;";
    fails(WORDS, &body.replace("OFF", "64"), 64, ErrorCode::Race, "st.shared.u");
    gives("sm_80", WORDS, &body.replace("OFF", "128"), 64, |_| 0);
}

#[test]
fn equal_writes_of_replicated_results_are_allowed() {
    gives(
        "sm_80",
        WORDS,
        "mov.u32 %r0, w; st.shared.u32 [%r0], 7; bar.sync 0; ld.shared.u32 %v, [%r0]; st.global.u32 [%mine], %v;",
        64,
        |_| 7,
    );
    fails(WORDS, "mov.u32 %r0, w;\nst.shared.u32 [%r0], %ti;\n", 64, ErrorCode::Race, "st.shared");
}

#[test]
fn atomics_do_not_race_among_themselves() {
    let body = "mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        red.shared.add.u32 [%r0], 1; SYNC
        ld.shared.u32 %v, [%r0]; st.global.u32 [%mine], %v;";
    gives("sm_80", WORDS, &body.replace("SYNC", "bar.sync 0;"), 64, |_| 64);
    fails(WORDS, &body.replace("SYNC", "\n"), 64, ErrorCode::Race, "");
}

#[test]
fn flags_release_and_acquire() {
    // Warp 0 fills, raises the flag; warp 1 waits for it and reads.
    let body = |store: &str, load: &str| {
        format!(
            "
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        mad.lo.u32 %r1, %lane, 4, %r0; setp.ge.u32 %p1, %ti, 32; mov.u32 %v, 0; @%p1 bra TAKE;
        st.shared.u32 [%r1+128], %lane; bar.warp.sync -1; @%p0 {store} [%r0], 1; bra DONE;
        TAKE: {load} %r2, [%r0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra TAKE;
        ld.shared.u32 %v, [%r1+128];
        DONE: st.global.u32 [%mine], %v;"
        )
    };
    let want = |t: u32| t.saturating_sub(32);
    gives("sm_80", WORDS, &body("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32"), 64, want);
    gives(
        "sm_80",
        WORDS,
        &body("membar.cta; @%p0 st.volatile.shared.u32", "ld.volatile.shared.u32")
            .replace("ld.shared.u32 %v, [%r1+128]", "fence.acq_rel.cta; ld.shared.u32 %v, [%r1+128]"),
        64,
        want,
    );
    fails(
        WORDS,
        &body("st.relaxed.cta.shared.u32", "ld.relaxed.cta.shared.u32"),
        64,
        ErrorCode::Race,
        "ld.shared.u32 %v",
    );
}

#[test]
fn a_fence_acquires_after_any_number_of_reads() {
    // Warp 1 polls a flag that is never raised, 100 times, before it waits for the one that warp 0 raises.
    let body = |fence: &str| {
        format!(
            "
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; @%p0 st.shared.u32 [%r0+4], 0; bar.sync 0;
        mad.lo.u32 %r1, %lane, 4, %r0; setp.ge.u32 %p1, %ti, 32; mov.u32 %v, 0; @%p1 bra POLL;
        st.shared.u32 [%r1+128], %lane; bar.warp.sync -1; @%p0 st.release.cta.shared.u32 [%r0], 1; bra DONE;
        POLL: ld.relaxed.cta.shared.u32 %r2, [%r0+4]; add.u32 %v, %v, 1; setp.lt.u32 %p2, %v, 100; @%p2 bra POLL;
        TAKE: ld.relaxed.cta.shared.u32 %r2, [%r0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra TAKE;
        {fence} ld.shared.u32 %v, [%r1+128];
        DONE: st.global.u32 [%mine], %v;"
        )
    };
    gives("sm_80", WORDS, &body("fence.acq_rel.cta;"), 64, |t| t.saturating_sub(32));
    fails(WORDS, &body(""), 64, ErrorCode::Race, "ld.shared.u32 %v");
}

#[test]
fn a_fence_orders_nothing_that_comes_after_it() {
    // Warp 0 fills, and raises the flag after a fence, which orders the store only if it comes behind it.
    let release = |filled: &str| {
        format!(
            "
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        mov.u32 %v, 7; setp.ge.u32 %p1, %ti, 32; @%p1 bra TAKE; @!%p0 bra DONE;
        {filled} st.relaxed.cta.shared.u32 [%r0], 1; bra DONE;
        TAKE: ld.acquire.cta.shared.u32 %r2, [%r0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra TAKE;
        ld.shared.u32 %v, [%r0+128];
        DONE: st.global.u32 [%mine], %v;"
        )
    };
    gives("sm_80", WORDS, &release("st.shared.u32 [%r0+128], 7; fence.acq_rel.cta;"), 64, |_| 7);
    fails(WORDS, &release("fence.acq_rel.cta; st.shared.u32 [%r0+128], 7;"), 64, ErrorCode::Race, "ld.shared.u32 %v");
    // A fence of a thread acquires what its reads before it have observed: one that comes before the last read does not order it.
    let acquire = |before: &str, after: &str| {
        format!(
            "
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        mov.u32 %v, 7; setp.ge.u32 %p1, %ti, 32; @%p1 bra TAKE; @!%p0 bra DONE;
        st.shared.u32 [%r0+128], 7; st.release.cta.shared.u32 [%r0], 1; bra DONE;
        TAKE: {before} ld.relaxed.cta.shared.u32 %r2, [%r0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra TAKE;
        {after} ld.shared.u32 %v, [%r0+128];
        DONE: st.global.u32 [%mine], %v;"
        )
    };
    gives("sm_80", WORDS, &acquire("", "fence.acq_rel.cta;"), 64, |_| 7);
    fails(WORDS, &acquire("fence.acq_rel.cta;", ""), 64, ErrorCode::Race, "ld.shared.u32 %v");
}

#[test]
fn a_store_publishes_for_its_own_thread_only() {
    // Warp 0 fills and raises the flag to 1; warp 1, which takes nothing over, to 2; warp 2 waits for 2 and reads what warp 0 filled.
    let body = |second: &str| {
        format!("
        mov.u32 %r0, w; setp.eq.u32 %p0, %ti, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        mad.lo.u32 %r1, %lane, 4, %r0; mov.u32 %v, 0; setp.ge.u32 %p1, %ti, 64; @%p1 bra TAKE; setp.ge.u32 %p1, %ti, 32; @%p1 bra NEXT;
        st.shared.u32 [%r1+128], %lane; bar.warp.sync -1; @%p0 st.release.cta.shared.u32 [%r0], 1; bra DONE;
        NEXT: ld.relaxed.cta.shared.u32 %r2, [%r0]; setp.ne.u32 %p2, %r2, 1; @%p2 bra NEXT;
        setp.eq.u32 %p3, %lane, 0; bar.warp.sync -1; @%p3 {second} bra DONE;
        TAKE: ld.relaxed.cta.shared.u32 %r2, [%r0]; setp.ne.u32 %p2, %r2, 2; @%p2 bra TAKE;
        ld.acquire.cta.shared.u32 %r2, [%r0]; ld.shared.u32 %v, [%r1+128];
        DONE: st.global.u32 [%mine], %v;")
    };
    let want = |t: u32| t.saturating_sub(64);
    gives("sm_80", WORDS, &body("atom.relaxed.cta.shared.add.u32 %r3, [%r0], 1;"), 96, want);
    gives(
        "sm_80",
        WORDS,
        &body("st.release.cta.shared.u32 [%r0], 2;").replacen("ld.relaxed", "ld.acquire", 1),
        96,
        want,
    );
    fails(WORDS, &body("st.release.cta.shared.u32 [%r0], 2;"), 96, ErrorCode::Race, "ld.shared.u32 %v");
}

#[test]
fn an_arrival_orders_what_came_before_it() {
    let mbar = ".shared .align 8 .b64 bar;\n.shared .align 4 .b32 w[64];\n";
    let body = |late: bool| {
        let (store, arrive) = ("st.shared.u32 [%r2], 5;", "mbarrier.arrive.shared.b64 %state, [%r0];");
        let produce = if late { format!("{arrive}\n{store}") } else { format!("{store}\n{arrive}") };
        format!("mov.u32 %r0, bar; mov.u32 %r1, w; setp.eq.u32 %p0, %ti, 0; @%p0 mbarrier.init.shared.b64 [%r0], 32; bar.sync 0;
            mad.lo.u32 %r2, %lane, 4, %r1; setp.ge.u32 %p1, %ti, 32; mov.u32 %v, 5; @%p1 bra TAKE;
            {produce}
            bra DONE;
            TAKE: mbarrier.test_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 bra TAKE;
            ld.shared.u32 %v, [%r2];
            DONE: st.global.u32 [%mine], %v;")
    };
    gives("sm_80", mbar, &body(false), 64, |_| 5);
    fails(mbar, &body(true), 64, ErrorCode::Race, "ld.shared.u32 %v");
    // Using a barrier that another thread has initialised, without synchronization in between.
    let unordered = body(false).replace("bar.sync 0;", "");
    fails(mbar, &unordered, 64, ErrorCode::Race, "mbarrier.arrive");
}

#[test]
fn matrices_are_read_by_rows() {
    let body = "mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0; st.shared.u32 [%r1], 0; SYNC
        and.b32 %r2, %ti, 7; mad.lo.u32 %r2, %r2, 16, %r0;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [%r2]; st.global.u32 [%mine], %v;";
    gives("sm_80", WORDS, &body.replace("SYNC", "bar.warp.sync -1;"), 32, |_| 0);
    fails(WORDS, &body.replace("SYNC", "\n"), 32, ErrorCode::Race, "ldmatrix");
}
