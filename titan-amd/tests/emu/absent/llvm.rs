//! Every opcode of every format, as LLVM reads it: it is in the tables of instructions, or it is refused by LLVM's name for it.
//!
//! Deliberately absent: operands and modifiers, which titan-amd/tests/isa compares.

#[path = "../../isa/asm.rs"]
#[allow(dead_code, reason = "nothing is assembled here")]
mod asm;

use crate::bad::run_code;
use crate::support::oracle;
use std::collections::BTreeMap;
use titan_amd::emu::{ErrorCode, Options};
use titan_amd::isa::decode;

/// The first word without its opcode; the lowest bit and the number of the opcodes; what the second word can be.
type Format = (u32, u32, u32, &'static [u32]);

/// `v0` as each of three sources, and the same with the bits that select upper halves.
const SOURCES: u32 = 0x100 | 0x100 << 9 | 0x100 << 18;
const HALVES: u32 = SOURCES | 3 << 27;
/// `v0` twice, and `vcc` as a mask.
const MASKED: u32 = 0x100 | 0x100 << 9 | 106 << 18;
/// No scalar base.
const OFF: u32 = 0x7F << 16;

/// ISA §13. Two formats are there several times, with bits that some of their instructions need.
const FORMATS: &[Format] = &[
    (0x8000_0000, 23, 0x60, &[0]),
    (0xB000_0000, 23, 29, &[0]),
    (0xBE80_0000, 8, 256, &[0]),
    (0xBF00_0000, 16, 128, &[0]),
    (0xBF80_0000, 16, 128, &[0]),
    (0xC000_0000, 18, 256, &[0]),
    (0xC002_0000, 18, 256, &[0]),
    (0x0000_0100, 25, 62, &[0]),
    (0x7E00_0000, 9, 256, &[0]),
    (0x7E00_0100, 9, 256, &[0]),
    (0x7C00_0100, 17, 256, &[0]),
    (0xD000_0000, 16, 1024, &[SOURCES, MASKED]),
    (0xD380_0000, 16, 128, &[SOURCES, HALVES]),
    (0xD380_4000, 16, 128, &[HALVES]),
    (0xD800_0000, 17, 256, &[0]),
    (0xD801_0000, 17, 256, &[0]),
    (0xDC00_0000, 18, 128, &[0, OFF]),
    (0xDC01_0000, 18, 128, &[0, OFF]),
    (0xDC00_4000, 18, 128, &[OFF]),
    (0xDC00_8000, 18, 128, &[OFF]),
    (0xDC01_8000, 18, 128, &[OFF]),
    (0xE000_0000, 18, 128, &[0]),
    (0xE000_4000, 18, 128, &[0]),
    (0xE001_0000, 18, 128, &[0]),
    (0xE800_0000, 15, 16, &[0]),
];

/// The mnemonic without the suffix of an encoding.
fn bare(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or_default();
    ["_e32", "_e64", "_sdwa", "_dpp"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

#[test]
fn every_opcode_that_llvm_knows_is_decoded_or_refused_by_its_name() {
    let (Some(mc), Some(objdump)) = (oracle::program("llvm-mc"), oracle::program("llvm-objdump")) else {
        return oracle::skipped("every opcode against llvm-objdump");
    };
    let mut words = Vec::new();
    for (first, at, count, seconds) in FORMATS {
        words.extend((0..*count).flat_map(|op| seconds.iter().map(move |second| [first | op << at, *second])));
    }
    let codes: Vec<Vec<u8>> = words.iter().map(|w| w.iter().flat_map(|w| w.to_le_bytes()).collect()).collect();
    // Whether an instruction was met as LLVM names it, on the local or on the global data share, and what was said instead.
    let mut met: BTreeMap<(String, bool), Result<bool, String>> = BTreeMap::new();
    for ((code, words), theirs) in codes.iter().zip(&words).zip(asm::disassemble(&objdump, &mc, &codes)) {
        let theirs = bare(theirs.split(" ; ").next().unwrap_or_default());
        if theirs.is_empty() || theirs.starts_with('.') {
            continue;
        }
        let gds = words[0] >> 26 == 0b11_0110 && words[0] & 0x1_0000 != 0;
        let said = known(code, theirs);
        let before = met.entry((theirs.to_owned(), gds)).or_insert_with(|| said.clone());
        if said.is_ok() {
            *before = said;
        }
    }
    let wrong: Vec<_> = met.iter().filter_map(|((name, gds), said)| Some((name, gds, said.as_ref().err()?))).collect();
    let told: Vec<String> = wrong.iter().map(|(name, gds, why)| format!("{name} (gds: {gds}): {why}")).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), met.len(), told.join("\n"));
    let count = |decoded: bool| met.values().filter(|said| **said == Ok(decoded)).count();
    assert!(count(true) > 900 && count(false) > 200, "{} decoded, {} refused", count(true), count(false));
}

/// Whether an instruction is decoded, or refused by its name; otherwise what is said of it. LLVM is generous with bits that have no meaning,
/// which the decoder refuses.
fn known(code: &[u8], theirs: &str) -> Result<bool, String> {
    if let Ok((inst, _)) = decode(code) {
        let ours = inst.row().name;
        return if ours == theirs { Ok(true) } else { Err(format!("{code:02x?} is {ours}")) };
    }
    let whole = [code, &[0, 0, 0x81, 0xBF]].concat();
    let error = run_code(whole, &Options::default()).expect_err("it is not decoded");
    let text = error.to_string();
    let named = error.code() == ErrorCode::Unsupported && text.contains(&format!("`{theirs}`"));
    if named { Ok(false) } else { Err(format!("{code:02x?} is not named: {text}")) }
}
