//! Every kernel on every number of steps from 0 to 3 D + 1, ragged, in every mode; in the quick depth, modes take turns from one number of
//! steps to the next.

use super::harness::{Arg, Code, Tensor, by_swing, embedded, modes, with_free};
use super::kernels::{self, Multiply};
use titan_core::plan::FreeBy;
use titan_nv::emu::Options;

const M: i32 = 37;
const N: i32 = 24;

/// C = A · Bᵀ, of the steps that are kept.
fn product(a: &Tensor, b: &Tensor, k: i32, keep: impl Fn(i32) -> bool) -> Vec<f32> {
    let at = |t: &Tensor, r: i32, c: i32| t.values[(r * k + c) as usize];
    let sum = |m: i32, n: i32| (0..k).filter(|i| keep(i / 16)).map(|i| at(a, m, i) * at(b, n, i)).sum();
    (0..M).flat_map(|m| (0..N).map(move |n| (m, n))).map(|(m, n)| sum(m, n)).collect()
}

fn check(code: &Code, k: i32, grid: [u32; 3], keep: impl Fn(i32) -> bool, what: &str) {
    let (a, b) = (Tensor::whole(&[M, k], true, 1), Tensor::whole(&[N, k], true, 2));
    let wanted = product(&a, &b, k, keep);
    for options in modes_of(k, grid) {
        let c = Tensor::new(&[M, N], false, |_| f32::NAN);
        let args = [Arg::In(a.clone()), Arg::In(b.clone()), Arg::Out(c)];
        let found = code.run(&args, grid, &options).unwrap_or_else(|e| panic!("{what}, k = {k}, {options:?}: {e}"));
        assert_eq!(found, wanted, "{what}, k = {k}, {options:?}");
    }
}

/// The modes of a sum over `k`.
fn modes_of(k: i32, grid: [u32; 3]) -> Vec<Options> {
    let (all, steps) = (modes(), (k + 8) / 16);
    let turn = (steps as usize + grid[0] as usize) % all.len();
    if test_depth::is_full() { all } else { vec![all[turn].clone()] }
}

/// Numbers of steps up to 3 D + 1; the last step is ragged or not.
fn depths(slots: i32) -> impl Iterator<Item = i32> {
    (0..=3 * slots + 1).map(|n| if n % 2 == 1 { 16 * n - 8 } else { 16 * n })
}

const GRID: [u32; 3] = [2, 2, 1];

#[test]
fn loops_are_pipelined() {
    let code = embedded(&kernels::implicit(), true);
    assert!(
        code.notes.iter().any(|n| n == "pipelined: `at`, `bt` in 4 slots, copied 3 iterations ahead"),
        "{:?}",
        code.notes
    );
    depths(4).for_each(|k| check(&code, k, GRID, |_| true, "implicit"));
    let plain = embedded(&kernels::implicit(), false);
    [0, 1, 17, 40].into_iter().for_each(|k| check(&plain, k, GRID, |_| true, "implicit, unaligned"));
}

#[test]
fn one_role_copies_and_one_multiplies() {
    for (slots, how) in [
        (1, Multiply::AtOnce),
        (2, Multiply::Token),
        (3, Multiply::Acc(1)),
        (4, Multiply::Registers),
        (3, Multiply::Acc(2)),
    ] {
        let text = kernels::roles(slots, [1, 4], how);
        let fused = embedded(&text, true);
        assert!(fused.notes.iter().any(|n| n.starts_with("roles fused")), "{:?}", fused.notes);
        let parted = with_free(&text, FreeBy::Mbarrier, true);
        for k in depths(slots as i32) {
            check(&fused, k, GRID, |_| true, &format!("{slots} slots, {how:?}, fused"));
            check(&parted, k, GRID, |_| true, &format!("{slots} slots, {how:?}"));
        }
        let plain = embedded(&text, false);
        [0, 7, 35].into_iter().for_each(|k| check(&plain, k, GRID, |_| true, "roles, unaligned"));
    }
}

