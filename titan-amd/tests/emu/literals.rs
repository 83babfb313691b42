//! Constants of 32 bits in operands of 64 bits: ISA §6.2.1.1.

use crate::harness::over_words;

/// The two words of a pair of scalar registers after a line, and of one of vector registers.
fn pair(line: &str) -> u64 {
    let word = |register: &str| {
        let body = format!(
            "s_mov_b64 s[14:15], 0\ns_mov_b32 s16, 0x280010\ns_mov_b64 vcc, 0\n{line}\ns_nop 4\nv_mov_b32_e32 v4, {register}"
        );
        over_words(&body, &[0; 64]).unwrap_or_else(|e| panic!("{line}: {e}"))[0]
    };
    let (low, high) = if line.starts_with("v_mov_b64") { ("v6", "v7") } else { ("s12", "s13") };
    u64::from(word(low)) | u64::from(word(high)) << 32
}

#[test]
fn they_are_extended_by_the_type_of_the_operand() {
    for (line, want) in [
        // Bits and unsigned integers: by zeros.
        ("s_mov_b64 s[12:13], 0xffffffff", 0xFFFF_FFFF),
        ("s_mov_b64 s[12:13], 0x80000000", 0x8000_0000),
        ("s_or_b64 s[12:13], s[14:15], 0xdeadbeef", 0xDEAD_BEEF),
        ("s_not_b64 s[12:13], 0x80000000", 0xFFFF_FFFF_7FFF_FFFF),
        ("s_lshl_b64 s[12:13], 0x80000000, 8", 0x80_0000_0000),
        ("s_lshr_b64 s[12:13], 0x80000000, 4", 0x0800_0000),
        ("s_bfe_u64 s[12:13], 0x80000000, s16", 0x8000),
        ("s_cselect_b64 s[12:13], 0xf0000000, 0xf0000000", 0xF000_0000),
        ("v_mov_b64_e32 v[6:7], 0xffffffff", 0xFFFF_FFFF),
        // Signed integers: by the sign.
        ("s_ashr_i64 s[12:13], 0x80000000, 4", 0xFFFF_FFFF_F800_0000),
        ("s_bfe_i64 s[12:13], 0x80000000, s16", 0xFFFF_FFFF_FFFF_8000),
        // Constants within the instruction are signed whatever the type.
        ("s_mov_b64 s[12:13], -1", u64::MAX),
        ("s_or_b64 s[12:13], s[14:15], -16", 0xFFFF_FFFF_FFFF_FFF0),
    ] {
        assert_eq!(pair(line), want, "{line}");
    }
}

#[test]
fn comparisons_extend_them_too() {
    for (line, want) in [
        ("s_cmp_eq_u64 s[12:13], 0xffffffff", true),
        ("v_cmp_lt_u64_e32 vcc, 0x80000000, v[6:7]", true),
        ("v_cmp_lt_i64_e32 vcc, 0x80000000, v[6:7]", true),
        ("v_cmp_gt_i64_e32 vcc, 0x80000000, v[6:7]", false),
        ("v_cmp_eq_u64_e32 vcc, 0xffffffff, v[6:7]", true),
        ("v_cmp_eq_i64_e32 vcc, 0xffffffff, v[6:7]", false),
        // The upper half of a float: 2.
        ("v_cmp_eq_f64_e32 vcc, 0x40000000, v[8:9]", true),
    ] {
        let get = if line.starts_with('s') { "s_cselect_b32 s20, 1, 0" } else { "s_and_b32 s20, vcc_lo, 1" };
        let body = format!(
            "s_mov_b32 s12, -1\ns_mov_b32 s13, 0\nv_mov_b32_e32 v6, -1\nv_mov_b32_e32 v7, 0\nv_mov_b32_e32 v8, 0\nv_mov_b32_e32 v9, 2.0
            {line}\n{get}\nv_mov_b32_e32 v4, s20"
        );
        let got = over_words(&body, &[0; 64]).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert_eq!(got[0] == 1, want, "{line}");
    }
}
