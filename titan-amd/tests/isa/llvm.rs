//! Every row in every encoding, with random operands and modifiers: the bytes are those of `llvm-mc`, the text is that of
//! `llvm-objdump`.

use crate::asm;
use crate::random::instruction;
use crate::support::oracle;
use titan_amd::isa::{Class, Inst, Operand, all, decode, parse};
use titan_sim::engine::Rng;

/// Instructions for each row and encoding.
const EACH: usize = 8;

fn samples() -> Vec<Inst> {
    let mut rng = Rng::new(942);
    let mut samples = Vec::new();
    for row in all() {
        for form in row.forms() {
            samples.extend((0..EACH).map(|_| instruction(&mut rng, row, form)));
        }
    }
    samples
}

/// What random operands do not reach: spellings of their own.
const SPELLINGS: &[&str] = &[
    "ds_swizzle_b32 v1, v2 offset:swizzle(QUAD_PERM,0,1,2,3)",
    "ds_swizzle_b32 v1, v2 offset:swizzle(BITMASK_PERM,\"01pip\")",
    "ds_swizzle_b32 v1, v2 offset:swizzle(SWAP,2)",
    "ds_swizzle_b32 v1, v2 offset:swizzle(REVERSE,8)",
    "ds_swizzle_b32 v1, v2 offset:swizzle(BROADCAST,8,1)",
    "v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]",
    "v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,1]",
    "v_mul_lo_u16_e32 v1, 0x1234, v2",
    "v_fma_f64 v[0:1], 1.0, v[2:3], 0.15915494309189532",
    "v_add_f16_e32 v1, 0.15915494, v2",
    "v_pk_add_f16 v1, v2, 1.0 op_sel_hi:[1,0]",
    "v_pk_add_u16 v1, v2, 1",
    "s_mov_b64 s[0:1], 0x12345678",
    "s_mov_b32 s0, 0x80000000",
    "s_add_u32 s0, src_shared_base, 5",
    "s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)",
    "s_waitcnt vmcnt(5)",
    "s_waitcnt vmcnt(62) lgkmcnt(14)",
    "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)",
    "s_load_dword s8, s[12:13], m0 glc",
    "s_load_dword s8, s[12:13], -0x10",
    "s_load_dword s8, s[12:13], s4",
    "s_load_dwordx2 s[42:43], s[0:1], s4 offset:0x0",
    "s_load_dwordx2 s[42:43], s[0:1], s4 offset:0x7 glc",
    "v_mfma_f64_16x16x4_f64 v[0:7], v[2:3], v[4:5], v[8:15] neg:[1,0,1]",
    "v_add_f32_e64 v1, neg(1), |v3|",
    "v_add_f32_e64 v1, -|0.5|, 64",
    "global_load_dwordx4 a[4:7], v[2:3], off offset:-4096",
    "ds_read_b128 a[4:7], v2 offset:65535",
    "v_writelane_b32 v1, s4, m0",
    "v_writelane_b32 v1, m0, m0",
    "v_writelane_b32 v1, src_scc, m0",
];

/// Operands that are scalar registers or constants, in several ways.
const SCALARS: [&str; 12] = [
    "s4",
    "s5",
    "m0",
    "vcc_lo",
    "vcc_hi",
    "exec_lo",
    "src_scc",
    "src_shared_base",
    "ttmp1",
    "flat_scratch_lo",
    "7",
    "-4.0",
];

#[test]
fn scalar_operands_stand_together_where_the_assembler_lets_them() {
    let Some(mc) = oracle::program("llvm-mc") else {
        return oracle::skipped("pairs of scalar operands against llvm-mc");
    };
    let mut lines = Vec::new();
    for (a, b) in SCALARS.iter().flat_map(|a| SCALARS.iter().map(move |b| (a, b))) {
        lines.extend([
            format!("v_writelane_b32 v1, {a}, {b}"),
            format!("v_add_u32_e64 v1, {a}, {b}"),
            format!("v_and_or_b32 v1, {a}, v2, {b}"),
            format!("v_fma_f32 v1, {a}, {b}, {a}"),
            format!("v_cmp_lt_u32_e64 s[8:9], {a}, {b}"),
            format!("v_div_fmas_f32 v1, {a}, {b}, v2"),
            format!("v_readlane_b32 s8, v1, {b}"),
        ]);
    }
    let (mut accepted, mut wrong) = (0, Vec::new());
    for (line, theirs) in lines.iter().zip(asm::assemble(&mc, &lines)) {
        let ours = parse(line).and_then(|inst| inst.bytes());
        accepted += usize::from(theirs.is_ok());
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) if ours == theirs => {
                assert_eq!(&decode(ours).unwrap_or_else(|e| panic!("{line}: {e}")).0.bytes().unwrap(), ours, "{line}");
            }
            (Err(_), Err(_)) => {}
            _ => wrong.push(format!("{line}: ours {ours:02x?}, theirs {theirs:02x?}")),
        }
    }
    assert!(wrong.is_empty() && accepted > 350, "{accepted} accepted\n{}", wrong.join("\n"));
}

