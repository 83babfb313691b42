//! Waves that wait for others in a loop let them run soon.

use crate::harness::{Bench, ONE_POINTER, upload};
use titan_amd::emu::{Arg, Completion, Memory, Options, Schedule};

/// How many instructions are executed until all waves have ended.
fn instructions(groups: u32, items: u32, body: &str, options: &Options) -> u64 {
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 1024]);
    let wave = "v_lshrrev_b32_e32 v4, 6, v2\ns_nop 0\nv_readfirstlane_b32 s20, v4\ns_nop 1\n";
    let text = format!("{ONE_POINTER}{wave}{body}\ns_endpgm");
    let run = Bench::pointers(1).run(&text, (groups, items), &[Arg::Ptr(x)], &mut memory, options);
    run.unwrap_or_else(|e| panic!("{e}")).instructions
}

/// Waits until the counter in the first word is that of the wave or workgroup, and increases it: everyone waits for the one before.
fn chain(number: &str, pause: &str) -> String {
    format!(
        "
        v_mov_b32_e32 v7, 0
        v_mov_b32_e32 v8, 1
        s_mov_b32 s22, {number}
    again:
        {pause}
        global_load_dword v9, v7, s[8:9] sc1
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s21, v9
        s_cmp_eq_u32 s21, s22
        s_cbranch_scc0 again
        s_mov_b64 exec, 1
        global_atomic_add v7, v8, s[8:9]"
    )
}

#[test]
fn a_wave_that_waits_for_another_one_lets_it_run() {
    for schedule in [Schedule::InTurn, Schedule::Seeded(1), Schedule::Seeded(2)] {
        for pause in ["s_nop 0", "s_sleep 1"] {
            let options = Options { schedule, hazards: false, ..Options::default() };
            // The last wave goes first, then the one before it: the worst order of turns.
            let waves = instructions(1, 1024, &chain("15\ns_sub_u32 s22, s22, s20", pause), &options);
            assert!(waves < 60_000, "{schedule:?}, {pause}: {waves}");
            let groups = instructions(8, 64, &chain("7\ns_sub_u32 s22, s22, s2", pause), &options);
            assert!(groups < 60_000, "{schedule:?}, {pause}: {groups}");
        }
    }
    // A wave that sleeps gives its turn away at once.
    let options = Options { hazards: false, ..Options::default() };
    let waves = instructions(1, 1024, &chain("15\ns_sub_u32 s22, s22, s20", "s_sleep 1"), &options);
    let groups = instructions(8, 64, &chain("7\ns_sub_u32 s22, s22, s2", "s_sleep 1"), &options);
    assert!(waves < 3_000 && groups < 3_000, "{waves}, {groups}");
}

/// Two workgroups of two waves, of which some wait for the others by flags in memory.
fn flags(body: &str, completion: Completion) -> u64 {
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &[0; 1024]);
    let wave = "v_lshrrev_b32_e32 v4, 6, v2\ns_nop 0\nv_readfirstlane_b32 s20, v4\nv_mov_b32_e32 v7, 0\nv_mov_b32_e32 v8, 1\ns_nop 1";
    let spin = |label: &str, at: u32| {
        format!(
            "{label}:\ns_sleep 1\nglobal_load_dword v9, v7, s[8:9] offset:{at} sc1\ns_waitcnt vmcnt(0)
            v_readfirstlane_b32 s21, v9\ns_cmp_eq_u32 s21, 0\ns_cbranch_scc1 {label}"
        )
    };
    let text = format!(
        "{ONE_POINTER}{wave}\n{}\ns_endpgm",
        body.replace("SPIN0", &spin("a", 0)).replace("SPIN1", &spin("b", 256))
    );
    let options = Options { completion, hazards: false, max_steps: 4_000_000, ..Options::default() };
    let run = Bench::pointers(1).run(&text, (2, 128), &[Arg::Ptr(x)], &mut memory, &options);
    run.unwrap_or_else(|e| panic!("{completion:?}: {e}")).instructions
}

/// A store that nobody waits for reaches memory in the end.
#[test]
fn a_store_for_another_workgroup_arrives_though_its_wave_waits_for_something_else() {
    for completion in [Completion::Late, Completion::Early, Completion::Seeded(4)] {
        // The first wave of workgroup 0 stores a flag and waits at the barrier; the second one comes to the barrier when workgroup 1, which
        // has seen the flag, has answered.
        let barrier = flags(
            "s_cmp_lg_u32 s2, 0
            s_cbranch_scc1 other
            s_cmp_lg_u32 s20, 0
            s_cbranch_scc1 second
            global_store_dword v7, v8, s[8:9] sc1
            s_branch join
            second:
            SPIN1
            join:
            s_barrier
            s_endpgm
            other:
            SPIN0
            global_store_dword v7, v8, s[8:9] offset:256 sc1",
            completion,
        );
        // It waits for the answer by scalar loads, which the counter of stores does not count.
        let scalar = flags(
            "s_cmp_lg_u32 s2, 0
            s_cbranch_scc1 other
            global_store_dword v7, v8, s[8:9] sc1
            again:
            s_sleep 1
            s_dcache_inv
            s_load_dword s23, s[8:9], 0x100
            s_waitcnt lgkmcnt(0)
            s_cmp_eq_u32 s23, 0
            s_cbranch_scc1 again
            s_endpgm
            other:
            SPIN0
            global_store_dword v7, v8, s[8:9] offset:256 sc1",
            completion,
        );
        assert!(barrier < 200_000 && scalar < 200_000, "{completion:?}: {barrier}, {scalar}");
    }
}