#[test]
fn loops_that_the_modulo_scheduler_places_compute_the_same() {
    let kernels = [
        kernels::implicit(),
        kernels::roles(2, [1, 4], Multiply::AtOnce),
        kernels::roles(3, [1, 4], Multiply::Registers),
        kernels::roles(4, [1, 4], Multiply::Token),
    ];
    let mut placed = 0;
    for text in kernels {
        let (code, differs) = by_swing(&text);
        placed += usize::from(differs);
        depths(4).for_each(|k| check(&code, k, GRID, |_| true, &text));
    }
    assert!(placed >= 2, "{placed} schedules differ from the rule's");
}

#[test]
fn coordinates_that_are_loaded_are_loaded_ahead() {
    for (slots, may_be_none) in [(2, false), (3, true), (4, false)] {
        let text = kernels::paged(slots, may_be_none);
        let fused = embedded(&text, true);
        let ahead = if slots == 2 { "1 iteration" } else { &format!("{} iterations", slots - 1) };
        let wanted = format!("roles fused: all warps copy {ahead} ahead and compute");
        assert!(fused.notes.contains(&wanted), "{:?}", fused.notes);
        for code in [fused, with_free(&text, FreeBy::Mbarrier, true)] {
            for k in depths(slots as i32) {
                let (a, b) = (Tensor::whole(&[M, k], true, 1), Tensor::whole(&[N, k], true, 2));
                let steps = (k + 15) / 16;
                let keeps = |step: i32| !may_be_none || step % 3 != 1;
                let pages = Tensor::new(&[steps], false, |t| {
                    let step = steps - 1 - t as i32;
                    if keeps(step) { step as f32 } else { -1.0 }
                });
                let wanted = product(&a, &b, k, keeps);
                for options in modes_of(k, GRID) {
                    let c = Tensor::new(&[M, N], false, |_| f32::NAN);
                    let args = [Arg::In(a.clone()), Arg::In(b.clone()), Arg::Out(c), Arg::In(pages.clone())];
                    let found = code.run(&args, GRID, &options).unwrap_or_else(|e| panic!("k = {k}, {options:?}: {e}"));
                    assert_eq!(found, wanted, "{slots} slots, k = {k}, {options:?}");
                }
            }
        }
    }
}

#[test]
fn slots_are_released_by_counters_too() {
    for slots in [1, 3] {
        let code = with_free(&kernels::roles(slots, [2, 4], Multiply::AtOnce), FreeBy::Sequence, true);
        depths(slots as i32).for_each(|k| check(&code, k, GRID, |_| true, &format!("{slots} slots, by numbers")));
    }
}

#[test]
fn clocks_run_on_over_the_tiles_of_a_persistent_program() {
    let text = kernels::persistent(3);
    let fused = embedded(&text, true);
    assert!(
        fused.notes.iter().any(|n| n == "roles fused: all warps copy 2 iterations ahead and compute"),
        "{:?}",
        fused.notes
    );
    for code in [fused, with_free(&text, FreeBy::Mbarrier, true)] {
        for k in [0, 16, 40, 64, 120] {
            for programs in [1, 3] {
                check(&code, k, [programs, 1, 1], |_| true, "persistent");
            }
        }
    }
}

#[test]
fn all_warps_copy_ahead_of_what_they_multiply() {
    for (slots, ahead) in [(1, 0), (2, 1), (4, 3), (4, 2)] {
        let code = embedded(&kernels::one_thread(slots, ahead), true);
        depths(slots as i32).for_each(|k| check(&code, k, GRID, |_| true, &format!("{slots} slots, {ahead} ahead")));
    }
}

#[test]
fn skipped_steps_are_zeros_or_passed_over() {
    for poison in [false, true] {
        let code = embedded(&kernels::skipping(2, poison), true);
        depths(2).for_each(|k| check(&code, k, GRID, |step| step % 2 == 1, &format!("poison {poison}")));
    }
}

#[test]
fn results_leave_through_a_staging_ring() {
    let code = embedded(&kernels::staged(2), true);
    [0, 16, 56].into_iter().for_each(|k| check(&code, k, GRID, |_| true, "staged"));
}

