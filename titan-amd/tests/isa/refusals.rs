//! Bits and text that are no instruction: an error each, never a guess and never a panic.

use titan_amd::isa::{IsaError, decode, parse};
use titan_sim::engine::Rng;

#[test]
fn random_bits_decode_to_what_they_say_or_not_at_all() {
    let mut rng = Rng::new(3);
    let mut decoded = 0;
    for _ in 0..200_000 {
        let bytes: Vec<u8> = (0..2).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        let Ok((inst, size)) = decode(&bytes) else { continue };
        decoded += 1;
        // What was accepted is all that was there: it encodes to the same bits.
        assert_eq!(inst.bytes().unwrap(), bytes[..size], "{inst}");
    }
    assert!(decoded > 1000, "only {decoded} were instructions");
}

#[test]
fn a_cut_instruction_is_told_as_one() {
    for text in ["global_load_dword v1, v[2:3], off", "s_mov_b32 s0, 0x12345678", "v_add_f32_e64 v0, s1, v2"] {
        let bytes = parse(text).unwrap().bytes().unwrap();
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len]).unwrap_err(), IsaError::Cut { have: len }, "{text}, {len} bytes");
        }
    }
}

#[test]
fn bits_that_nothing_defines_are_refused() {
    // s_endpgm with a bit of no field; a VOP3 with a third source that v_add does not have; buffer_load with LDS and TFE.
    for (bits, want) in [
        (0xD101_0001_u64 | 0x0402_0702 << 32 | 1 << 55, "does not define"),
        (0xC002_0200 | 1 << 60, "does not define"),
        (0xBF8D_8000 | 0xFFFF_FFFF << 32, ""),
        (0xE800_0000, "begins no instruction"),
        // v_sub_f32_e64 with the absolute value of a third source, and of an integer; v_pk_add_f16 with a third sign.
        (0xD102_0401 | 0x0002_0702 << 32, "a sign or half of a source"),
        (0xD134_0101 | 0x0002_0702 << 32, "does not define"),
        (0xD38F_4001 | 0x9802_0702 << 32, "a sign or half of a source"),
        // flat_load_dword with the sign of an offset; a descriptor in `xnack_mask`; v_sub_i16 with the half of a third source.
        (0xDC50_1000 | 0x0100_0002 << 32, "an offset below 0"),
        (0xE050_0000 | 0x001A_0100 << 32, "have no names"),
        (0xD29F_2001 | 0x0002_0702 << 32, "a sign or half of a source"),
        // s_load_dword with `soe` alone, and with a register in an offset of more bits; into `m0`.
        (0xC000_4100 | 0x0200_0038 << 32, "an immediate, a register, or both"),
        (0xC000_0100 | 0x0000_0102 << 32, "an immediate, a register, or both"),
        (0xC002_1F00, "no operand of this kind"),
        // v_mqsad_u32_u8 with a scalar source of 128 bits; v_cndmask_b32_e64 with a constant for a mask.
        (0xD1E7_0044 | 0x0173_F6A2 << 32, "are vector registers"),
        (0xD100_0001 | 0x0202_0702 << 32, "no operand of this kind"),
        // v_cndmask_b32_e64 v1, v2, v3, exec.
        (0xD100_0001 | 0x01FA_0702 << 32, "other registers than `exec`"),
        // s_mov_b32 s0, s125; s_mov_b64 s[0:1], m0.
        (0xBE80_007D, "does not exist"),
        (0xBE80_017C, "does not exist"),
    ] {
        match decode(&bits.to_le_bytes()) {
            Err(error) => assert!(error.to_string().contains(want), "{bits:#x}: {error}"),
            Ok((inst, _)) => assert!(want.is_empty(), "{bits:#x} is {inst}"),
        }
    }
}

#[test]
fn texts_that_are_no_instruction_are_refused_in_words() {
    for (text, want) in [
        ("v_frobnicate v1, v2", "there is no instruction `v_frobnicate`"),
        ("v_add_f32_e32 v1, v2", "`v_add_f32` has 3 operands, not 2"),
        ("s_mov_b32 s0, s1, s2", "`s_mov_b32` has 2 operands, not 3"),
        ("v_add_f32_e32 v1, v2, s3", "no operand of this kind"),
        ("v_add_f32_e64 v1, s2, s3", "at most one scalar register"),
        ("v_add_f64 v[1:2], v[2:3], v[4:5]", "begin at an even number"),
        ("s_load_dwordx4 s[2:5], s[0:1], 0x0", "multiple of two or four"),
        ("global_load_dword v1, v[2:3], off offset:4096", "no modifier `offset:4096`"),
        ("buffer_load_dword v1, v2, s[4:7], 0", "`offen` and `idxen`"),
        ("buffer_load_dwordx4 v2, s[4:7], 0 offen lds", "has 4 operands, not 3"),
        ("v_mfma_f32_32x32x16_f16 a[0:15], v[0:3], v[4:7], a[0:15]", "there is no instruction"),
        ("v_cvt_pk_bf16_f32 v0, v1, v2", "there is no instruction"),
        ("s_waitcnt vmcnt(64)", "does not go so far"),
        ("s_waitcnt foocnt(0)", "no counter to wait for"),
        ("v_add_f32_e32 v256, v0, v1", "`v256` is no operand"),
        ("v_add_u32_e64 v0, -v1, v2", "cannot be negated"),
        ("v_add_f32_e64 v0, v1, v2 clamp clamp", "said twice"),
        ("s_mov_b64 s[1:2], 0", "multiple of two or four"),
        ("v_add_f32_e64 v0, 0x12345678, v1", "no operand of this kind"),
        ("ds_read_b64 v[0:1], v2 offset:65536", "no modifier"),
        ("", "there is no instruction"),
    ] {
        let error = parse(text).map(|i| i.to_string()).unwrap_err().to_string();
        assert!(error.contains(want), "`{text}`: {error}");
    }
}

#[test]
fn broken_text_never_panics() {
    let lines = [
        "v_pk_fma_f16 v1, v2, v3, v4 op_sel:[1,0,1] op_sel_hi:[0,1,1] neg_lo:[1,0,0] clamp",
        "ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM,\"01pip\")",
        "s_getreg_b32 s0, hwreg(HW_REG_MODE, 0, 4)",
        "buffer_load_dword v1, v[2:3], s[4:7], s8 idxen offen offset:16 sc0 nt sc1",
        "s_waitcnt vmcnt(0) lgkmcnt(3)",
    ];
    let mut rng = Rng::new(5);
    for i in 0..20_000 {
        let mut text: Vec<char> = lines[i % lines.len()].chars().collect();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(text.len().max(1));
            if text.is_empty() {
                break;
            }
            match rng.below(3) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, ['[', ')', ',', ' ', '9', '-', 'x', ':', '"'][rng.below(9)]),
                _ => text.truncate(at.max(1)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(inst) = parse(&text) {
            assert_eq!(parse(&inst.to_string()).as_ref(), Ok(&inst), "{text}");
        }
    }
}
