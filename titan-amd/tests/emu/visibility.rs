//! What waves see of each other's global memory: those of a workgroup share a cache, which performs operations in the order of issue, so
//! that a barrier orders them without a wait; other workgroups see a store when it is complete.

use crate::harness::{Bench, ONE_POINTER, download, upload};
use crate::support::depth::tries;
use titan_amd::emu::{Arg, Completion, Memory, Options, Schedule};

/// Late, early, and in random orders.
fn orders() -> Vec<Options> {
    let random = |s| (Completion::Seeded(s), Schedule::Seeded(s));
    let mut all = vec![(Completion::Late, Schedule::InTurn), (Completion::Early, Schedule::InTurn)];
    all.extend((1..=6).map(|s| (Completion::Late, Schedule::Seeded(s))));
    all.extend((1..=tries(12, 200)).map(random));
    all.into_iter().map(|(completion, schedule)| Options { completion, schedule, ..Options::default() }).collect()
}

/// Runs workgroups of two waves over 512 words, which hold their index. The words' addresses are in `v[0:1]` by lane, in `s[8:9]` for the
/// first word; `v2` is the lane in the workgroup, `s20` the wave, `s2` the workgroup.
fn run(groups: u32, body: &str, options: &Options) -> Vec<u32> {
    let wave = "v_lshrrev_b32_e32 v4, 6, v2\ns_nop 0\nv_readfirstlane_b32 s20, v4\n";
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &(0..512).collect::<Vec<u32>>());
    let text = format!("{ONE_POINTER}{wave}{body}\ns_endpgm");
    let done = Bench::pointers(1).run(&text, (groups, 128), &[Arg::Ptr(x)], &mut memory, options);
    done.unwrap_or_else(|e| panic!("{options:?}\n{body}\n{e}"));
    download(&memory, x, 512).unwrap()
}

/// The word of the lane in the other wave is in `v4`; `v5` is its offset.
const OTHER: &str = "v_xor_b32_e32 v5, 64, v2\nv_lshlrev_b32_e32 v5, 2, v5\n";

#[test]
fn a_load_after_a_barrier_sees_the_stores_before_it() {
    let body = format!(
        "{OTHER}v_mul_u32_u24_e32 v6, 3, v2\nglobal_store_dword v[0:1], v6, off\ns_barrier
        global_load_dword v4, v5, s[8:9]\ns_waitcnt vmcnt(0)\nglobal_store_dword v[0:1], v4, off offset:1024"
    );
    for options in orders() {
        let got = run(1, &body, &options);
        assert!((0..128).all(|l| got[256 + l] == 3 * (l as u32 ^ 64)), "{options:?}: {got:?}");
    }
    // Without the barrier, the wave that runs first sees what was there before.
    let got = run(1, &body.replace("s_barrier\n", ""), &Options::default());
    assert!((0..64).all(|l| got[256 + l] == l as u32 ^ 64), "{got:?}");
}

#[test]
fn a_store_after_a_barrier_does_not_overtake_the_loads_before_it() {
    for (load, wait, result) in [
        ("global_load_dword v4, v5, s[8:9]", "vmcnt(0)", "global_store_dword v[0:1], v4, off offset:1024"),
        // A load into the local data share: it reads before the store, and writes when it completes.
        (
            "s_lshl_b32 s22, s20, 8\ns_mov_b32 m0, s22\ns_nop 0\nglobal_load_lds_dword v5, s[8:9]",
            "vmcnt(0)",
            "v_lshlrev_b32_e32 v7, 2, v2\nds_read_b32 v4, v7\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v[0:1], v4, off offset:1024",
        ),
        ("global_atomic_add v4, v5, v7, s[8:9] sc0", "vmcnt(0)", "global_store_dword v[0:1], v4, off offset:1024"),
    ] {
        let body = format!(
            "{OTHER}v_mul_u32_u24_e32 v6, 3, v2\nv_mov_b32_e32 v7, 0\n{load}\ns_barrier
            global_store_dword v[0:1], v6, off\ns_waitcnt {wait}\n{result}"
        );
        for options in orders() {
            let got = run(1, &body, &options);
            assert!((0..128).all(|l| got[256 + l] == l as u32 ^ 64), "{load}: {options:?}: {got:?}");
            assert!((0..128).all(|l| got[l] == 3 * l as u32), "{load}: {options:?}: {got:?}");
        }
    }
}

