//! Counters: what each wait says, when operations complete late, early and at random.

use crate::harness::over_words_with;
use titan_amd::emu::{Completion, EmuError, Options, Schedule};

fn orders() -> Vec<Options> {
    let random = (0..6).map(Completion::Seeded);
    [Completion::Late, Completion::Early]
        .into_iter()
        .chain(random)
        .map(|completion| Options { completion, schedule: Schedule::Seeded(1), ..Options::default() })
        .collect()
}

/// What happens in each order, over 64 words.
fn all(body: &str) -> Vec<Result<Vec<u32>, EmuError>> {
    let words: Vec<u32> = (0..64).collect();
    orders().iter().map(|o| over_words_with(body, &words, o)).collect()
}

/// Right in every order.
fn right(body: &str, want: impl Fn(u32) -> u32) {
    for (result, options) in all(body).into_iter().zip(orders()) {
        let got = result.unwrap_or_else(|e| panic!("{:?}: {e}", options.completion));
        assert!(got.iter().zip(0..).all(|(y, l)| *y == want(l)), "{:?}: {got:?}", options.completion);
    }
}

/// An error where completion is late.
fn wrong(body: &str, code: &str) {
    let late = all(body).remove(0);
    let error = late.map(|w| format!("{w:?}")).unwrap_err();
    assert_eq!(error.code().name(), code, "{body}:\n{error}");
}

#[test]
fn vector_memory_completes_in_order() {
    let two = |wait: &str, used: &str| {
        format!(
            "global_load_dword v5, v[0:1], off\nglobal_load_dword v6, v[0:1], off\n{wait}
            v_add_u32_e32 v4, 1, {used}\ns_waitcnt vmcnt(0)"
        )
    };
    right(&two("s_waitcnt vmcnt(1)", "v5"), |l| l + 1);
    right(&two("s_waitcnt vmcnt(0)", "v6"), |l| l + 1);
    wrong(&two("s_waitcnt vmcnt(1)", "v6"), "in-flight");
    wrong(&two("s_waitcnt vmcnt(2)", "v5"), "in-flight");
    wrong(&two("s_waitcnt lgkmcnt(0)", "v5"), "in-flight");
}

#[test]
fn stores_count_among_loads() {
    let body = |n: u32| {
        format!(
            "v_mov_b32_e32 v7, 5\nglobal_load_dword v5, v[0:1], off\nglobal_store_dword v[0:1], v7, off
            s_waitcnt vmcnt({n})\nv_add_u32_e32 v4, 1, v5\ns_waitcnt vmcnt(0)"
        )
    };
    right(&body(1), |l| l + 1);
    wrong(&body(2), "in-flight");
}

#[test]
fn data_of_stores_are_captured_at_issue() {
    // The register is written again before the store is done.
    right(
        "v_mov_b32_e32 v5, 7\nglobal_store_dword v[0:1], v5, off\nv_mov_b32_e32 v5, 8
        s_waitcnt vmcnt(0)\nglobal_load_dword v4, v[0:1], off\ns_waitcnt vmcnt(0)",
        |_| 7,
    );
}

#[test]
fn the_local_data_share_completes_in_order_and_scalar_memory_does_not() {
    let two = |n: u32| {
        format!(
            "v_lshlrev_b32_e32 v7, 2, v2\nds_write_b32 v7, v3\nds_read_b32 v5, v7\nds_read_b32 v6, v7
            s_waitcnt lgkmcnt({n})\nv_add_u32_e32 v4, 1, v5\ns_waitcnt lgkmcnt(0)"
        )
    };
    right(&two(1), |l| l + 1);
    wrong(&two(2), "in-flight");
    let scalar = |n: u32| {
        format!(
            "s_load_dwordx2 s[20:21], s[0:1], 0x0\ns_load_dwordx2 s[22:23], s[0:1], 0x0\ns_waitcnt lgkmcnt({n})
            s_cmp_eq_u64 s[20:21], s[8:9]\ns_cselect_b32 s24, 1, 0\nv_mov_b32_e32 v4, s24\ns_waitcnt lgkmcnt(0)"
        )
    };
    right(&scalar(0), |_| 1);
    // Of scalar loads, one that is waited for may be the other one.
    wrong(&scalar(1), "in-flight");
}

#[test]
fn scalar_loads_complete_in_any_order() {
    // Some order completes the second before the first: then the first is in flight when it is used.
    let body = "s_load_dwordx2 s[20:21], s[0:1], 0x0\ns_load_dwordx2 s[22:23], s[0:1], 0x0
        s_nop 15\ns_nop 15\ns_nop 15\ns_nop 15\ns_nop 15\ns_nop 15\ns_nop 15\ns_nop 15
        v_mov_b32_e32 v4, s20\ns_waitcnt lgkmcnt(0)";
    let second = body.replace("v4, s20", "v4, s22");
    let seeds = |b: &str| -> Vec<bool> {
        (0..40)
            .map(|s| {
                let options = Options { completion: Completion::Seeded(s), ..Options::default() };
                over_words_with(b, &[0; 64], &options).is_ok()
            })
            .collect()
    };
    let (first, second) = (seeds(body), seeds(&second));
    let pairs: Vec<(bool, bool)> = first.into_iter().zip(second).collect();
    assert!(pairs.contains(&(true, false)) && pairs.contains(&(false, true)), "{pairs:?}");
}

