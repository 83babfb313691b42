//! Shuffles, votes, matches, reductions, election.

use crate::harness::gives;

#[test]
fn shuffles() {
    let run = |instr: &str, want: fn(u32) -> u32| {
        let body = format!("mul.lo.u32 %r0, %lane, 10; {instr} st.global.u32 [%mine], %v;");
        gives("sm_80", "", &body, 32, want);
    };
    run("shfl.sync.bfly.b32 %v, %r0, 3, 31, -1;", |t| (t ^ 3) * 10);
    run("shfl.sync.idx.b32 %v, %r0, 5, 31, -1;", |_| 50);
    run("shfl.sync.up.b32 %v, %r0, 4, 0, -1;", |t| if t >= 4 { (t - 4) * 10 } else { t * 10 });
    run("shfl.sync.down.b32 %v, %r0, 4, 31, -1;", |t| if t < 28 { (t + 4) * 10 } else { t * 10 });
    // Segments of 8: the mask in bits 8 to 12 of the clamp is 0x18.
    run("shfl.sync.down.b32 %v, %r0, 3, 0x1807, -1;", |t| if t % 8 < 5 { (t + 3) * 10 } else { t * 10 });
    run("shfl.sync.idx.b32 %v, %r0, 2, 0x1807, -1;", |t| (t / 8 * 8 + 2) * 10);
    run("shfl.sync.up.b32 %v, %r0, 3, 0x1800, -1;", |t| if t % 8 >= 3 { (t - 3) * 10 } else { t * 10 });
    run("shfl.sync.up.b32 %v|%p0, %r0, 4, 0, -1; selp.u32 %v, 1, 0, %p0;", |t| u32::from(t >= 4));
    run("shfl.sync.idx.b32 %v, %r0, %lane, 31, 0xFFFFFFFF;", |t| t * 10);
}

#[test]
fn a_shuffle_among_half_of_the_warp() {
    gives(
        "sm_80",
        "",
        "
        setp.lt.u32 %p0, %lane, 16; mov.u32 %v, 7;
        @%p0 shfl.sync.bfly.b32 %v, %lane, 1, 31, 0xFFFF;
        st.global.u32 [%mine], %v;",
        32,
        |t| if t < 16 { t ^ 1 } else { 7 },
    );
}

#[test]
fn votes() {
    let run = |instr: &str, want: fn(u32) -> u32| {
        let body = format!("setp.lt.u32 %p0, %lane, 5; setp.lt.u32 %p2, %lane, 32; {instr} st.global.u32 [%mine], %v;");
        gives("sm_80", "", &body, 32, want);
    };
    run("vote.sync.ballot.b32 %v, %p0, -1;", |_| 31);
    run("vote.sync.all.pred %p1, %p0, -1; selp.u32 %v, 1, 0, %p1;", |_| 0);
    run("vote.sync.all.pred %p1, %p2, -1; selp.u32 %v, 1, 0, %p1;", |_| 1);
    run("vote.sync.any.pred %p1, %p0, -1; selp.u32 %v, 1, 0, %p1;", |_| 1);
    run("vote.sync.any.pred %p1, !%p2, -1; selp.u32 %v, 1, 0, %p1;", |_| 0);
    run("vote.sync.uni.pred %p1, %p0, -1; selp.u32 %v, 1, 0, %p1;", |_| 0);
    run("vote.sync.uni.pred %p1, !%p2, -1; selp.u32 %v, 1, 0, %p1;", |_| 1);
    run("activemask.b32 %v;", |_| u32::MAX);
    run("@%p0 activemask.b32 %v; @!%p0 mov.u32 %v, 9;", |t| if t < 5 { 31 } else { 9 });
}

#[test]
fn matches_and_reductions() {
    let run = |instr: &str, want: fn(u32) -> u32| {
        let body = format!("and.b32 %r0, %lane, 1; cvt.u64.u32 %rd0, %r0; {instr} st.global.u32 [%mine], %v;");
        gives("sm_80", "", &body, 32, want);
    };
    run("match.any.sync.b32 %v, %r0, -1;", |t| if t % 2 == 0 { 0x5555_5555 } else { 0xAAAA_AAAA });
    run("match.any.sync.b64 %v, %rd0, -1;", |t| if t % 2 == 0 { 0x5555_5555 } else { 0xAAAA_AAAA });
    run("match.all.sync.b32 %v|%p0, %r0, -1;", |_| 0);
    run("mov.u32 %r1, 3; match.all.sync.b32 %v|%p0, %r1, -1; selp.u32 %v, %v, 0, %p0;", |_| u32::MAX);
    run("redux.sync.add.u32 %v, %lane, -1;", |_| 496);
    run("redux.sync.max.s32 %v, %lane, -1;", |_| 31);
    run("neg.s32 %r1, %lane; redux.sync.min.s32 %v, %r1, -1;", |_| (-31_i32) as u32);
    run("neg.s32 %r1, %lane; redux.sync.min.u32 %v, %r1, -1;", |_| 0);
    run("redux.sync.or.b32 %v, %lane, -1;", |_| 31);
    run("redux.sync.and.b32 %v, %lane, -1;", |_| 0);
    run("redux.sync.xor.b32 %v, %lane, -1;", |_| 0);
}

#[test]
fn one_thread_is_elected() {
    gives(
        "sm_90",
        "",
        "
        elect.sync %r0|%p0, -1; selp.u32 %v, 100, 0, %p0; add.u32 %v, %v, %r0; st.global.u32 [%mine], %v;",
        32,
        |t| if t == 0 { 100 } else { 0 },
    );
}

#[test]
fn special_registers() {
    gives("sm_80", "", "
        mov.u32 %r0, %ntid.x; mov.u32 %r1, %warpid; mov.u32 %r2, %lanemask_lt; popc.b32 %r2, %r2; mov.u32 %r3, %nctaid.y;
        mov.u32 %r4, %ctaid.x; mov.u32 %r5, %lanemask_ge; popc.b32 %r5, %r5; mov.u32 %r6, %clock; mov.u64 %rd0, %clock64;
        mad.lo.u32 %v, %r1, 1000, %r0; add.u32 %v, %v, %r2; add.u32 %v, %v, %r3; add.u32 %v, %v, %r4; add.u32 %v, %v, %r5;
        st.global.u32 [%mine], %v;", 64, |t| t / 32 * 1000 + 64 + t % 32 + 1 + (32 - t % 32));
}
