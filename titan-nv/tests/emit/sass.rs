//! What NVIDIA's assembler makes of a text: instructions of the machine (SASS), counted in loops. An instruction has 16 bytes;
//! where its fields lie is seen from listings of nvdisasm, which are beside the tests below.

use crate::ptxas;
use std::cmp::Reverse;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The release of the assembler that all figures are of.
const RELEASE: &str = "V12.9.86";

pub(crate) type Instruction = u128;

/// An instruction is known by its twelve low bits.
pub(crate) type Opcode = u128;

pub(crate) const HMMA: Opcode = 0x23c;
/// A barrier between threads of a block (`BAR.SYNC`, `BAR.ARV`).
#[allow(dead_code, reason = "barriers are counted in loops of one target")]
pub(crate) const BAR: Opcode = 0xb1d;
pub(crate) const HGMMA: Opcode = 0x9f0;
/// With operand A in shared memory, and in registers.
pub(crate) const ALL_HGMMA: [Opcode; 2] = [HGMMA, 0xdf0];
/// `HGMMA` of 8-bit floats.
pub(crate) const QGMMA: Opcode = 0x9f3;
/// Accesses to shared memory by threads: `LDS`, `STS`, `LDSM`, `STSM`.
pub(crate) const SHARED: [Opcode; 4] = [0x984, 0x388, 0x83b, 0x844];
/// Bulk copies of boxes, to one block and to several of a cluster.
pub(crate) const UTMALDG: [Opcode; 2] = [0x5b4, 0x3b4];
/// Asynchronous copies of threads to shared memory (`LDGSTS`).
#[allow(dead_code, reason = "they are counted in loops of one target")]
pub(crate) const LDGSTS: Opcode = 0xfae;
/// `WARPGROUP.ARRIVE` and `WARPGROUP.DEPBAR`.
pub(crate) const WARPGROUP: Opcode = 0x9c5;
/// What no loop of products should have: memory barriers, cache invalidations, accesses to local memory, registers made uniform,
/// fences between proxies.
pub(crate) const SLOW: [(&str, Opcode); 6] =
    [("MEMBAR", 0x992), ("CCTL", 0x98f), ("LDL", 0x983), ("STL", 0x387), ("R2UR", 0x2ca), ("FENCE.VIEW", 0x3c6)];
const BRA: Opcode = 0x947;
const NOP: Opcode = 0x918;

pub(crate) fn opcode(instruction: Instruction) -> Opcode {
    instruction & 0xfff
}

/// Cycles that the scheduler waits before the warp's next instruction; 0 is one cycle too.
pub(crate) fn stall(instruction: Instruction) -> u32 {
    u32::try_from(instruction >> 105 & 0xf).expect("four bits").max(1)
}

/// Whether an `HGMMA` ends a group (`gsb0`).
pub(crate) fn commits(instruction: Instruction) -> bool {
    ALL_HGMMA.contains(&opcode(instruction)) && instruction >> 84 & 7 != 7
}

/// How many groups a `WARPGROUP.DEPBAR` leaves in flight.
pub(crate) fn left_in_flight(instruction: Instruction) -> Option<u128> {
    (opcode(instruction) == WARPGROUP && instruction >> 47 & 1 == 1).then_some(instruction >> 72 & 0xff)
}

/// Whether a branch repeats what is before it for each value that a warp's threads have (`BRA.U.ANY`): the assembler could not see
/// that one thread executes it, or that all have the same value.
pub(crate) fn repeats(instruction: Instruction) -> bool {
    opcode(instruction) == BRA && instruction >> 84 & 1 == 1
}

/// Where a branch goes: the distance, in words behind it, is in 48 bits; its low eight bits lie apart since sm_90.
fn target(at: usize, instruction: Instruction, split: bool) -> usize {
    let high = ((instruction >> 34) as i64) << 16 >> 16;
    let words = if split { high << 8 | (instruction >> 16 & 0xff) as i64 } else { high };
    usize::try_from(at as i64 + 1 + words / 4).expect("a branch stays in the kernel")
}

pub(crate) fn count(code: &[Instruction], wanted: &[Opcode]) -> usize {
    code.iter().filter(|i| wanted.contains(&opcode(**i))).count()
}

pub(crate) fn without_padding(code: &[Instruction]) -> usize {
    code.len() - count(code, &[NOP])
}

/// The code of a kernel.
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    /// Whether distances of branches are split, as since sm_90.
    split: bool,
}

impl Code {
    /// The shortest loop with so many instructions of some kinds.
    #[allow(dead_code, reason = "loops of one target are found by the most instructions")]
    pub(crate) fn loop_with(&self, kinds: &[Opcode], n: usize) -> Option<&[Instruction]> {
        let found = self.loops().into_iter().filter(|l| count(&self.instructions[l.0..=l.1], kinds) == n);
        found.min_by_key(|l| l.1 - l.0).map(|l| &self.instructions[l.0..=l.1])
    }

    /// Where loops begin and end: at branches backwards.
    fn loops(&self) -> Vec<(usize, usize)> {
        let backwards = |(at, i): (usize, &Instruction)| {
            let from = (opcode(*i) == BRA).then(|| target(at, *i, self.split))?;
            (from < at).then_some((from, at))
        };
        self.instructions.iter().enumerate().filter_map(backwards).collect()
    }

