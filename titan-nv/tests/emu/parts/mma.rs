//! The fragments of matrices, by the manual's own formulas.

use titan_nv::emu::internals::{F16, at_a, at_b, at_c, half};

/// Elements by the manual's own formulas, fragment by fragment.
#[test]
fn fragments_of_wide_elements_are_those_of_the_manual() {
    for lane in 0..32 {
        let (g, t) = (lane >> 2, lane % 4);
        // .m16n8k16, halves, A: a_i for i = 0..8.
        for i in 0..8 {
            let row = if (0..2).contains(&i) || (4..6).contains(&i) { g } else { g + 8 };
            let col = t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
            assert_eq!(at_a(16, 2, lane, i / 2, i % 2), (row, col));
        }
        // .m16n8k16, halves, B: b_i for i = 0..4.
        for i in 0..4 {
            let row = t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 };
            assert_eq!(at_b(2, lane, i / 2, i % 2), (row, g));
        }
        // .m16n8k8, tf32: a0 (g, t), a1 (g+8, t), a2 (g, t+4), a3 (g+8, t+4); b0 (t, g), b1 (t+4, g).
        for (i, at) in [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)].into_iter().enumerate() {
            assert_eq!(at_a(16, 1, lane, i, 0), at);
        }
        assert_eq!((at_b(1, lane, 0, 0), at_b(1, lane, 1, 0)), ((t, g), (t + 4, g)));
        // .m8n8k4, f64.
        assert_eq!((at_a(8, 1, lane, 0, 0), at_b(1, lane, 0, 0)), ((g, t), (t, g)));
    }
}

#[test]
fn fragments_of_narrow_elements_and_sums_are_those_of_the_manual() {
    for lane in 0..32 {
        let (g, t) = (lane >> 2, lane % 4);
        // .m16n8k32, bytes: a_i for i = 0..16, b_i for i = 0..8.
        for i in 0..16 {
            let row = if (0..4).contains(&i) || (8..12).contains(&i) { g } else { g + 8 };
            let col = t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 };
            assert_eq!(at_a(16, 4, lane, i / 4, i % 4), (row, col));
        }
        for i in 0..8 {
            assert_eq!(at_b(4, lane, i / 4, i % 4), (t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, g));
        }
        // .m16n8k64, nibbles: a_i for i = 0..32.
        for i in 0..32 {
            let row = if (0..8).contains(&i) || (16..24).contains(&i) { g } else { g + 8 };
            let col = t * 8 + (i & 7) + if i >= 16 { 32 } else { 0 };
            assert_eq!(at_a(16, 8, lane, i / 8, i % 8), (row, col));
        }
        // C: c_i for i = 0..4.
        for i in 0..4 {
            let at = (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1));
            assert_eq!((at_c(false, lane, i, 0), at_c(true, lane, i / 2, i % 2)), (at, at));
        }
    }
}

#[test]
fn halves_are_converted_exactly() {
    for bits in 0..1 << 16 {
        let (x, y) = (half(bits), F16.value(bits));
        assert!(x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(), "{bits:#x}");
    }
}
