//! Barriers of a block, named barriers, reductions at barriers, mbarriers.

use crate::harness::{fails, gives, run_body};
use titan_nv::emu::{ErrorCode, Options, Schedule};

const WORDS: &str = ".shared .align 4 .b32 w[256];\n";

#[test]
fn a_barrier_makes_writes_visible() {
    let body = "
        mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0; st.shared.u32 [%r1], %ti;
        bar.sync 0;
        xor.b32 %r2, %ti, 127; mad.lo.u32 %r1, %r2, 4, %r0; ld.shared.u32 %v, [%r1]; st.global.u32 [%mine], %v;";
    gives("sm_80", WORDS, body, 128, |t| t ^ 127);
    for seed in 0..4 {
        let options = Options { schedule: Schedule::Seeded(seed), sanitize: true, ..Options::default() };
        let out = run_body("sm_80", WORDS, body, 128, &options).unwrap();
        assert_eq!(out, (0..128).map(|t| t ^ 127).collect::<Vec<_>>());
    }
}

#[test]
fn named_barriers_of_some_warps() {
    // Warps 0 and 1 hand over through barrier 1 with 64 threads; warp 0 only arrives. Warps 2 and 3 do not take part.
    gives(
        "sm_80",
        WORDS,
        "
        mov.u32 %r0, w; shr.u32 %r1, %ti, 5; mov.u32 %v, 9;
        setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1;
        mad.lo.u32 %r2, %lane, 4, %r0;
        @!%p0 bra NOT0; st.shared.u32 [%r2], %ti; bar.arrive 1, 64;
        NOT0: @!%p1 bra NOT1; bar.sync 1, 64; ld.shared.u32 %v, [%r2];
        NOT1: st.global.u32 [%mine], %v;",
        128,
        |t| if t / 32 == 1 { t - 32 } else { 9 },
    );
}

#[test]
fn reductions_at_barriers() {
    gives("sm_80", "", "
        setp.lt.u32 %p0, %ti, 40; setp.lt.u32 %p1, %ti, 64;
        bar.red.popc.u32 %r0, 0, %p0;
        bar.red.and.pred %p2, 0, %p0; bar.red.and.pred %p3, 0, %p1; bar.red.or.pred %p4, 0, %p0; bar.red.or.pred %p5, 0, !%p1;
        selp.u32 %r1, 100, 0, %p2; selp.u32 %r2, 200, 0, %p3; selp.u32 %r3, 400, 0, %p4; selp.u32 %r4, 800, 0, %p5;
        add.u32 %v, %r0, %r1; add.u32 %v, %v, %r2; add.u32 %v, %v, %r3; add.u32 %v, %v, %r4;
        st.global.u32 [%mine], %v;", 64, |_| 40 + 200 + 400);
}

#[test]
fn warps_synchronise_by_themselves() {
    gives(
        "sm_80",
        WORDS,
        "
        mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0; st.shared.u32 [%r1], %ti;
        bar.warp.sync -1;
        xor.b32 %r2, %ti, 1; mad.lo.u32 %r1, %r2, 4, %r0; ld.shared.u32 %v, [%r1]; st.global.u32 [%mine], %v;",
        64,
        |t| t ^ 1,
    );
}

#[test]
fn parts_of_a_warp_wait_for_each_other() {
    // The two sides of a branch meet at different `bar.warp.sync` instructions with one mask.
    gives(
        "sm_80",
        WORDS,
        "
        mov.u32 %r0, w; mad.lo.u32 %r1, %lane, 4, %r0; setp.lt.u32 %p0, %lane, 16;
        @%p0 bra LOW;
        st.shared.u32 [%r1], %lane; bar.warp.sync -1; mov.u32 %v, 0; bra JOIN;
        LOW: bar.warp.sync -1; ld.shared.u32 %v, [%r1+64];
        JOIN: st.global.u32 [%mine], %v;",
        32,
        |t| if t < 16 { t + 16 } else { 0 },
    );
}

const MBAR: &str = ".shared .align 8 .b64 bar;\n.shared .align 4 .b32 w[64];\n";
const INIT: &str = "mov.u32 %r0, bar; mov.u32 %r1, w; setp.eq.u32 %p0, %ti, 0;";

#[test]
fn phases_hand_over() {
    // Warp 0 writes and arrives, warp 1 waits; three rounds, with a barrier back.
    let body = format!(
        "{INIT}
        @%p0 mbarrier.init.shared.b64 [%r0], 32; bar.sync 0;
        mad.lo.u32 %r2, %lane, 4, %r1; setp.ge.u32 %p1, %ti, 32; mov.u32 %r3, 0; mov.u32 %v, 0;
        ROUND:
        @%p1 bra TAKE;
        mad.lo.u32 %r4, %r3, 100, %lane; st.shared.u32 [%r2], %r4;
        mbarrier.arrive.shared.b64 %state, [%r0]; bra NEXT;
        TAKE: and.b32 %r5, %r3, 1;
        WAIT: mbarrier.test_wait.parity.shared.b64 %p2, [%r0], %r5; @!%p2 bra WAIT;
        ld.shared.u32 %r6, [%r2]; add.u32 %v, %v, %r6;
        NEXT: bar.sync 0; add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 3; @%p3 bra ROUND;
        st.global.u32 [%mine], %v;"
    );
    gives("sm_80", MBAR, &body, 64, |t| if t < 32 { 0 } else { 3 * (t - 32) + 300 });
}

#[test]
fn states_are_tested_too_and_counts_are_told() {
    let body = format!(
        "{INIT}
        @%p0 mbarrier.init.shared.b64 [%r0], 64; bar.sync 0;
        mbarrier.arrive.shared.b64 %state, [%r0];
        mbarrier.pending_count.b64 %r2, %state;
        WAIT: mbarrier.test_wait.shared.b64 %p1, [%r0], %state; @!%p1 bra WAIT;
        setp.ge.u32 %p2, %r2, 1; setp.le.and.u32 %p2, %r2, 64, %p2; selp.u32 %v, 1, 0, %p2; st.global.u32 [%mine], %v;
        bar.sync 0; @%p0 mbarrier.inval.shared.b64 [%r0];"
    );
    gives("sm_80", MBAR, &body, 64, |_| 1);
}

#[test]
fn bytes_are_expected_and_waiting_is_blocking_on_sm_90() {
    // `expect_tx` holds the phase until nothing is missing; here 0 bytes are.
    let body = format!(
        "{INIT}
        @%p0 mbarrier.init.shared::cta.b64 [%r0], 2; bar.sync 0;
        setp.eq.u32 %p1, %ti, 32; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%r0], 0;
        @%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];
        mov.u32 %r5, 0;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r0], %r5; @!%p2 bra WAIT;
        mov.u32 %v, 3; st.global.u32 [%mine], %v;"
    );
    gives("sm_90", MBAR, &body, 64, |_| 3);
}