#[test]
fn spellings_are_those_of_the_assembler_and_the_disassembler() {
    let (Some(mc), Some(objdump)) = (oracle::program("llvm-mc"), oracle::program("llvm-objdump")) else {
        return oracle::skipped("spellings against LLVM");
    };
    let lines: Vec<String> = SPELLINGS.iter().map(|s| (*s).to_owned()).collect();
    let codes: Vec<Vec<u8>> = lines.iter().map(|l| parse(l).unwrap().bytes().unwrap()).collect();
    for ((line, ours), theirs) in lines.iter().zip(&codes).zip(asm::assemble(&mc, &lines)) {
        assert_eq!(theirs.as_ref(), Ok(ours), "{line}");
    }
    for ((line, code), theirs) in lines.iter().zip(&codes).zip(asm::disassemble(&objdump, &mc, &codes)) {
        assert_eq!((&decode(code).unwrap().0.to_string(), line), (&theirs, line));
    }
}

#[test]
fn encodings_are_those_of_the_assembler() {
    let Some(mc) = oracle::program("llvm-mc") else { return oracle::skipped("encodings against llvm-mc") };
    let samples = samples();
    let lines: Vec<String> = samples.iter().map(ToString::to_string).collect();
    let mut wrong = Vec::new();
    for ((inst, line), theirs) in samples.iter().zip(&lines).zip(asm::assemble(&mc, &lines)) {
        let ours = inst.bytes().unwrap();
        match theirs {
            Ok(theirs) if theirs == ours => {}
            Ok(theirs) => wrong.push(format!("{line}\n    ours   {ours:02x?}\n    theirs {theirs:02x?}")),
            Err(why) => wrong.push(format!("{line}: {why}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        lines.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

#[test]
fn texts_are_those_of_the_disassembler() {
    let (Some(mc), Some(objdump)) = (oracle::program("llvm-mc"), oracle::program("llvm-objdump")) else {
        return oracle::skipped("texts against llvm-objdump");
    };
    let samples = samples();
    let codes: Vec<Vec<u8>> = samples.iter().map(|i| i.bytes().unwrap()).collect();
    let mut wrong = Vec::new();
    for ((inst, code), theirs) in samples.iter().zip(&codes).zip(asm::disassemble(&objdump, &mc, &codes)) {
        let (decoded, size) = decode(code).unwrap_or_else(|e| panic!("{inst}: {e}"));
        assert_eq!(size, code.len(), "{inst}");
        let ours = decoded.to_string();
        if ours != theirs {
            wrong.push(format!("    ours   {ours}\n    theirs {theirs}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        codes.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

#[test]
fn changed_bits_are_read_as_the_disassembler_reads_them_or_refused() {
    let (Some(mc), Some(objdump)) = (oracle::program("llvm-mc"), oracle::program("llvm-objdump")) else {
        return oracle::skipped("changed encodings against llvm-objdump");
    };
    let mut rng = Rng::new(4);
    let mut codes = Vec::new();
    for inst in (0..4).flat_map(|_| samples()) {
        let mut code = inst.bytes().unwrap();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(code.len());
            code[at] ^= 1 << rng.below(8);
        }
        // What reads more or less than there was would be compared with another instruction. LLVM does not show all bits of
        // messages, and none above the lowest 16 of literals for operands of 16 bits.
        let hidden = |inst: &Inst| {
            inst.args().any(|(arg, operand)| match operand {
                Operand::Literal(value) => arg.ty.bits() == 16 && value > 0xFFFF,
                _ => arg.class == Class::Message,
            })
        };
        if decode(&code).is_ok_and(|(inst, size)| size == code.len() && !hidden(&inst)) {
            codes.push(code);
        }
    }
    assert!(codes.len() > 20_000, "only {} were instructions", codes.len());
    let mut wrong = Vec::new();
    for (code, theirs) in codes.iter().zip(asm::disassemble(&objdump, &mc, &codes)) {
        let ours = decode(code).unwrap().0.to_string();
        if ours != theirs {
            wrong.push(format!("    ours   {ours}\n    theirs {theirs}"));
        }
    }
    let shown = wrong[..wrong.len().min(60)].join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), codes.len());
}
