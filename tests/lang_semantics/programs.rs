//! Programs, traps, and what a kernel prints and checks.

use titan::lang::{Tile, capture_prints, ops, run};
use titan::prelude::*;

use crate::tile;

#[test]
fn programs_run_in_order_each_with_its_ids() {
    let mut seen = Vec::new();
    run([2, 1, 3], || {
        seen.push([program_id(0), program_id(1), program_id(2)]);
        assert_eq!([num_programs(0), num_programs(1), num_programs(2)], [2, 1, 3]);
    })
    .unwrap();
    assert_eq!(seen, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1], [0, 0, 2], [1, 0, 2]]);
    run([0, 5, 5], || unreachable!("an empty grid has no programs")).unwrap();
}

#[test]
fn a_trap_names_its_program_and_ends_the_run() {
    let mut ran = 0;
    let trap = run([4, 1, 1], || {
        ran += 1;
        tassert!(ops::lt(program_id(0), 2), "program {} is not below 2", program_id(0));
    })
    .unwrap_err();
    assert_eq!((ran, trap.program, trap.message.as_str()), (3, [2, 0, 0], "program 2 is not below 2"));
    assert!(trap.to_string().contains("programs.rs:") && trap.to_string().ends_with("(program 2, 0, 0)"));
    let trap = run([1, 1, 1], || _ = program_id(3)).unwrap_err();
    assert_eq!(trap.message, "a grid has no axis 3: 0, 1 or 2");
}

#[test]
fn assertions_take_conditions_and_masks() {
    let mask = ops::gt(iota::<4>(), 0);
    let trap = run([1, 1, 1], || tassert!(mask)).unwrap_err();
    assert_eq!(trap.message, "assertion failed: mask");
}

#[test]
fn assertions_on_masks_hold_everywhere() {
    run([1, 1, 1], || {
        tassert!(ops::ge(iota::<4>(), 0));
        tassert!(true, "never shown");
        static_assert!(1 + 1 == 2, "arithmetic");
    })
    .unwrap();
    let trap = run([1, 1, 1], || tassert!(ops::gt(iota::<4>(), 0))).unwrap_err();
    assert_eq!(trap.message, "assertion failed: ops::gt(iota::<4>(), 0)");
}

#[test]
#[should_panic(expected = "not a trap")]
fn other_panics_pass_through() {
    let _ = run([1, 1, 1], || panic!("not a trap"));
}

#[test]
fn kernels_print_lines() {
    let (result, lines) = capture_prints(|| {
        run([2, 1, 1], || tprint!("{}: {}", program_id(0), Tile::<i32, D2<1, 2>>::full(program_id(0))))
    });
    result.unwrap();
    assert_eq!(lines, ["0: [[0, 0]]", "1: [[1, 1]]"]);
}

#[test]
#[should_panic(expected = "a tile was used after the program that made it had ended")]
fn a_tile_does_not_outlive_its_program() {
    let mut kept = None;
    run([1, 1, 1], || kept = Some(tile::<i32, 2>(&[1, 2]))).unwrap();
    let _ = kept.map(Tile::to_vec);
}

#[test]
fn quotients_round_up() {
    let cases = [(0, 4, 0), (1, 4, 1), (8, 4, 2), (9, 4, 3), (-7, 4, -1), (-8, 4, -2), (7, -4, -1), (-7, -4, 2)];
    for (a, b, want) in cases {
        assert_eq!(cdiv(a, b), want, "{a} / {b}");
    }
    assert_eq!((cdiv(i32::MAX, 2), cdiv(5, 0), cdiv(i32::MIN, -1)), (1 << 30, 0, i32::MIN));
    const TILES: i32 = cdiv(100, 32);
    assert_eq!(TILES, 4);
}

#[test]
fn groups_of_rows_are_gone_through_column_by_column() {
    let all: Vec<[i32; 2]> = (0..9).map(|i| unflatten_grouped::<2>(i, [3, 3])).collect();
    assert_eq!(all, [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2], [2, 0], [2, 1], [2, 2]]);
    assert_eq!(unflatten_grouped::<2>(9, [3, 3]), [3, 0], "beyond the box");
    assert_eq!(unflatten_grouped::<2>(-1, [3, 3]), [0, -1]);
    assert_eq!(unflatten_grouped::<2>(7, [2, 0]), [0, 7]);
    // The same as what other devices run, which is written down apart.
    for (rows, columns) in (0..7).flat_map(|r| (0..7).map(move |c| (r, c))) {
        for i in -2..rows * columns + 2 {
            let at = unflatten(i, [rows, columns]);
            assert_eq!(unflatten_grouped::<3>(i, [rows, columns]), titan_core::ir::grouped(at, [rows, columns], 3));
        }
    }
}

#[test]
fn coordinates_unflatten_with_the_last_axis_fastest() {
    let all: Vec<[i32; 2]> = (0..6).map(|i| unflatten(i, [2, 3])).collect();
    assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    assert_eq!(unflatten(7, [2, 0]), [0, 7]);
    assert_eq!(pipelined(2..5).collect::<Vec<_>>(), [2, 3, 4]);
}
