//! What depends on `MODE` and what does not: subnormal numbers in atomic operations and dot products, results that are clamped in parts.

use crate::harness::records;
use titan_amd::emu::Options;

/// The denormal modes of `f32`, and of `f16` and `f64`: 0 flushes, 3 keeps.
fn mode(single: u32, double: u32) -> String {
    format!("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), {:#x}\n", single | double << 2)
}

fn one(body: &str, inputs: &[u32], outputs: usize) -> Vec<u32> {
    let all: Vec<u32> = inputs.iter().copied().cycle().take(64 * inputs.len()).collect();
    let got =
        records(body, (inputs.len(), outputs), &all, &Options::default()).unwrap_or_else(|e| panic!("{body}: {e}"));
    let first = got[..outputs].to_vec();
    assert!(got.chunks(outputs).all(|g| g == first), "{body}: lanes differ");
    first
}

/// What an operation of the local data share leaves of an old word with one or two data.
fn shared(mode: &str, line: &str, [old, data, second]: [u32; 3]) -> u32 {
    let body = format!(
        "{mode}v_lshlrev_b32_e32 v5, 3, v2\nds_write_b32 v5, v8\n{line}\ns_waitcnt lgkmcnt(0)\nds_read_b32 v11, v5\ns_waitcnt lgkmcnt(0)"
    );
    one(&body, &[old, data, second], 1)[0]
}

/// ISA §9.2.2, table 52.
#[test]
fn the_local_data_share_flushes_as_the_mode_says() {
    let (flush, keep) = (mode(0, 0), mode(3, 3));
    let (small, double) = (0x0001_0000, 0x0002_0000);
    for (line, operands, flushed, kept) in [
        ("ds_add_f32 v5, v9", [small, small, 0], 0, double),
        // Subnormal numbers are compared as zeros; what was chosen stays as it was.
        ("ds_max_f32 v5, v9", [small, double, 0], small, double),
        ("ds_min_f32 v5, v9", [double, small, 0], double, small),
        ("ds_min_f32 v5, v9", [small, 1 << 31 | small, 0], 1 << 31 | small, 1 << 31 | small),
        ("ds_cmpst_f32 v5, v9, v10", [small, 0, double], 0, small),
        ("ds_cmpst_f32 v5, v9, v10", [small, small, double], 0, double),
        ("ds_pk_add_f16 v5, v9", [0x3C00_0001, 0x3C00_0002, 0], 0x4000_0000, 0x4000_0003),
        ("ds_pk_add_bf16 v5, v9", [0x3F80_0001, 0x3F80_0002, 0], 0x4000_0000, 0x4000_0003),
    ] {
        assert_eq!(shared(&flush, line, operands), flushed, "{line} of {operands:#x?}, flushed");
        assert_eq!(shared(&keep, line, operands), kept, "{line} of {operands:#x?}, kept");
    }
    // The modes of the two sizes are apart.
    assert_eq!(shared(&mode(3, 0), "ds_add_f32 v5, v9", [small, small, 0]), double);
    assert_eq!(shared(&mode(0, 3), "ds_pk_add_f16 v5, v9", [1, 2, 0]), 3);
}

#[test]
fn extremes_of_wide_numbers_are_compared_as_the_mode_says_and_sums_are_not_flushed() {
    let run = |mode: &str, op: &str| {
        let body = format!(
            "{mode}v_lshlrev_b32_e32 v5, 3, v2\nds_write_b64 v5, v[8:9]\n{op} v5, v[10:11]\ns_waitcnt lgkmcnt(0)
            ds_read_b64 v[12:13], v5\ns_waitcnt lgkmcnt(0)"
        );
        one(&body, &[5, 0, 9, 0], 2)[0]
    };
    for (mode, min, max) in [(mode(0, 0), 5, 5), (mode(0, 3), 5, 9)] {
        assert_eq!([run(&mode, "ds_min_f64"), run(&mode, "ds_max_f64"), run(&mode, "ds_add_f64")], [min, max, 14]);
    }
}

#[test]
fn memory_flushes_sums_of_f32_and_nothing_else() {
    for mode in [mode(0, 0), mode(3, 3)] {
        let run = |line: &str, old: u32, data: u32| {
            let body =
                format!("{mode}{line}\ns_waitcnt vmcnt(0)\nglobal_load_dword v10, v[0:1], off\ns_waitcnt vmcnt(0)");
            one(&body, &[old, data], 1)[0]
        };
        assert_eq!(run("global_atomic_add_f32 v[0:1], v9, off", 0x1_0000, 0x1_0000), 0);
        assert_eq!(run("global_atomic_pk_add_f16 v[0:1], v9, off", 0x0001_0001, 0x0002_0003), 0x0003_0004);
        assert_eq!(run("global_atomic_pk_add_bf16 v[0:1], v9, off", 0x0001_0001, 0x0002_0003), 0x0003_0004);
    }
}