#[test]
fn a_destination_in_flight_is_poison_until_it_is_waited_for() {
    wrong("v_mov_b32_e32 v4, 0\nglobal_load_dword v4, v[0:1], off\nv_mov_b32_e32 v4, 1", "in-flight");
    wrong(
        "v_lshlrev_b32_e32 v5, 2, v2\nglobal_load_dword v4, v[0:1], off\nds_read_b32 v4, v5\ns_waitcnt lgkmcnt(0)",
        "in-flight",
    );
    wrong("s_load_dword s20, s[0:1], 0x0\ns_mov_b32 s20, 0\nv_mov_b32_e32 v4, s20", "in-flight");
    // Loads of one counter into one register are in order.
    right("global_load_dword v4, v[0:1], off\nglobal_load_dword v4, v[0:1], off\ns_waitcnt vmcnt(0)", |l| l);
}

#[test]
fn a_counter_that_is_full_holds_the_wave() {
    // 64 loads: the first completes before the last is issued.
    let loads: String =
        (0..64).map(|i| format!("global_load_dword v{}, v[0:1], off\n", if i == 0 { 5 } else { 6 })).collect();
    right(&format!("{loads}v_add_u32_e32 v4, 1, v5\ns_waitcnt vmcnt(0)"), |l| l + 1);
    let fewer = loads.replacen("global_load_dword v6, v[0:1], off\n", "", 1);
    wrong(&format!("{fewer}v_add_u32_e32 v4, 1, v5\ns_waitcnt vmcnt(0)"), "in-flight");
}

#[test]
fn lanes_that_are_off_take_no_part() {
    let body = "v_mov_b32_e32 v4, 77
        v_cmp_gt_u32_e32 vcc, 8, v2\ns_nop 4\ns_and_saveexec_b64 s[20:21], vcc
        global_load_dword v4, v[0:1], off
        s_mov_b64 exec, s[20:21]
        s_waitcnt vmcnt(0)";
    right(body, |l| if l < 8 { l } else { 77 });
    // Their registers are not in flight either.
    let other = body.replace(
        "s_waitcnt vmcnt(0)",
        "s_andn2_b64 exec, s[20:21], vcc\nv_mov_b32_e32 v4, 78\ns_mov_b64 exec, s[20:21]\ns_waitcnt vmcnt(0)",
    );
    right(&other, |l| if l < 8 { l } else { 78 });
}

#[test]
fn waves_may_write_equal_bytes_and_no_others() {
    let body = |value: &str, order: &str| {
        format!(
            "v_mov_b32_e32 v5, 0\n{value}\nds_write_b32 v5, v6\ns_waitcnt lgkmcnt(0)\n{order}
            ds_read_b32 v4, v5\ns_waitcnt lgkmcnt(0)"
        )
    };
    let run = |text: &str, completion: Completion| {
        let options = Options { completion, ..Options::default() };
        over_words_with(text, &[0; 128], &options)
    };
    let equal = "v_mov_b32_e32 v6, 7";
    for completion in [Completion::Late, Completion::Early, Completion::Seeded(3)] {
        assert_eq!(run(&body(equal, "s_barrier"), completion).unwrap(), [7; 128]);
        for (value, order) in [
            // The number of the wave; equal bytes, read before the other wave has written them.
            ("v_lshrrev_b32_e32 v6, 6, v2", "s_barrier"),
            (equal, ""),
        ] {
            let error = run(&body(value, order), completion).map(|w| format!("{value}: {w:?}")).unwrap_err();
            assert_eq!(error.code().name(), "race", "{value}: {error}");
        }
    }
}

/// Two loads to one register, each for half of the lanes; the second mask is the rest of the first one, or all lanes.
fn halves(second: &str, between: &str, after: &str) -> String {
    format!(
        "s_mov_b64 s[20:21], exec\ns_mov_b32 s22, 0x55555555\ns_mov_b32 s23, s22
        s_mov_b64 exec, s[22:23]\nglobal_load_dword v5, v[0:1], off\n{between}
        {second}\nglobal_load_dword v5, v[0:1], off
        s_mov_b64 exec, s[20:21]\n{after}\nv_add_u32_e32 v4, 1, v5\ns_waitcnt vmcnt(0)"
    )
}

#[test]
fn loads_to_different_lanes_of_a_register_are_awaited_together() {
    let rest = "s_not_b64 exec, s[22:23]";
    right(&halves(rest, "", "s_waitcnt vmcnt(0)"), |l| l + 1);
    right(&halves(rest, "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)"), |l| l + 1);
    // The first load is complete, the second one is not.
    wrong(&halves(rest, "", "s_waitcnt vmcnt(1)"), "in-flight");
    let first = "s_waitcnt vmcnt(1)\ns_mov_b64 exec, s[22:23]\nv_add_u32_e32 v6, 1, v5\ns_mov_b64 exec, s[20:21]
        s_waitcnt vmcnt(0)";
    right(&halves(rest, "", first), |l| l + 1);
    // Lanes that both loads write are busy until the second one is complete.
    let all = "s_mov_b64 exec, s[20:21]";
    right(&halves(all, "", "s_waitcnt vmcnt(0)"), |l| l + 1);
    wrong(&halves(all, "", "s_waitcnt vmcnt(1)"), "in-flight");
    // A read of the local data share is not ordered with the first load, though the latest load is of other lanes.
    let third = "s_mov_b64 exec, s[22:23]\nv_mov_b32_e32 v7, 0\nds_read_b32 v5, v7\ns_mov_b64 exec, s[20:21]
        s_waitcnt vmcnt(0) lgkmcnt(0)";
    wrong(&halves(rest, "", third), "in-flight");
}