#[test]
fn the_later_of_two_stores_stays_and_atomics_come_after_stores() {
    // Wave 0 stores, and after the barrier wave 1 does: whole words, or bytes of them.
    let stores = |second: &str| {
        format!(
            "{OTHER}v_mov_b32_e32 v6, 17\nv_mov_b32_e32 v7, 34\ns_cmp_eq_u32 s20, 0\ns_cbranch_scc0 2
            global_store_dword v[0:1], v6, off\ns_barrier\ns_cmp_eq_u32 s20, 1\ns_cbranch_scc0 end\n{second}\nend:\ns_nop 0"
        )
    };
    for (second, want) in [
        ("global_store_dword v5, v7, s[8:9]", 34),
        ("global_store_byte v5, v7, s[8:9] offset:2", 34 << 16 | 17),
        ("global_atomic_add v5, v7, s[8:9]", 51),
        ("global_atomic_add v4, v5, v7, s[8:9] sc0\ns_waitcnt vmcnt(0)\nglobal_store_dword v5, v4, s[8:9]", 17),
        // A load sees bytes of both.
        (
            "global_store_byte v5, v7, s[8:9] offset:1\nglobal_load_dword v4, v5, s[8:9]\ns_waitcnt vmcnt(0)
          v_add_u32_e32 v4, 1, v4\nglobal_store_dword v5, v4, s[8:9]",
            34 << 8 | 18,
        ),
    ] {
        let body = stores(second).replace(
            "s_cbranch_scc0 2\n            global_store_dword v[0:1], v6, off\ns_barrier",
            "s_cbranch_scc0 over\nglobal_store_dword v[0:1], v6, off\nover:\ns_barrier",
        );
        for options in orders() {
            let got = run(1, &body, &options);
            assert!((0..64).all(|l| got[l] == want), "{second}: {options:?}: {got:?}");
        }
    }
}

#[test]
fn what_is_told_through_the_local_data_share_comes_after_what_was_stored() {
    // Wave 0 stores and then raises a flag; wave 1 waits for the flag and loads. No wait for the store is needed.
    let body = "
        v_mov_b32_e32 v6, 17
        v_mov_b32_e32 v7, 0
        v_mov_b32_e32 v8, 1
        s_cmp_eq_u32 s20, 0
        s_cbranch_scc0 second
        ds_write_b32 v7, v7
        s_waitcnt lgkmcnt(0)
        s_barrier
        global_store_dword v[0:1], v6, off
        ds_write_b32 v7, v8
        s_endpgm
    second:
        s_barrier
    again:
        ds_read_b32 v9, v7
        s_waitcnt lgkmcnt(0)
        v_readfirstlane_b32 s21, v9
        s_cmp_eq_u32 s21, 1
        s_cbranch_scc0 again
        v_xor_b32_e32 v5, 64, v2
        v_lshlrev_b32_e32 v5, 2, v5
        global_load_dword v4, v5, s[8:9]
        s_waitcnt vmcnt(0)
        global_store_dword v[0:1], v4, off";
    for options in orders() {
        // The sanitizer knows no order by flags.
        let got = run(1, body, &Options { sanitize: false, hazards: false, ..options.clone() });
        assert!((64..128).all(|l| got[l] == 17), "{options:?}: {got:?}");
    }
}

#[test]
fn another_workgroup_sees_a_store_when_it_is_complete() {
    // Workgroup 0: wave 0 stores data, and after a barrier wave 1 raises a flag. Workgroup 1 waits for the flag and loads the data. Wave 0
    // goes on for a while: a barrier alone says nothing to another workgroup.
    let body = |wait: &str| {
        format!(
            "
        s_cmp_eq_u32 s2, 1
        s_cbranch_scc1 reader
        v_mov_b32_e32 v6, 17
        v_mov_b32_e32 v7, 0
        s_cmp_eq_u32 s20, 0
        s_cbranch_scc0 flag
        global_store_dword v[0:1], v6, off
        {wait}
        s_barrier
        s_movk_i32 s21, 0x2000
    delay:
        s_sub_u32 s21, s21, 1
        s_cmp_eq_u32 s21, 0
        s_cbranch_scc0 delay
        s_endpgm
    flag:
        s_barrier
        global_store_dword v7, v6, s[8:9] offset:2044 sc1
        s_endpgm
    reader:
        v_mov_b32_e32 v7, 0
    again:
        s_sleep 1
        global_load_dword v9, v7, s[8:9] offset:2044 sc1
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s21, v9
        s_cmp_eq_u32 s21, 17
        s_cbranch_scc0 again
        global_load_dword v4, v[0:1], off
        s_waitcnt vmcnt(0)
        global_store_dword v[0:1], v4, off offset:1024"
        )
    };
    for options in orders() {
        let got = run(2, &body("s_waitcnt vmcnt(0)"), &Options { hazards: false, ..options.clone() });
        assert!((0..64).all(|l| got[256 + l] == 17), "{options:?}: {got:?}");
    }
    let late = run(2, &body(""), &Options { hazards: false, ..Options::default() });
    assert!((0..64).all(|l| late[256 + l] == l as u32), "{late:?}");
}