    /// The loops with instructions of some kinds, of which no other one is inside.
    fn innermost(&self, kinds: &[Opcode]) -> Vec<&[Instruction]> {
        let code = &self.instructions;
        let with = |(from, to): &(usize, usize)| count(&code[*from..=*to], kinds) > 0;
        let loops: Vec<(usize, usize)> = self.loops().into_iter().filter(with).collect();
        let inner = |l: &&(usize, usize)| !loops.iter().any(|o| o != *l && l.0 <= o.0 && o.1 <= l.1);
        loops.iter().filter(inner).map(|(from, to)| &code[*from..=*to]).collect()
    }

    /// The shortest loop with the most instructions of some kinds of all innermost ones.
    pub(crate) fn main_loop(&self, kinds: &[Opcode]) -> Option<&[Instruction]> {
        self.innermost(kinds).into_iter().max_by_key(|body| (count(body, kinds), Reverse(body.len())))
    }

    /// The shortest innermost loops with so many instructions of some kinds, the shortest first.
    #[allow(dead_code, reason = "most code has one loop of a kind")]
    pub(crate) fn shortest(&self, kinds: &[Opcode], n: usize) -> Vec<&[Instruction]> {
        let mut found = self.innermost(kinds);
        found.retain(|body| count(body, kinds) == n);
        found.sort_by_key(|body| body.len());
        found
    }
}

/// Whether the assembler is of the release that the figures are of; tells the reader if it is not.
pub(crate) fn is_measured(ptxas: &Path) -> bool {
    let said = Command::new(ptxas).arg("--version").output().expect("ptxas starts");
    let measured = String::from_utf8_lossy(&said.stdout).contains(RELEASE);
    if !measured {
        ptxas::say(&format!("SKIPPED: the figures are of ptxas {RELEASE}"));
    }
    measured
}

/// What the assembler makes of a text with one kernel, or its errors.
pub(crate) fn assemble(ptxas: &Path, arch: &str, text: &str) -> Result<Code, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [from, to] = ["ptx", "cubin"].map(|kind| {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sass-{}-{number}.{kind}", std::process::id()))
    });
    std::fs::write(&from, text).expect("a file can be made under target");
    let run = Command::new(ptxas).args(["-O3", &format!("-arch={arch}"), "-o"]).arg(&to).arg(&from).output();
    let out = run.expect("ptxas starts");
    let made = if out.status.success() {
        let instructions = code(&std::fs::read(&to).expect("ptxas writes what it is told to"));
        Ok(Code { instructions, split: !arch.starts_with("sm_8") })
    } else {
        Err(String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
    };
    drop(std::fs::remove_file(&from));
    drop(std::fs::remove_file(&to));
    made
}

/// The code of the only kernel in an ELF file.
fn code(elf: &[u8]) -> Vec<Instruction> {
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

#[test]
fn fields_of_instructions_are_where_listings_show_them() {
    // On sm_80, `/*0660*/ @P2 BRA` to 0x470, and `/*0480*/ @P2 BRA` to 0x630.
    assert_eq!(target(0x66, 0x000f_ea00_0383_ffff_ffff_fe00_0000_2947, false), 0x47);
    assert_eq!(target(0x48, 0x002f_ea00_0380_0000_0000_01a0_0000_2947, false), 0x63);
    // `BAR.SYNC.DEFER_BLOCKING 0x0`
    assert_eq!(opcode(0x000f_ec00_0001_0000_0000_0000_0000_7b1d), BAR);
    // On sm_90, `/*19a0*/ @P0 BRA` to 0x1740, and `/*02b0*/ @P2 BRA.U.ANY` to 0x250.
    assert_eq!(target(0x19a, 0x000f_ea00_0383_ffff_ffff_fffc_0064_0947, true), 0x174);
    assert_eq!(target(0x2b, 0x000f_ea00_0393_ffff_ffff_fffd_00e4_2947, true), 0x25);
    assert!(!repeats(0x000f_ea00_0383_ffff_ffff_fffc_0064_0947));
    assert!(repeats(0x000f_ea00_0393_ffff_ffff_fffd_00e4_2947));
    // `WARPGROUP.ARRIVE`, and `WARPGROUP.DEPBAR.LE gsb0, 0x1` with a stall of two cycles.
    assert_eq!(left_in_flight(0x000f_e200_0000_0000_0000_0000_0000_79c5), None);
    assert_eq!(left_in_flight(0x000f_e400_0001_0100_0000_8000_0000_79c5), Some(1));
    assert_eq!(stall(0x000f_e400_0001_0100_0000_8000_0000_79c5), 2);
    // `HGMMA.64x256x16.F32 R24, gdesc[UR24], R24` without and with `, gsb0`.
    assert!(!commits(0x000f_de00_0870_0818_03e0_0000_1818_79f0));
    assert!(commits(0x000f_e200_0800_0818_03e0_0000_0818_79f0));
    // `HGMMA.64x128x16.F32 R24, R180, gdesc[UR8].tnspB, R24, gsb0`.
    assert!(commits(0x000f_e600_0800_0818_41e0_0008_b418_7df0));
}
