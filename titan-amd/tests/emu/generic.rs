//! Generic addresses (`flat_…`): lanes in global memory, in private memory and in the local data share, in one instruction.

use crate::harness::{Bench, ONE_POINTER, download, upload};
use crate::support::depth::tries;
use titan_amd::emu::{Arg, Completion, EmuError, Memory, Options, Schedule};

fn orders() -> Vec<Options> {
    let mut all = vec![(Completion::Late, Schedule::InTurn), (Completion::Early, Schedule::InTurn)];
    all.extend((1..=tries(20, 300)).map(|s| (Completion::Seeded(s), Schedule::Seeded(s))));
    all.into_iter().map(|(completion, schedule)| Options { completion, schedule, ..Options::default() }).collect()
}

/// One wave over 64 words, which hold their index; it stores `v4` at the end. Generic addresses of the lane's word are in `v[0:1]`
/// (global), `v[10:11]` (private) and `v[12:13]` (the local data share); `v[14:15]` is one of the three, by the lane's number.
fn run(body: &str, options: &Options) -> Result<Vec<u32>, EmuError> {
    let addresses = "
        s_mov_b64 s[12:13], src_private_base
        s_mov_b64 s[14:15], src_shared_base
        v_mov_b32_e32 v11, s13
        v_mov_b32_e32 v10, 8
        v_mov_b32_e32 v13, s15
        v_mov_b32_e32 v12, v3
        s_mov_b32 s16, 0x49249249
        s_mov_b32 s17, 0x92492492
        s_mov_b32 s18, 0x92492492
        s_mov_b32 s19, 0x24924924
        v_cndmask_b32_e64 v14, v0, v10, s[16:17]
        v_cndmask_b32_e64 v15, v1, v11, s[16:17]
        v_cndmask_b32_e64 v14, v14, v12, s[18:19]
        v_cndmask_b32_e64 v15, v15, v13, s[18:19]\n";
    let mut bench = Bench::pointers(1);
    bench.private = 64;
    let mut memory = Memory::new();
    let x = upload(&mut memory, "x", &(0..64).collect::<Vec<u32>>());
    let end = "s_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v[0:1], v4, off\ns_endpgm";
    let text = format!("{ONE_POINTER}{addresses}v_mov_b32_e32 v5, 77\nv_mov_b32_e32 v6, 88\n{body}\n{end}");
    bench.run(&text, (1, 64), &[Arg::Ptr(x)], &mut memory, options)?;
    download(&memory, x, 64)
}

fn right(body: &str, want: impl Fn(u32) -> u32) {
    for options in orders() {
        let got = run(body, &options).unwrap_or_else(|e| panic!("{options:?}\n{body}\n{e}"));
        assert!(got.iter().zip(0..).all(|(y, l)| *y == want(l)), "{options:?}\n{body}\n{got:?}");
    }
}

fn in_flight(body: &str) {
    let error = run(body, &Options::default()).map(|w| format!("{w:?}")).unwrap_err();
    assert_eq!(error.code().name(), "in-flight", "{body}:\n{error}");
}

const ALL: &str = "s_waitcnt vmcnt(0) lgkmcnt(0)";

#[test]
fn operations_of_a_lane_on_one_address_are_in_order() {
    // By generic addresses of every kind, and mixed with the instructions of one memory.
    for address in ["v[0:1]", "v[10:11]", "v[12:13]", "v[14:15]"] {
        right(&format!("flat_store_dword {address}, v5\nflat_load_dword v4, {address}\n{ALL}"), |_| 77);
        right(
            &format!(
                "flat_store_dword {address}, v5\nflat_store_dword {address}, v6\nflat_load_dword v4, {address}\n{ALL}"
            ),
            |_| 88,
        );
        right(
            &format!(
                "flat_store_dword {address}, v5\nflat_load_dword v4, {address}\nflat_store_dword {address}, v6\n{ALL}"
            ),
            |_| 77,
        );
        right(
            &format!("flat_store_dword {address}, v5\nflat_atomic_add v4, {address}, v6 sc0\n{ALL}")
                .replace("v[10:11]", "v[0:1]"),
            |_| 77,
        );
    }
    for (store, load) in [
        ("global_store_dword v[0:1], v5, off", "flat_load_dword v4, v[0:1]"),
        ("flat_store_dword v[0:1], v5", "global_load_dword v4, v[0:1], off"),
        ("scratch_store_dword v10, v5, off", "flat_load_dword v4, v[10:11]"),
        ("flat_store_dword v[10:11], v5", "scratch_load_dword v4, v10, off"),
        ("ds_write_b32 v12, v5", "flat_load_dword v4, v[12:13]"),
        ("flat_store_dword v[12:13], v5", "ds_read_b32 v4, v12"),
    ] {
        right(&format!("{store}\n{load}\n{ALL}"), |_| 77);
    }
}

