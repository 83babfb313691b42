//! `cp.async`: groups, zero fill, arrival at an mbarrier, and when copies happen.

use crate::harness::{fails, gives, run_body};
use titan_nv::emu::{Completion, ErrorCode, Options};

const BUF: &str =
    ".shared .align 16 .b8 buf[4096];\n.shared .align 8 .b64 bar;\n.global .align 16 .u32 src[512] = {SRC};\n";

fn shared() -> String {
    let values: Vec<String> = (0..512).map(|i| (i * 3).to_string()).collect();
    BUF.replace("SRC", &values.join(", "))
}

/// Each thread copies its 16 bytes, first to its place, then into the second half of the buffer.
const START: &str = "
    mov.u32 %r0, buf; mad.lo.u32 %r1, %ti, 16, %r0; mov.u64 %rd0, src; mad.wide.u32 %rd1, %ti, 16, %rd0;";

#[test]
fn a_group_is_there_after_its_wait() {
    let body = format!(
        "{START}
        cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.commit_group;
        cp.async.ca.shared.global [%r1+2048], [%rd1+4], 4; cp.async.commit_group;
        cp.async.wait_group 1; ld.shared.u32 %r2, [%r1+8];
        cp.async.wait_group 0; ld.shared.u32 %r3, [%r1+2048];
        add.u32 %v, %r2, %r3; st.global.u32 [%mine], %v;"
    );
    gives("sm_80", &shared(), &body, 64, |t| (4 * t + 2) * 3 + (4 * t + 1) * 3);
    for completion in [Completion::Early, Completion::Seeded(1), Completion::Seeded(2)] {
        let options = Options { completion, sanitize: true, ..Options::default() };
        let out = run_body("sm_80", &shared(), &body, 64, &options).unwrap();
        assert_eq!(out, (0..64).map(|t| (8 * t + 3) * 3).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_copied_is_zero() {
    let body = format!(
        "{START}
        and.b32 %r2, %ti, 1; mul.lo.u32 %r2, %r2, 16; setp.lt.u32 %p0, %ti, 16;
        cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;
        cp.async.ca.shared.global [%r1+2048], [%rd1], 8, 4;
        cp.async.wait_all; ld.shared.u32 %r3, [%r1+4]; ld.shared.v2.u32 {{%r4, %r5}}, [%r1+2048];
        add.u32 %v, %r3, %r4; add.u32 %v, %v, %r5; st.global.u32 [%mine], %v;"
    );
    gives("sm_80", &shared(), &body, 64, |t| t % 2 * (4 * t + 1) * 3 + 4 * t * 3);
}

#[test]
fn a_source_that_is_not_read_may_be_anywhere() {
    // The address is far outside, and the size is 0.
    let body = format!(
        "{START}
        mov.u32 %r2, 0; add.u64 %rd1, %rd1, 0x1000000;
        cp.async.cg.shared.global [%r1], [%rd1], 16, %r2; cp.async.wait_all;
        ld.shared.u32 %v, [%r1]; st.global.u32 [%mine], %v;"
    );
    gives("sm_80", &shared(), &body, 32, |_| 0);
    let body = body.replace("mov.u32 %r2, 0;", "mov.u32 %r2, 4;");
    let message = fails(&shared(), &body, 32, ErrorCode::OutOfBounds, "cp.async.cg");
    assert!(message.contains("after the end of `src`"), "{message}");
}

#[test]
fn copies_arrive_at_a_barrier() {
    for form in [".noinc", ""] {
        // The counting form increments the pending count, so the 32 arrivals of the producers are additional.
        let arrive = if form.is_empty() { "mbarrier.arrive.shared.b64 %state, [%r4];" } else { "" };
        let body = format!(
            "{START}
            mov.u32 %r4, bar; setp.eq.u32 %p0, %ti, 0; @%p0 mbarrier.init.shared.b64 [%r4], 32; bar.sync 0;
            setp.ge.u32 %p1, %ti, 32; mov.u32 %v, 0;
            @%p1 bra TAKE;
            cp.async.cg.shared.global [%r1], [%rd1], 16;
            cp.async.mbarrier.arrive{form}.shared.b64 [%r4]; {arrive} bra DONE;
            TAKE: mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0; @!%p2 bra TAKE;
            xor.b32 %r5, %lane, 5; mad.lo.u32 %r5, %r5, 16, %r0; ld.shared.u32 %v, [%r5];
            DONE: st.global.u32 [%mine], %v;"
        );
        for completion in [Completion::Late, Completion::Early, Completion::Seeded(7)] {
            let options = Options { completion, sanitize: true, ..Options::default() };
            let out = run_body("sm_80", &shared(), &body, 64, &options)
                .unwrap_or_else(|e| panic!("{form} {completion:?} {e}"));
            let want = |t: u32| if t < 32 { 0 } else { ((t - 32) ^ 5) * 12 };
            assert_eq!(out, (0..64).map(want).collect::<Vec<_>>());
        }
    }
}

#[test]
fn reading_too_early_is_a_race_even_if_the_copy_is_early() {
    let without = format!(
        "{START}
        cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.commit_group;\n
        ld.shared.u32 %v, [%r1];\n"
    );
    for completion in [Completion::Early, Completion::Seeded(3)] {
        let options = Options { completion, sanitize: true, ..Options::default() };
        let error = run_body("sm_80", &shared(), &without, 32, &options).expect_err("a race");
        assert_eq!(error.code(), ErrorCode::Race);
        assert!(error.to_string().contains("not ordered after an asynchronous copy"), "{error}");
    }
    // With the copy late and no detector, the bytes are not there yet.
    let options = Options { races: false, ..Options::default() };
    let error = run_body("sm_80", &shared(), &without, 32, &options).expect_err("undefined bytes");
    assert_eq!(error.code(), ErrorCode::Uninitialised, "{error}");
}

#[test]
fn one_group_too_many_outstanding() {
    let body = format!(
        "{START}
        cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.commit_group;
        cp.async.cg.shared.global [%r1+2048], [%rd1], 16; cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %v, [%r1+2048];\n"
    );
    fails(&shared(), &body, 32, ErrorCode::Race, "ld.shared");
    // Waiting for one's own copies says nothing of others': a barrier must follow.
    let body = format!(
        "{START}
        cp.async.cg.shared.global [%r1], [%rd1], 16; cp.async.wait_all; BARRIER
        xor.b32 %r2, %ti, 33; mad.lo.u32 %r2, %r2, 16, %r0;
        ld.shared.u32 %v, [%r2]; st.global.u32 [%mine], %v;\n"
    );
    let early = Options { completion: Completion::Early, ..Options::default() };
    let seeded = (0..20).map(|s| Options { schedule: titan_nv::emu::Schedule::Seeded(s), ..early.clone() });
    let codes: Vec<_> = seeded
        .filter_map(|o| run_body("sm_80", &shared(), &body.replace("BARRIER", ""), 64, &o).err())
        .map(|e| e.code())
        .collect();
    assert!(
        codes.len() == 20 && codes.contains(&ErrorCode::Race),
        "either it is not there yet, or it is a race: {codes:?}"
    );
    gives("sm_80", &shared(), &body.replace("BARRIER", "bar.sync 0;"), 64, |t| (t ^ 33) * 12);
}