/// ISA §6.4.
#[test]
fn dot_products_of_halves_flush_whatever_the_mode_says() {
    let one_half = 0x3C00;
    for mode in [mode(0, 0), mode(3, 3)] {
        let dot = |a: u32, b: u32, c: u32| one(&format!("{mode}v_dot2_f32_f16 v11, v8, v9, v10"), &[a, b, c], 1)[0];
        // 1 · 1 + 1 · 1 + 1/2.
        assert_eq!(dot(one_half << 16 | one_half, one_half << 16 | one_half, 0.5_f32.to_bits()), 2.5_f32.to_bits());
        // Subnormal factors, and a subnormal sum to add to.
        assert_eq!(dot(0x0001_0001, one_half << 16 | one_half, 1.0_f32.to_bits()), 1.0_f32.to_bits());
        assert_eq!(dot(0, 0, 0x0040_0000), 0);
        assert_eq!(dot(0, 0, 0x8040_0000) & 0x7FFF_FFFF, 0);
        // The least numbers that are not.
        assert_eq!(dot(one_half, 0x8400, 0), (-2_f32.powi(-14)).to_bits());
        assert_eq!(dot(0, 0, 0x0080_0000), 0x0080_0000);
    }
}

#[test]
fn every_float_of_a_result_is_clamped() {
    let of = |x: f32| x.to_bits();
    assert_eq!(one("v_cvt_pkrtz_f16_f32 v10, v8, v9 clamp", &[of(2.0), of(-1.0)], 1), [0x0000_3C00]);
    assert_eq!(one("v_cvt_pkrtz_f16_f32 v10, v8, v9 clamp", &[of(0.5), of(7.0)], 1), [0x3C00_3800]);
    assert_eq!(one("v_cvt_pkrtz_f16_f32 v10, v8, v9", &[of(2.0), of(-1.0)], 1), [0xBC00_4000]);
    assert_eq!(one("v_pack_b32_f16 v10, v8, v9 clamp", &[0x4000, 0x3800], 1), [0x3800_3C00]);
    // 0x48 is 2, 0xC8 is −2.
    assert_eq!(one("v_cvt_pk_f32_fp8_e64 v[10:11], v8 clamp", &[0xC848, 0], 2), [of(1.0), of(0.0)]);
    assert_eq!(one("v_cvt_pk_f32_fp8_e64 v[10:11], v8", &[0xC848, 0], 2), [of(2.0), of(-2.0)]);
}

/// The examples of the manual: ISA §12.12, `DS_SWIZZLE_B32`.
#[test]
fn swizzles_are_those_of_the_manual() {
    for (pattern, want) in [
        (0xE000, "1 11 9 19 5 15 d 1d 3 13 b 1b 7 17 f 1f 2 12 a 1a 6 16 e 1e 4 14 c 1c 8 18 10 20"),
        (0xE010, "1 9 5 d 3 b 7 f 2 a 6 e 4 c 8 10 11 19 15 1d 13 1b 17 1f 12 1a 16 1e 14 1c 18 20"),
        (0xE01F, "1 2 3 4 5 6 7 8 9 a b c d e f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 20"),
        (0xC020, "2 3 4 5 6 7 8 9 a b c d e f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 20 1"),
        (0xC420, "20 1 2 3 4 5 6 7 8 9 a b c d e f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f"),
        (0xC021, "1 4 3 6 5 8 7 a 9 c b e d 10 f 12 11 14 13 16 15 18 17 1a 19 1c 1b 1e 1d 20 1f 2"),
        (0xC421, "1f 2 1 4 3 6 5 8 7 a 9 c b e d 10 f 12 11 14 13 16 15 18 17 1a 19 1c 1b 1e 1d 20"),
        (0x8039, "2 3 4 1 6 7 8 5 a b c 9 e f 10 d 12 13 14 11 16 17 18 15 1a 1b 1c 19 1e 1f 20 1d"),
        // Pairs are swapped; the first of four is given to all.
        (0x041F, "2 1 4 3 6 5 8 7 a 9 c b e d 10 f 12 11 14 13 16 15 18 17 1a 19 1c 1b 1e 1d 20 1f"),
        (0x001C, "1 1 1 1 5 5 5 5 9 9 9 9 d d d d 11 11 11 11 15 15 15 15 19 19 19 19 1d 1d 1d 1d"),
    ] {
        let words: Vec<u32> = (0..64).map(|l| l % 32 + 1 + 0x100 * (l / 32)).collect();
        let body = format!("ds_swizzle_b32 v9, v8 offset:{pattern}");
        let got = records(&body, (1, 1), &words, &Options::default()).unwrap();
        let want: Vec<u32> = want.split(' ').map(|n| u32::from_str_radix(n, 16).unwrap()).collect();
        let both: Vec<u32> = want.iter().copied().chain(want.iter().map(|n| n + 0x100)).collect();
        assert_eq!(got, both, "{pattern:#x}");
    }
}