#[test]
fn a_wait_without_an_arrival_is_reported() {
    let message = fails(
        WORDS,
        "setp.ge.u32 %p0, %ti, 32; @%p0 bra OUT; bar.sync 1, 64; OUT: bar.sync 0;",
        64,
        ErrorCode::Deadlock,
        "bar.sync",
    );
    assert!(message.contains("warp 0") && message.contains("barrier 1: 32 of 64 have arrived"), "{message}");
    assert!(message.contains("warp 1") && message.contains("barrier 0: 32 of 64 have arrived"), "{message}");
    let body = format!(
        "{INIT} @%p0 mbarrier.init.shared.b64 [%r0], 33; bar.sync 0;
        mbarrier.arrive.shared.b64 %state, [%r0];
        WAIT: mbarrier.test_wait.shared.b64 %p1, [%r0], %state; @!%p1 bra WAIT;"
    );
    let message = fails(MBAR, &body, 32, ErrorCode::Deadlock, "WAIT");
    assert!(message.contains("polls"), "{message}");
}

#[test]
fn misused_barriers() {
    let init = format!("{INIT} @%p0 mbarrier.init.shared.b64 [%r0], 1; bar.sync 0;");
    for (body, at, says) in [
        (format!("{INIT} mbarrier.arrive.shared.b64 %state, [%r0];"), "arrive", "before it is initialised"),
        (format!("{init} @%p0 mbarrier.init.shared.b64 [%r0], 1;\n"), "init", "without being invalidated"),
        (format!("{INIT} @%p0 mbarrier.init.shared.b64 [%r0], 0;"), "init", "1 to 1048575"),
        (
            format!("{init}\n@%p0 mbarrier.arrive.noComplete.shared.b64 %state, [%r0], 2;"),
            "noComplete",
            "2 arrivals, but the phase has only 1 pending",
        ),
        (format!("{init}\n@%p0 ld.shared.u32 %r2, [%r0+4];"), "ld.shared", "ordinary access to the mbarrier"),
        (
            format!("{init}\n@%p0 mbarrier.inval.shared.b64 [%r0];\n@%p0 mbarrier.inval.shared.b64 [%r0];"),
            "inval",
            "after it is invalidated",
        ),
        ("mov.u32 %r0, 16; bar.sync %r0;".to_owned(), "bar.sync", "0 to 15"),
        ("mov.u32 %r0, 33; bar.sync 1, %r0;".to_owned(), "bar.sync", "multiple of 32"),
    ] {
        let message = fails(MBAR, &body, 32, ErrorCode::Barrier, at);
        assert!(message.contains(says), "{message}");
    }
    let body = "setp.lt.u32 %p0, %ti, 32; @%p0 bra A; bar.sync 1, 64; bra B; A: bar.sync 1, 96; B: mov.u32 %v, 0;";
    let message = fails("", body, 64, ErrorCode::Barrier, "bar.sync");
    assert!(message.contains("expects 96, another 64") || message.contains("expects 64, another 96"), "{message}");
}
