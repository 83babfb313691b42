//! The sanitizer of the core on PTX: warps as partitions, reports with lines; what it finds beside the observer of races.

use crate::harness::{module_of, run_body};
use titan_nv::emu::{EmuError, ErrorCode, Options};

const WORDS: &str = ".shared .align 16 .b32 w[256];\n";
const BAR: &str = ".shared .align 8 .b64 bar;\n";
const START: &str =
    "mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0; xor.b32 %r2, %ti, NEAR; mad.lo.u32 %r3, %r2, 4, %r0;\n";

/// Runs with the sanitizer alone.
fn alone(shared: &str, body: &str) -> Result<Vec<u32>, EmuError> {
    run_body("sm_80", shared, body, 64, &Options { races: false, sanitize: true, ..Options::default() })
}

#[test]
fn warps_race_with_each_other_but_not_with_themselves() {
    let body = |near: u32, sync: &str| {
        START.replace("NEAR", &near.to_string())
            + "st.shared.u32 [%r1], 99; bar.sync 0;\nst.shared.u32 [%r1], %ti;\n"
            + sync
            + "\nld.shared.u32 %v, [%r3];\nst.global.u32 [%mine], %v;"
    };
    let error = alone(WORDS, &body(32, "")).unwrap_err();
    let message = error.to_string();
    assert_eq!(error.code(), ErrorCode::Race);
    assert!(
        message.contains("of `w` in shared memory: a ") && message.contains("[sanitizer: outstanding-"),
        "{message}"
    );
    assert!(message.contains("ld.shared.u32 %v, [%r3];") && message.contains("st.shared.u32 [%r1], %ti;"), "{message}");
    assert!(message.contains("help: order them by `bar.sync`"), "{message}");
    assert_eq!(alone(WORDS, &body(32, "bar.sync 0;")).unwrap()[0], 32);
    // Within a warp the other observer looks.
    assert_eq!(alone(WORDS, &body(1, "")).unwrap()[0], 1);
    assert!(run_body("sm_80", WORDS, &body(1, ""), 64, &Options { sanitize: true, ..Options::default() }).is_err());
}

#[test]
fn copies_are_waited_for_before_the_block_ends() {
    let body = "mov.u32 %r0, w; mad.lo.u32 %r1, %ti, 4, %r0;
        cp.async.ca.shared.global [%r1], [%mine], 4; cp.async.commit_group;
        WAIT";
    let run = |wait: &str, sanitize| {
        run_body("sm_80", WORDS, &body.replace("WAIT", wait), 64, &Options { sanitize, ..Options::default() })
    };
    let error = run("", true).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Race);
    let message = error.to_string();
    assert!(message.contains("the block ends") && message.contains("[sanitizer: exit-in-flight]"), "{message}");
    assert!(
        message.contains("cp.async.ca.shared.global") && message.contains("help: wait for the copies"),
        "{message}"
    );
    run("", false).unwrap();
    run("cp.async.wait_group 0;", true).unwrap();
}

#[test]
fn a_misused_barrier_has_two_sides() {
    let init = "mov.u32 %r0, bar; setp.eq.u32 %p0, %ti, 0;\n@%p0 mbarrier.init.shared.b64 [%r0], 1;\nbar.sync 0;\n";
    let body = format!("{init}@%p0 mbarrier.arrive.shared.b64 %state, [%r0];\n@%p0 mbarrier.init.shared.b64 [%r0], 2;");
    let error = alone(BAR, &body).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Barrier);
    let (message, text) = (error.to_string(), module_of("sm_80", BAR, &body));
    assert!(message.contains("initialised again without being invalidated [sanitizer: barrier-reinit]"), "{message}");
    assert!(text.lines().nth(error.line() as usize - 1).unwrap().contains("], 2;"), "{message}");
    assert!(message.contains("against the initialisation of thread (0, 0, 0)"), "{message}");
}

#[test]
fn a_barrier_is_invalidated_after_its_last_use() {
    let body = "mov.u32 %r0, bar; setp.eq.u32 %p0, %ti, 0; setp.eq.u32 %p1, %ti, 32; mov.u32 %r5, 0;
        @%p0 mbarrier.init.shared.b64 [%r0], 1;
        bar.sync 0;
        @!%p1 bra NOT1; mbarrier.arrive.shared.b64 %state, [%r0]; NOT1:
        @!%p0 bra OUT; MIDDLE mbarrier.inval.shared.b64 [%r0]; OUT:";
    let wait = "WAIT: mbarrier.test_wait.parity.shared.b64 %p2, [%r0], %r5; @!%p2 bra WAIT;";
    let run = |middle: &str| {
        let options = Options { races: false, sanitize: true, ..Options::default() };
        run_body("sm_90", BAR, &body.replace("MIDDLE", middle), 64, &options)
    };
    run(wait).unwrap();
    let error = run("").unwrap_err();
    assert!(matches!(error.code(), ErrorCode::Race | ErrorCode::Barrier), "{error}");
    assert!(error.to_string().contains("[sanitizer: "), "{error}");
}

#[test]
fn a_deadlock_says_who_waits() {
    let error = alone("", "setp.ge.u32 %p0, %ti, 32; @%p0 bra OUT; bar.sync 1, 64; OUT: bar.sync 0;").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Deadlock);
    assert!(error.to_string().contains("barrier 1: 32 of 64 have arrived"), "{error}");
}
