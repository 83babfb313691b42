//! What the main loops of products and attention cost on sm_80: instructions for each matrix instruction, counted in what
//! NVIDIA's assembler makes of them. An instruction of the loop's addresses counts once, whether it runs or not; what only pads
//! does not. docs/performance.md has the table.

use crate::ptxas;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use titan_core::driver::compile;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;

const GEMM: &str = include_str!("loops/gemm.tir");
const GEMM_WS: &str = include_str!("loops/gemm_ws.tir");
const ATTENTION: &str = include_str!("loops/attention.tir");

/// The release of the assembler that the figures are of.
const RELEASE: &str = "V12.9.86";

/// A kernel, and the most instructions that its loop and all of it may have.
struct Case {
    name: &'static str,
    text: String,
    mma: usize,
    in_loop: usize,
    whole: usize,
}

pub(super) fn gemm([bm, bn, bk]: [u32; 3]) -> String {
    [("BM", bm), ("BN", bn), ("BK", bk)]
        .iter()
        .fold(GEMM.to_owned(), |text, (name, n)| text.replace(name, &n.to_string()))
}

fn attention(size: u32, causal: bool) -> String {
    let text = ATTENTION.replace("SIZE", &size.to_string());
    if causal { text } else { text.replace("select %seen.2", "select %seen").replace("min %NK, %32", "min %NK, %NK") }
}

fn cases() -> Vec<Case> {
    let case = |name, text, [mma, in_loop, whole]: [usize; 3]| Case { name, text, mma, in_loop, whole };
    vec![
        case("gemm 128x256x64", gemm([128, 256, 64]), [128, 245, 740]),
        case("gemm 128x128x64", gemm([128, 128, 64]), [128, 261, 780]),
        case("gemm 128x128x32", gemm([128, 128, 32]), [64, 145, 620]),
        case("gemm 64x128x32", gemm([64, 128, 32]), [32, 101, 430]),
        case("gemm_ws 128x128x64", GEMM_WS.to_owned(), [128, 261, 890]),
        case("attention 64", attention(64, false), [64, 468, 1420]),
        case("attention 64 causal", attention(64, true), [64, 513, 1480]),
        case("attention 128", attention(128, false), [128, 605, 2170]),
        case("attention 128 causal", attention(128, true), [128, 654, 2220]),
    ]
}

/// The code of the only kernel of a program for the machine.
fn code(elf: &[u8]) -> Vec<u128> {
    let word =
        |at: usize, n: usize| elf[at..at + n].iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
    let (table, size, count, names) = (word(40, 8), word(58, 2), word(60, 2), word(62, 2));
    let section = |i: usize| table + i * size;
    let names = word(section(names) + 24, 8);
    let is_code = |i: &usize| elf[names + word(section(*i), 4)..].starts_with(b".text.");
    let found = (0..count).find(is_code).expect("there is code");
    let (start, bytes) = (word(section(found) + 24, 8), word(section(found) + 32, 8));
    let of = |bytes: &[u8]| u128::from_le_bytes(bytes.try_into().expect("an instruction has 16 bytes"));
    elf[start..start + bytes].chunks_exact(16).map(of).collect()
}

fn opcode(instruction: u128) -> u128 {
    instruction & 0xfff
}

const HMMA: u128 = 0x23c;
const BRA: u128 = 0x947;
const NOP: u128 = 0x918;

/// Where a branch goes: the distance, in words behind it, is in 48 bits.
fn target(at: usize, instruction: u128) -> usize {
    let words = ((instruction >> 34) as i64) << 16 >> 16;
    usize::try_from(at as i64 + 1 + words / 4).expect("a branch stays in the kernel")
}

fn count(code: &[u128], wanted: impl Fn(u128) -> bool) -> usize {
    code.iter().filter(|i| wanted(opcode(**i))).count()
}

/// The shortest loop with the most matrix instructions of all innermost ones.
fn main_loop(code: &[u128]) -> &[u128] {
    let backwards = |(at, i): (usize, &u128)| (opcode(*i) == BRA && target(at, *i) < at).then(|| (target(at, *i), at));
    let loops: Vec<(usize, usize)> = code.iter().enumerate().filter_map(backwards).collect();
    let has = |(from, to): &(usize, usize)| count(&code[*from..=*to], |op| op == HMMA);
    let inner = |l: &(usize, usize)| !loops.iter().any(|o| o != l && has(o) > 0 && l.0 <= o.0 && o.1 <= l.1);
    let found = loops.iter().filter(|l| inner(l)).max_by_key(|l| (has(l), l.0)).expect("there is a loop");
    &code[found.0..=found.1]
}

/// Whether the assembler is of a release.
fn is_release(ptxas: &Path, release: &str) -> bool {
    let said = Command::new(ptxas).arg("--version").output().expect("ptxas starts");
    String::from_utf8_lossy(&said.stdout).contains(release)
}

/// What the assembler makes of a text, or its errors.
fn cubin(ptxas: &Path, arch: &str, text: &str) -> Result<Vec<u8>, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [from, to] = ["ptx", "cubin"].map(|kind| {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("loops-{}-{number}.{kind}", std::process::id()))
    });
    std::fs::write(&from, text).expect("a file can be made under target");
    let run = Command::new(ptxas).args(["-O3", &format!("-arch={arch}"), "-o"]).arg(&to).arg(&from).output();
    let out = run.expect("ptxas starts");
    let made = if out.status.success() {
        Ok(std::fs::read(&to).expect("ptxas writes what it is told to"))
    } else {
        Err(String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    drop(std::fs::remove_file(&from));
    drop(std::fs::remove_file(&to));
    made
}

#[test]
fn main_loops_take_no_more_instructions_than_they_did() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !is_release(&ptxas, RELEASE) {
        ptxas::say(&format!("SKIPPED: the figures are of ptxas {RELEASE}"));
        return;
    }
    let machine = Machine::all().iter().find(|m| m.name == "sm_80").expect("sm_80 is there");
    let mut wrong = Vec::new();
    for case in cases() {
        let kernels = text::parse(&case.text).unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
        let kernel = verify(kernels[0].clone()).unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
        let variants = compile(&kernel, machine, None).expect("sm_80 runs it");
        let text = String::from_utf8(variants[0].payload.clone()).expect("PTX is text");
        let cubin = cubin(&ptxas, "sm_80", &text).unwrap_or_else(|said| panic!("{}: {said}", case.name));
        let code = code(&cubin);
        let around = main_loop(&code);
        let (mma, in_loop) = (count(around, |op| op == HMMA), count(around, |op| op != NOP));
        let whole = count(&code, |op| op != NOP);
        let per = in_loop as f64 / mma as f64;
        let line =
            format!("{:22} {in_loop:4} instructions, {mma:4} products, {per:.2} each; {whole} in all", case.name);
        ptxas::say(&line);
        if mma != case.mma || in_loop > case.in_loop || whole > case.whole {
            wrong.push(format!("{line}; {} and {} are expected", case.in_loop, case.whole));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn branches_say_where_they_go() {
    // From a listing of nvdisasm: `/*0660*/ @P2 BRA` to 0x470, and `/*0480*/ @P2 BRA` to 0x630.
    assert_eq!(target(0x66, 0x000f_ea00_0383_ffff_ffff_fe00_0000_2947), 0x47);
    assert_eq!(target(0x48, 0x002f_ea00_0380_0000_0000_01a0_0000_2947), 0x63);
}