#[test]
fn two_roles_read_every_stage() {
    for free in [FreeBy::Mbarrier, FreeBy::Sequence] {
        let code = with_free(&kernels::two_readers(2), free, true);
        for k in depths(2) {
            let (a, b) = (Tensor::whole(&[M, k], true, 1), Tensor::whole(&[N, k], true, 2));
            let wanted = product(&a, &b, k, |_| true);
            for options in modes_of(k, GRID) {
                let empty = || Tensor::new(&[M, N], false, |_| f32::NAN);
                for both in [false, true] {
                    let (first, second) = (Arg::Out(empty()), Arg::Out(empty()));
                    let args =
                        [Arg::In(a.clone()), Arg::In(b.clone()), if both { second } else { first }, Arg::Out(empty())];
                    let found = code
                        .run(&args, GRID, &options)
                        .unwrap_or_else(|e| panic!("k = {k}, {free:?}, {options:?}: {e}"));
                    assert_eq!(found, wanted, "k = {k}, {free:?}, {options:?}");
                }
            }
        }
    }
}

#[test]
fn rings_that_do_not_fit_have_fewer_slots() {
    // Eight slots of 1536 bytes fit; of tiles sixteen times as large they do not.
    let text = kernels::roles(8, [1, 4], Multiply::Acc(1));
    assert!(!embedded(&text, true).notes.iter().any(|n| n.contains("is short")));
    let large = text
        .replace("32x16xf16", "128x64xf16")
        .replace("16x16xf16", "64x64xf16")
        .replace("bytes = 1536", "bytes = 24576");
    let large = large
        .replace("32x16xf32", "128x64xf32")
        .replace("const 15 :", "const 63 :")
        .replace("const 16 :", "const 64 :");
    let code = embedded(&large.replace("cdiv(M, 32), cdiv(N, 16)", "cdiv(M, 128), cdiv(N, 64)"), true);
    let note = code.notes.iter().find(|n| n.contains("is short")).unwrap();
    assert_eq!(note, "the shared memory of sm_80 is short: `ring` has 4 of its 8 slots");
}

#[test]
fn copies_run_ahead_rather_than_that_every_slot_is_kept() {
    // Three slots of 32 KiB fit beside nothing else: two let copies run ahead, with three they would not.
    let large = kernels::persistent(3)
        .replace("16x16xf16", "128x64xf16")
        .replace("32x16xf16", "128x64xf16")
        .replace("bytes = 1536", "bytes = 32768")
        .replace("32x16xf32", "128x128xf32")
        .replace("const 15 :", "const 127 :")
        .replace("const 16 :", "const 128 :")
        .replace("const 31 :", "const 127 :")
        .replace("const 32 :", "const 128 :")
        .replace("%c: mut tensor<f32>", "%c: mut tensor<f16>")
        .replace(
            "        store_tile %c[%m.2, %n.2], %end\n",
            "        %half = cast %end : tile<128x128xf16>\n        store_tile %c[%m.2, %n.2], %half\n",
        );
    for aligned in [true, false] {
        let notes = embedded(&large, aligned).notes;
        let fused = notes.iter().find_map(|n| n.strip_prefix("roles fused: all warps copy ")).expect("fused roles");
        let distance: u32 = fused.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(distance >= 1, "{notes:?}");
    }
}

#[test]
fn loops_that_begin_anywhere_are_pipelined() {
    // Steps `lo..hi` of the sum, as a split over k has them; near 2³¹ nothing may wrap.
    let text = kernels::implicit()
        .replace("%c: mut tensor<f32>[M, N])", "%c: mut tensor<f32>[M, N], %lo: i32)")
        .replace("for %t = %zero to %steps", "for %t = %lo to %steps");
    let code = embedded(&text, true);
    assert!(code.notes.iter().any(|n| n.starts_with("pipelined: `at`, `bt` in 4 slots")), "{:?}", code.notes);
}
