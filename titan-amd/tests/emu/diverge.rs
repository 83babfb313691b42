//! Lanes that go different ways: masks, loops, lanes that are off.

use crate::harness::over_words;

#[test]
fn a_loop_ends_lane_by_lane() {
    let body = "
        v_mov_b32_e32 v4, 0
        s_mov_b64 s[20:21], exec
    again:
        v_add_u32_e32 v4, v4, v3
        v_add_u32_e32 v3, -1, v3
        v_cmp_lt_i32_e32 vcc, 0, v3
        s_nop 4
        s_and_b64 exec, exec, vcc
        s_cbranch_execnz again
        s_mov_b64 exec, s[20:21]";
    let x: Vec<u32> = (0..64).map(|l| l % 9).collect();
    let y = over_words(body, &x).unwrap();
    assert!(x.iter().zip(&y).all(|(n, s)| *s == n * (n + 1) / 2), "{y:?}");
}

#[test]
fn both_sides_of_a_branch_and_lanes_that_read_others() {
    let body = "
        v_cmp_lt_u32_e32 vcc, 31, v2
        s_nop 4
        s_and_saveexec_b64 s[20:21], vcc
        v_readfirstlane_b32 s24, v3
        v_mov_b32_e32 v4, 1
        s_xor_b64 exec, exec, s[20:21]
        v_readfirstlane_b32 s25, v3
        v_mov_b32_e32 v4, 2
        s_mov_b64 exec, s[20:21]
        s_nop 1
        v_mad_u32_u24 v4, v4, 10, s24
        s_nop 1
        v_add_u32_e32 v4, s25, v4";
    let x: Vec<u32> = (0..64).map(|l| l * 3).collect();
    let y = over_words(body, &x).unwrap();
    assert!(y.iter().enumerate().all(|(l, y)| *y == if l > 31 { 10 } else { 20 } + 96), "{y:?}");
}

#[test]
fn with_no_lane_vector_instructions_do_nothing_and_scalar_ones_go_on() {
    let body = "v_mov_b32_e32 v4, 3\ns_mov_b64 s[20:21], exec\ns_mov_b64 exec, 0
        v_mov_b32_e32 v4, 9\nglobal_load_dword v4, v[0:1], off\ns_movk_i32 s24, 0x5
        s_mov_b64 exec, s[20:21]\ns_waitcnt vmcnt(0)\nv_add_u32_e32 v4, s24, v4";
    assert_eq!(over_words(body, &[1; 64]).unwrap(), [8; 64]);
}

#[test]
fn registers_written_by_some_lanes_are_undefined_in_others() {
    let body = "v_cmp_gt_u32_e32 vcc, 5, v2\ns_nop 4\ns_and_saveexec_b64 s[20:21], vcc\nv_mov_b32_e32 v4, 1\ns_mov_b64 exec, s[20:21]";
    let error = over_words(body, &[1; 64]).unwrap_err().to_string();
    let told = error.contains("byte 20 of `x` has undefined bits") && error.contains("`v4`, which was never written");
    assert!(told && error.contains("global_store_dword v[0:1], v4, off"), "{error}");
}

#[test]
fn a_last_wave_that_is_not_full() {
    let x: Vec<u32> = (0..10).collect();
    assert_eq!(over_words("v_add_u32_e32 v4, 1, v3", &x).unwrap(), (1..11).collect::<Vec<u32>>());
}
