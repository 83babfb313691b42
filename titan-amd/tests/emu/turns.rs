//! Waves that wait for others in a loop let them run soon.

use crate::harness::{Bench, ONE_POINTER, upload};
use titan_amd::emu::{Arg, Memory, Options, Schedule};

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
