//! Arithmetic of single instructions.

use crate::harness::over_words;

fn floats(x: &[f32]) -> Vec<u32> {
    x.iter().map(|f| f.to_bits()).collect()
}

#[test]
fn words_are_added_lane_by_lane() {
    let x: Vec<u32> = (0..64).map(|i| i * 7).collect();
    let y = over_words("v_add_u32_e32 v4, v3, v2", &x).unwrap();
    assert!(x.iter().zip(&y).enumerate().all(|(l, (a, b))| *b == a + l as u32), "{y:?}");
}

#[test]
fn floats_are_negated_clamped_and_fused() {
    let x = floats(&[1.5, -2.0, 0.25, 1e-40, f32::NAN, 3.0]);
    let y = over_words("v_fma_f32 v4, -v3, |v3|, 1.0 clamp", &x).unwrap();
    assert_eq!(y, floats(&[0.0, 1.0, 0.9375, 1.0, 0.0, 0.0]));
}

#[test]
fn masks_choose_and_diverge() {
    let x: Vec<u32> = (0..64).collect();
    let body = "
        v_cmp_gt_u32_e32 vcc, 10, v3
        v_mov_b32_e32 v4, 5
        s_and_saveexec_b64 s[4:5], vcc
        v_mov_b32_e32 v4, 9
        s_or_b64 exec, exec, s[4:5]";
    let y = over_words(body, &x).unwrap();
    assert!(y.iter().enumerate().all(|(l, v)| *v == if l < 10 { 9 } else { 5 }), "{y:?}");
}

#[test]
fn lanes_move_by_dpp_and_sdwa_takes_parts() {
    let x: Vec<u32> = (0..64).map(|i| 0x0102_0300 + i).collect();
    let y = over_words(
        "s_nop 1\nv_mov_b32_e32 v4, 0\ns_nop 1\nv_mov_b32_dpp v4, v3 row_shr:1 row_mask:0xf bank_mask:0xf",
        &x,
    );
    let want = |l: usize| if l.is_multiple_of(16) { 0 } else { x[l - 1] };
    assert!(y.unwrap().iter().enumerate().all(|(l, v)| *v == want(l)));
    let body = "v_add_u32_sdwa v4, v3, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:BYTE_3";
    assert!(over_words(body, &x).unwrap().iter().all(|v| *v == 4 << 16));
}