#[test]
fn each_lane_waits_for_the_counter_of_its_memory() {
    let load = |address: &str, wait: &str| {
        let store = "flat_store_dword v[14:15], v5\nflat_store_dword v[12:13], v5\nflat_store_dword v[10:11], v5\ns_waitcnt vmcnt(0) lgkmcnt(0)";
        format!("{store}\nflat_load_dword v9, {address}\n{wait}\nv_add_u32_e32 v4, 1, v9")
    };
    for address in ["v[10:11]", "v[12:13]", "v[14:15]"] {
        right(&load(address, ALL), |_| 78);
    }
    // Only `vmcnt` for global and private memory, only `lgkmcnt` for the local data share: the other counter is for no lane of these.
    right(&load("v[10:11]", "s_waitcnt vmcnt(0)"), |_| 78);
    right(&load("v[12:13]", "s_waitcnt lgkmcnt(0)"), |_| 78);
    in_flight(&load("v[10:11]", "s_waitcnt lgkmcnt(0)"));
    in_flight(&load("v[12:13]", "s_waitcnt vmcnt(0)"));
    in_flight(&load("v[14:15]", "s_waitcnt vmcnt(0)"));
    in_flight(&load("v[14:15]", "s_waitcnt lgkmcnt(0)"));
}

#[test]
fn both_counters_count_and_only_zero_says_something() {
    // An operation in flight by generic addresses completes in any order with others.
    for (wait, used) in [("vmcnt(1)", "v8"), ("vmcnt(1)", "v9"), ("vmcnt(2)", "v8")] {
        in_flight(&format!(
            "global_load_dword v8, v[0:1], off\nflat_load_dword v9, v[0:1]\nglobal_load_dword v7, v[0:1], off
            s_waitcnt {wait}\nv_mov_b32_e32 v4, {used}"
        ));
    }
    in_flight(
        "ds_write_b32 v12, v5\nds_read_b32 v8, v12\nflat_load_dword v9, v[0:1]\ns_waitcnt lgkmcnt(1)\nv_mov_b32_e32 v4, v8",
    );
    // It is over for one counter, and in flight for the other: the first one counts as usual.
    right(
        "flat_load_dword v9, v[0:1]\ns_waitcnt vmcnt(0)\nglobal_load_dword v8, v[0:1], off\nglobal_load_dword v7, v[0:1], off
        s_waitcnt vmcnt(1)\nv_add_u32_e32 v4, v8, v9",
        |l| 2 * l,
    );
    right(
        "flat_load_dword v9, v[0:1]\ns_waitcnt lgkmcnt(0)\nds_write_b32 v12, v5\nds_read_b32 v8, v12\nds_read_b32 v7, v12
        s_waitcnt lgkmcnt(1)\nv_mov_b32_e32 v4, v8",
        |_| 77,
    );
}

#[test]
fn waves_that_exchange_through_the_local_data_share_wait_for_its_counter_only() {
    // Reverses 128 words: a store by generic addresses is over for the local data share when `lgkmcnt` says so.
    let body = |wait: &str| {
        format!(
            "{ONE_POINTER}s_mov_b64 s[14:15], src_shared_base\nv_mov_b32_e32 v13, s15\nv_mov_b32_e32 v12, v3\nv_mov_b32_e32 v11, s15
            v_sub_u32_e32 v10, 0x1fc, v3\nflat_store_dword v[12:13], v2\n{wait}\ns_barrier
            flat_load_dword v4, v[10:11]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v[0:1], v4, off\ns_endpgm"
        )
    };
    let run = |text: &str, options: &Options| {
        let mut memory = Memory::new();
        let x = upload(&mut memory, "x", &[0; 128]);
        Bench::pointers(1).run(text, (1, 128), &[Arg::Ptr(x)], &mut memory, options)?;
        download(&memory, x, 128)
    };
    for options in orders() {
        let got = run(&body("s_waitcnt lgkmcnt(0)"), &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert!(got.iter().zip(0..128).all(|(y, l)| *y == 127 - l), "{options:?}: {got:?}");
    }
    for wait in ["", "s_waitcnt vmcnt(0)"] {
        let error = run(&body(wait), &Options::default()).unwrap_err();
        assert_eq!(error.code().name(), "race", "{wait}: {error}");
    }
}
