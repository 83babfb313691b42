//! Registers that `m0` selects.

use crate::harness::{over_words, over_words_with};
use titan_amd::emu::Options;

fn told(body: &str) -> String {
    over_words(body, &[1; 64]).map(|w| format!("{w:?}")).unwrap_err().to_string()
}

#[test]
fn vector_registers_are_indexed_while_the_mode_is_on() {
    let values: String = (0..8).map(|i| format!("v_mov_b32_e32 v{}, {}\n", 10 + i, 20 + i)).collect();
    // The source, the destination, both, the second source.
    for (text, want) in [
        ("s_set_gpr_idx_on s20, gpr_idx(SRC0)\nv_mov_b32_e32 v4, v10\ns_set_gpr_idx_off", 25),
        ("s_set_gpr_idx_on s20, gpr_idx(DST)\nv_mov_b32_e32 v11, v10\ns_set_gpr_idx_off\nv_mov_b32_e32 v4, v16", 20),
        (
            "s_set_gpr_idx_on s20, gpr_idx(SRC0,DST)\nv_mov_b32_e32 v11, v10\ns_set_gpr_idx_off\nv_mov_b32_e32 v4, v16",
            25,
        ),
        ("s_set_gpr_idx_on s20, gpr_idx(SRC1)\nv_add_u32_e32 v4, v10, v12\ns_set_gpr_idx_off", 20 + 27),
        ("s_set_gpr_idx_on s20, gpr_idx(SRC2)\nv_add3_u32 v4, v10, v11, v12\ns_set_gpr_idx_off", 20 + 21 + 27),
        // Scalar sources and constants are not.
        ("s_set_gpr_idx_on s20, gpr_idx(SRC0,SRC1)\nv_add3_u32 v4, s20, 1, v12\ns_set_gpr_idx_off", 5 + 1 + 22),
        // The index and the operands change while the mode is on.
        ("s_set_gpr_idx_on s20, gpr_idx(SRC0)\ns_set_gpr_idx_idx s21\nv_mov_b32_e32 v4, v10\ns_set_gpr_idx_off", 22),
        (
            "s_set_gpr_idx_on s20, gpr_idx()\ns_set_gpr_idx_mode gpr_idx(SRC0)\nv_mov_b32_e32 v4, v10\ns_set_gpr_idx_off",
            25,
        ),
        // Only while it is on.
        ("s_set_gpr_idx_on s20, gpr_idx(SRC0)\ns_set_gpr_idx_off\nv_mov_b32_e32 v4, v10", 20),
    ] {
        let body = format!("{values}s_mov_b32 s20, 5\ns_mov_b32 s21, 2\n{text}");
        assert_eq!(over_words(&body, &[0; 64]).unwrap(), [want; 64], "{text}");
    }
}

#[test]
fn scalar_registers_are_moved_relative_to_m0() {
    let values: String = (0..8).map(|i| format!("s_mov_b32 s{}, {}\n", 20 + i, 40 + i)).collect();
    for (text, want) in [
        ("s_mov_b32 m0, 3\ns_nop 0\ns_movrels_b32 s30, s20", 43),
        ("s_mov_b32 m0, 4\ns_nop 0\ns_movrels_b64 s[30:31], s[20:21]", 44),
        ("s_mov_b32 m0, 2\ns_nop 0\ns_movreld_b32 s28, s21", 41),
        ("s_mov_b32 m0, 2\ns_nop 0\ns_movreld_b64 s[28:29], 7", 7),
    ] {
        let body = format!("{values}{text}\nv_mov_b32_e32 v4, s30");
        assert_eq!(over_words(&body, &[0; 64]).unwrap(), [want; 64], "{text}");
    }
}

#[test]
fn registers_beyond_those_that_there_are_and_undefined_indices_are_told() {
    let on = |index: &str| format!("s_mov_b32 s20, {index}\ns_set_gpr_idx_on s20, gpr_idx(SRC0)\nv_mov_b32_e32 v4, v3");
    assert!(
        told(&on("0x50")).contains("`v83` is used, and the kernel was given 64 registers"),
        "{}",
        told(&on("0x50"))
    );
    assert!(told(&on("0xff")).contains("`v3` is indexed by 255, which is beyond all registers"));
    assert!(told("s_mov_b32 m0, 0x60\ns_nop 0\ns_movrels_b32 s4, s20").contains("`s20` is indexed by 96"));
    assert!(told("s_set_gpr_idx_on s30, gpr_idx(SRC0)").contains("the index of a register depends on `s30`"));
    assert!(told("s_movrels_b32 s4, s20").contains("the index of a register depends on `m0`, which was never written"));
}

#[test]
fn undefined_bits_of_m0_that_the_mode_does_not_use_do_not_matter() {
    let body = "s_set_gpr_idx_on 0, gpr_idx(SRC0)\nv_mov_b32_e32 v4, v3\ns_set_gpr_idx_off";
    let options = Options { undefined_seed: 5, ..Options::default() };
    assert_eq!(over_words_with(body, &[7; 64], &options).unwrap(), [7; 64]);
}
