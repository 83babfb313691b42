//! Threads that diverge and reconverge.

use crate::harness::gives;

#[test]
fn both_sides_of_a_branch_then_together() {
    // The vote needs all threads: they have met again.
    gives(
        "sm_80",
        "",
        "
        setp.lt.u32 %p0, %lane, 10;
        @%p0 bra LESS;
        mov.u32 %r0, 5; bra.uni DONE;
        LESS: mov.u32 %r0, 7;
        DONE: vote.sync.ballot.b32 %r1, %p0, -1;
        add.u32 %v, %r0, %r1; st.global.u32 [%mine], %v;",
        32,
        |t| 0x3FF + if t < 10 { 7 } else { 5 },
    );
}

#[test]
fn loops_of_different_lengths() {
    gives(
        "sm_80",
        "",
        "
        mov.u32 %r0, 0; mov.u32 %r1, 0;
        LOOP: setp.ge.u32 %p0, %r1, %lane;
        @%p0 bra DONE;
        add.u32 %r1, %r1, 1; add.u32 %r0, %r0, %r1; bra LOOP;
        DONE: bar.warp.sync -1; shfl.sync.idx.b32 %r2, %r0, 31, 31, -1;
        add.u32 %v, %r0, %r2; st.global.u32 [%mine], %v;",
        32,
        |t| t * (t + 1) / 2 + 496,
    );
}

#[test]
fn a_cold_block_behind_the_end() {
    // Compilers put rare paths last; threads there have a greater position and are waited for all the same.
    gives(
        "sm_80",
        "",
        "
        setp.eq.u32 %p0, %lane, 3; mov.u32 %r0, 1;
        @%p0 bra RARE;
        BACK: bar.sync 0; redux.sync.add.u32 %v, %r0, -1; st.global.u32 [%mine], %v; ret;
        RARE: mov.u32 %r0, 100; bra BACK;",
        32,
        |_| 131,
    );
}

#[test]
fn nested_branches() {
    gives(
        "sm_80",
        "",
        "
        and.b32 %r0, %lane, 1; and.b32 %r1, %lane, 2; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0; mov.u32 %v, 0;
        @%p0 bra EVEN;
        @%p1 bra ODD1; add.u32 %v, %v, 1; ODD1: add.u32 %v, %v, 10; bra MEET;
        EVEN: @%p1 bra EVEN1; add.u32 %v, %v, 2; EVEN1: add.u32 %v, %v, 20;
        MEET: bar.sync 0; st.global.u32 [%mine], %v;",
        32,
        |t| match t % 4 {
            0 => 20,
            1 => 10,
            2 => 22,
            _ => 11,
        },
    );
}

#[test]
fn those_who_return_early_are_not_waited_for() {
    gives(
        "sm_80",
        "",
        "
        setp.gt.u32 %p0, %ti, 39;
        @%p0 ret;
        setp.lt.u32 %p1, %lane, 4;
        @%p1 bra FEW; mov.u32 %v, 1; bra JOIN;
        FEW: mov.u32 %v, 2;
        JOIN: bar.sync 0; st.global.u32 [%mine], %v;",
        64,
        |t| match t {
            40.. => 0,
            _ if t % 32 < 4 => 2,
            _ => 1,
        },
    );
}

#[test]
fn a_table_of_targets() {
    gives(
        "sm_80",
        "",
        "
        and.b32 %r0, %lane, 3;
        ts: .branchtargets A, B, C, A;
        brx.idx %r0, ts;
        A: mov.u32 %v, 1; bra END; B: mov.u32 %v, 2; bra END; C: mov.u32 %v, 3;
        END: bar.warp.sync -1; st.global.u32 [%mine], %v;",
        32,
        |t| [1, 2, 3, 1][(t % 4) as usize],
    );
}

#[test]
fn one_part_of_a_warp_may_wait_for_the_other() {
    // Lane 0 spins until lane 1, on the other side of the branch, has stored.
    gives(
        "sm_80",
        ".shared .align 4 .b32 flag;\n",
        "
        mov.u32 %r0, flag; setp.eq.u32 %p0, %lane, 0; @%p0 st.shared.u32 [%r0], 0; bar.sync 0;
        mov.u32 %v, 0;
        @%p0 bra SPIN;
        setp.ne.u32 %p1, %lane, 1; @%p1 bra JOIN;
        st.release.cta.shared.u32 [%r0], 5; bra JOIN;
        SPIN: ld.acquire.cta.shared.u32 %v, [%r0]; setp.eq.u32 %p2, %v, 0; @%p2 bra SPIN;
        JOIN: bar.sync 0; st.global.u32 [%mine], %v;",
        32,
        |t| if t == 0 { 5 } else { 0 },
    );
}

#[test]
fn partial_warps_have_no_other_threads() {
    gives(
        "sm_80",
        "",
        "
        bar.sync 0; activemask.b32 %v; st.global.u32 [%mine], %v;",
        40,
        |t| if t < 32 { u32::MAX } else { 0xFF },
    );
}
