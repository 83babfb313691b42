//! Which bits of results are undefined: nothing that the emulator calls defined depends on undefined bits, and where its rules are exact,
//! everything that it calls undefined does.
//!
//! Each instruction runs on registers some of whose bits are undefined, several times, with other contents of these bits. All runs must
//! end alike: with the same error, or with the same undefined bits and the same values of the others. This compares the emulator with
//! itself: a rule is checked by the results of the instruction, which other tests compare with references.

use crate::harness::{Bench, upload};
use crate::random::instruction;
use crate::support::depth::tries;
use std::collections::BTreeSet;
use titan_amd::emu::{Arg, Args, Launch, Memory, Module, Options, Uninitialised};
use titan_amd::isa::asm::assemble;
use titan_amd::isa::operand::{EXEC, M0, VCC};
use titan_amd::isa::{Access, Form, Implicit, Inst, Operand, Row, Unit, all};
use titan_amd::object::{ArgKind, KernelArg, KernelCode, Program};
use titan_sim::engine::Rng;

/// A register of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reg {
    V(u8),
    A(u8),
    S(u8),
}

fn registers(operand: Operand) -> Vec<Reg> {
    let all = |first: u8, n: u8, of: fn(u8) -> Reg| (first..=first + (n - 1)).map(of).collect();
    match operand {
        Operand::V(first, n) => all(first, n, Reg::V),
        Operand::A(first, n) => all(first, n, Reg::A),
        Operand::S(first, n) => all(first, n, Reg::S),
        Operand::Inline(_) | Operand::Literal(_) | Operand::Special(_) | Operand::Imm(_) | Operand::Off => Vec::new(),
    }
}

fn name(reg: Reg) -> String {
    match reg {
        Reg::V(r) => format!("v{r}"),
        Reg::A(r) => format!("a{r}"),
        Reg::S(VCC) => "vcc_lo".to_owned(),
        Reg::S(r) if r == VCC + 1 => "vcc_hi".to_owned(),
        Reg::S(M0) => "m0".to_owned(),
        Reg::S(EXEC) => "exec_lo".to_owned(),
        Reg::S(r) if r == EXEC + 1 => "exec_hi".to_owned(),
        Reg::S(102) => "flat_scratch_lo".to_owned(),
        Reg::S(103) => "flat_scratch_hi".to_owned(),
        Reg::S(r) => format!("s{r}"),
    }
}

const fn is_exec(reg: &Reg) -> bool {
    matches!(reg, Reg::S(EXEC..))
}

/// What an instruction reads and writes.
struct Uses {
    reads: BTreeSet<Reg>,
    writes: BTreeSet<Reg>,
}

fn uses(inst: &Inst) -> Uses {
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
    for (arg, operand) in inst.args() {
        if arg.access != Access::Write {
            reads.extend(registers(operand));
        }
        if arg.access != Access::Read {
            writes.extend(registers(operand));
        }
    }
    let row = inst.row();
    for (what, code, n) in [(Implicit::VCC, VCC, 2), (Implicit::M0, M0, 1), (Implicit::EXEC, EXEC, 2)] {
        if row.reads.has(what) && what != Implicit::EXEC {
            reads.extend(registers(Operand::S(code, n)));
        }
        if row.writes.has(what) || what == Implicit::EXEC {
            writes.extend(registers(Operand::S(code, n)));
        }
    }
    // What a register that is read holds afterwards is compared as well: parts of it may be kept.
    writes.extend(reads.iter().copied());
    reads.retain(|r| !is_exec(r));
    Uses { reads, writes }
}

/// The arithmetic whose results are looked at.
fn is_arithmetic(row: &Row) -> bool {
    let unit =
        matches!(row.unit, Unit::Salu | Unit::Valu | Unit::Trans | Unit::Dot | Unit::Xdl | Unit::Sgemm | Unit::Dgemm);
    let other = ["s_getpc", "s_getreg", "s_setreg", "s_set_gpr_idx", "s_movrel", "v_nop"];
    unit && !other.iter().any(|o| row.name.starts_with(o))
}

/// A kernel that runs one instruction: which registers it fills, and what it stores.
struct Kernel {
    module: Module,
    reads: Vec<Reg>,
    writes: Vec<Reg>,
}

/// The registers of the kernel's own: an address, a value, a mask; scalar ones for the argument, `exec`, a value, a mask.
struct Own {
    v: [u8; 4],
    s: u8,
    /// Registers that are never written.
    undefined_v: Vec<u8>,
    undefined_s: Vec<u8>,
}

fn own(uses: &Uses) -> Option<Own> {
    let taken = |r: Reg| uses.reads.contains(&r) || uses.writes.contains(&r);
    let mut v = (1..=255).rev().filter(|r| !taken(Reg::V(*r)));
    let first = (2..=254).step_by(2).find(|r| !taken(Reg::V(*r)) && !taken(Reg::V(r + 1)))?;
    let mut others = v.by_ref().filter(|r| *r != first && *r != first + 1);
    let four = [first, first + 1, others.next()?, others.next()?];
    let undefined_v = others.collect();
    let s = (8..80).step_by(8).find(|s| (0..8).all(|i| !taken(Reg::S(s + i))))?;
    let undefined_s = (8..100).filter(|r| !taken(Reg::S(*r)) && !(s..s + 8).contains(r)).collect();
    Some(Own { v: four, s, undefined_v, undefined_s })
}

impl Kernel {
    /// `mask`: whether only some lanes are active.
    fn new(inst: &Inst, mask: Option<u64>) -> Option<Kernel> {
        let uses = uses(inst);
        let Own { v: [va, vb, vc, vd], s, undefined_v, undefined_s } = own(&uses)?;
        let (reads, writes): (Vec<Reg>, Vec<Reg>) =
            (uses.reads.into_iter().collect(), uses.writes.into_iter().collect());
        let stride = 4 * 2 * reads.len().max(writes.len() + 1).max(1);
        let mut text = format!(
            "s_load_dwordx2 s[{s}:{}], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_and_b32_e32 v{vc}, 0x3ff, v0
            s_mov_b32 s{}, {stride:#x}\nv_mul_lo_u32 v{vc}, v{vc}, s{}\nv_mov_b32_e32 v{vb}, s{}
            v_add_co_u32_e64 v{va}, s[{}:{}], s{s}, v{vc}\nv_addc_co_u32_e64 v{vb}, s[{}:{}], 0, v{vb}, s[{}:{}]\n",
            s + 1,
            s + 2,
            s + 2,
            s + 1,
            s + 2,
            s + 3,
            s + 2,
            s + 3,
            s + 2,
            s + 3
        );
        let (mut undefined_v, mut undefined_s) = (undefined_v.into_iter(), undefined_s.into_iter());
        for (i, reg) in reads.iter().enumerate() {
            let (value, bits) = (8 * i, 8 * i + 4);
            match reg {
                Reg::V(_) | Reg::A(_) => {
                    let undefined = undefined_v.next()?;
                    text.push_str(&format!(
                        "global_load_dword v{vc}, v[{va}:{vb}], off offset:{value}
                        global_load_dword v{vd}, v[{va}:{vb}], off offset:{bits}\ns_waitcnt vmcnt(0)
                        v_bfi_b32 v{vc}, v{vd}, v{undefined}, v{vc}\n"
                    ));
                    text.push_str(&match reg {
                        Reg::A(r) => format!("v_accvgpr_write_b32 a{r}, v{vc}\n"),
                        _ => format!("v_mov_b32_e32 {}, v{vc}\n", name(*reg)),
                    });
                }
                Reg::S(_) => {
                    let (undefined, a, b, to) = (undefined_s.next()?, s + 2, s + 3, name(*reg));
                    text.push_str(&format!(
                        "s_load_dword s{a}, s[{s}:{}], {value:#x}\ns_load_dword s{b}, s[{s}:{}], {bits:#x}
                        s_waitcnt lgkmcnt(0)\ns_andn2_b32 s{a}, s{a}, s{b}\ns_and_b32 s{b}, s{undefined}, s{b}
                        s_or_b32 {to}, s{a}, s{b}\n",
                        s + 1,
                        s + 1
                    ));
                }
            }
        }
        let saved = format!("s[{}:{}]", s + 4, s + 5);
        text.push_str(&format!("s_mov_b64 {saved}, exec\n"));
        if let Some(mask) = mask {
            text.push_str(&format!("s_mov_b32 exec_lo, {:#x}\ns_mov_b32 exec_hi, {:#x}\n", mask as u32, mask >> 32));
        }
        // The condition code is defined.
        text.push_str("s_cmp_eq_u32 0, 0\n");
        let mut end = format!(
            "s_cselect_b32 s{}, 1, 0\ns_mov_b64 s[{}:{}], exec\ns_mov_b64 exec, {saved}\n",
            s + 3,
            s + 6,
            s + 7
        );
        let mut store = |at: usize, source: &str| {
            end.push_str(source);
            end.push_str(&format!("global_store_dword v[{va}:{vb}], v{vc}, off offset:{at}\ns_waitcnt vmcnt(0)\n"));
        };
        for (i, reg) in writes.iter().enumerate() {
            let source = match reg {
                Reg::A(r) => format!("v_accvgpr_read_b32 v{vc}, a{r}\n"),
                Reg::S(EXEC) => format!("v_mov_b32_e32 v{vc}, s{}\n", s + 6),
                Reg::S(r) if *r == EXEC + 1 => format!("v_mov_b32_e32 v{vc}, s{}\n", s + 7),
                _ => format!("v_mov_b32_e32 v{vc}, {}\n", name(*reg)),
            };
            store(4 * i, &source);
        }
        store(4 * writes.len(), &format!("v_mov_b32_e32 v{vc}, s{}\n", s + 3));
        let mut code = assemble(&text).unwrap_or_else(|e| panic!("{inst}: {e}\n{text}"));
        code.extend(inst.bytes().unwrap());
        code.extend(assemble(&format!("{end}s_endpgm")).unwrap_or_else(|e| panic!("{inst}: {e}\n{end}")));
        let mut resources = Bench::pointers(1).resources;
        (resources.vgprs, resources.agprs, resources.sgprs) = (256, 256, 102);
        let args = vec![KernelArg { name: None, offset: 0, size: 8, kind: ArgKind::GlobalBuffer }];
        let kernel = KernelCode { name: "k".to_owned(), code, args, resources, max_workgroup_size: 64 };
        let module = Module::load(&Program { kernels: vec![kernel] }.to_bytes().unwrap()).unwrap();
        Some(Kernel { module, reads, writes })
    }

    /// For each lane, the words that the instruction leaves and which of their bits are undefined; or the error.
    fn run(&self, inputs: &[Vec<[u32; 2]>], undefined_seed: u64) -> Result<Vec<Vec<[u32; 2]>>, String> {
        self.run_with(inputs, Options { undefined_seed, hazards: false, ..Options::default() })
    }

    fn run_with(&self, inputs: &[Vec<[u32; 2]>], options: Options) -> Result<Vec<Vec<[u32; 2]>>, String> {
        let words = self.writes.len() + 1;
        let stride = 2 * self.reads.len().max(words).max(1);
        let mut all = vec![0; 64 * stride];
        for (lane, inputs) in inputs.iter().enumerate() {
            inputs.iter().enumerate().for_each(|(i, pair)| all[lane * stride + 2 * i..][..2].copy_from_slice(pair));
        }
        let mut memory = Memory::new();
        let x = upload(&mut memory, "x", &all);
        let args = [Arg::Ptr(x)];
        let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], dynamic_lds: 0, args: Args::Each(&args) };
        self.module.kernel("k").unwrap().run(&launch, &mut memory, &options).map_err(|e| e.to_string())?;
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
        let lane = |l: usize| {
            let at = x.add((4 * stride * l) as i64);
            let (bytes, bits) =
                (memory.read_any(at, 4 * words).unwrap(), memory.undefined_bits(at, 4 * words).unwrap());
            bytes.chunks(4).zip(bits.chunks(4)).map(|(b, u)| [word(b), word(u)]).collect()
        };
        Ok((0..64).map(lane).collect())
    }
}

/// Undefined bits: none, all, a half, a few, the lowest, the highest.
fn shadow(rng: &mut Rng) -> u32 {
    let random = rng.next_u64() as u32;
    match rng.below(8) {
        0 | 1 => 0,
        2 => u32::MAX,
        3 => 0xFFFF_0000,
        4 => 0xFFFF,
        5 => random & (rng.next_u64() as u32) & (rng.next_u64() as u32),
        6 => (1 << rng.below(32)) - 1,
        _ => !((1 << rng.below(32)) - 1),
    }
}

/// Values and shadows of registers, for each lane; those of scalar registers are the first lane's.
fn inputs(rng: &mut Rng, reads: &[Reg], defined: impl Fn(usize) -> bool) -> Vec<Vec<[u32; 2]>> {
    let value = |rng: &mut Rng| match rng.below(4) {
        0 => rng.below(64) as u32,
        1 => ((rng.below(4096) as f32 - 2048.0) / 64.0).to_bits(),
        _ => rng.next_u64() as u32,
    };
    let one = |rng: &mut Rng, i: usize| [value(rng), if defined(i) { 0 } else { shadow(rng) }];
    (0..64).map(|_| (0..reads.len()).map(|i| one(rng, i)).collect()).collect()
}

/// Both end alike.
fn same(
    a: &Result<Vec<Vec<[u32; 2]>>, String>,
    b: &Result<Vec<Vec<[u32; 2]>>, String>,
    writes: &[Reg],
) -> Result<(), String> {
    let (a, b) = match (a, b) {
        (Err(a), Err(b)) if a == b => return Ok(()),
        (Ok(a), Ok(b)) => (a, b),
        _ => return Err(format!("one run ends otherwise: {:?} and {:?}", a.as_ref().err(), b.as_ref().err())),
    };
    for (lane, (a, b)) in a.iter().zip(b).enumerate() {
        for (i, ([x, u], [y, w])) in a.iter().zip(b).enumerate() {
            let what = writes.get(i).map_or("scc".to_owned(), |r| name(*r));
            if u != w || (x ^ y) & !u != 0 {
                return Err(format!("{what} of lane {lane}: {x:#x} without {u:#x}, and {y:#x} without {w:#x}"));
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_called_defined_depends_on_no_undefined_bits() {
    let mut rng = Rng::new(31);
    let forms = |row: &'static Row| row.forms().into_iter().map(move |form| (row, form));
    let rows: Vec<(&Row, Form)> = all().filter(|r| is_arithmetic(r)).flat_map(forms).collect();
    let (mut tried, mut some_defined, mut wrong) = (0, 0, Vec::new());
    for (i, (row, form)) in rows.iter().enumerate() {
        // The sample has each instruction in one of its encodings, every third time.
        if tries(i % 6 != 0, false) {
            continue;
        }
        for _ in 0..tries(1, 6) {
            let inst = instruction(&mut rng, row, *form);
            let mask = (rng.below(3) == 0).then(|| rng.next_u64());
            let Some(kernel) = Kernel::new(&inst, mask) else { continue };
            let inputs = inputs(&mut rng, &kernel.reads, |_| false);
            let first = kernel.run(&inputs, 1);
            tried += 1;
            some_defined += usize::from(first.as_ref().is_ok_and(|r| r.iter().flatten().any(|[_, u]| *u != u32::MAX)));
            for seed in 2..tries(4, 6) {
                if let Err(why) = same(&first, &kernel.run(&inputs, seed), &kernel.writes) {
                    wrong.push(format!("{inst}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
    assert!(tried > 150 && some_defined > tried / 2, "{tried} tried, {some_defined} with something defined");
}

/// Instructions with exact rules, and the sources that must be defined for that: distances of shifts, selectors.
const EXACT: &[(&str, &[usize])] = &[
    ("v_mov_b32", &[]),
    ("v_not_b32", &[]),
    ("v_bfrev_b32", &[]),
    ("v_and_b32", &[]),
    ("v_or_b32", &[]),
    ("v_xor_b32", &[]),
    ("v_and_or_b32", &[]),
    ("v_or3_b32", &[]),
    ("v_bfi_b32", &[]),
    ("v_bfe_u32", &[1, 2]),
    ("v_bfe_i32", &[1, 2]),
    ("v_lshlrev_b32", &[0]),
    ("v_lshrrev_b32", &[0]),
    ("v_ashrrev_i32", &[0]),
    ("v_lshl_or_b32", &[1]),
    ("v_alignbit_b32", &[2]),
    ("v_alignbyte_b32", &[2]),
    ("v_perm_b32", &[2]),
    ("v_lshlrev_b16", &[0]),
    ("v_lshrrev_b16", &[0]),
    ("v_ashrrev_i16", &[0]),
    ("v_pk_lshlrev_b16", &[0]),
    ("v_pk_mov_b32", &[]),
    ("v_cndmask_b32", &[]),
    ("v_readlane_b32", &[1]),
    ("v_readfirstlane_b32", &[]),
    ("s_and_b32", &[]),
    ("s_or_b64", &[]),
    ("s_xor_b32", &[]),
    ("s_andn2_b32", &[]),
    ("s_orn2_b32", &[]),
    ("s_nand_b32", &[]),
    ("s_nor_b32", &[]),
    ("s_not_b64", &[]),
    ("s_lshl_b32", &[1]),
    ("s_lshr_b64", &[1]),
    ("s_ashr_i32", &[1]),
    ("s_bfe_u32", &[1]),
    ("s_bfe_i64", &[1]),
    ("s_pack_lh_b32_b16", &[]),
    ("s_sext_i32_i8", &[]),
    ("s_cselect_b32", &[]),
];

#[test]
fn what_is_called_undefined_depends_on_undefined_bits() {
    let mut rng = Rng::new(32);
    let mut wrong = Vec::new();
    for (row, defined) in all().filter_map(|r| Some((r, EXACT.iter().find(|(n, _)| *n == r.name)?.1))) {
        for round in 0..tries(1, 8) {
            // Distinct registers, so that sources do not agree in what is undefined.
            let Some((inst, kernel)) = (0..100).find_map(|_| {
                let inst = instruction(&mut rng, row, Form::Base);
                let all: Vec<Reg> = inst.args().flat_map(|(_, o)| registers(o)).collect();
                // `src_vccz` is undefined, and almost always 0.
                let special = inst.operands().iter().any(|o| matches!(o, Operand::Special(_)));
                let distinct =
                    !special && all.iter().collect::<BTreeSet<_>>().len() == all.len() && !all.iter().any(is_exec);
                if !distinct { None } else { Kernel::new(&inst, None).map(|kernel| (inst, kernel)) }
            }) else {
                panic!("{}: no registers of its own", row.name)
            };
            let of =
                |n: &usize| inst.args().filter(|(a, _)| a.access == Access::Read).nth(*n).map(|(_, o)| registers(o));
            let fixed: Vec<Reg> = defined.iter().filter_map(of).flatten().collect();
            let inputs = inputs(&mut rng, &kernel.reads, |i| fixed.contains(&kernel.reads[i]));
            let first = kernel.run(&inputs, 1).unwrap_or_else(|e| panic!("{inst}: {e}"));
            // Memory does not keep the values of undefined bytes: they are looked at where random bits stand for them.
            let values = |seed: u64| {
                let uninitialised = Uninitialised::Random(seed);
                kernel.run_with(&inputs, Options { uninitialised, hazards: false, ..Options::default() }).unwrap()
            };
            let mut differs: Vec<Vec<u32>> = first.iter().map(|w| vec![0; w.len()]).collect();
            let one = values(1);
            for seed in 2..40 {
                let other = values(2 * seed);
                for (d, (a, b)) in differs.iter_mut().zip(one.iter().zip(&other)) {
                    d.iter_mut().zip(a.iter().zip(b)).for_each(|(d, (a, b))| *d |= a[0] ^ b[0]);
                }
            }
            let words = differs.iter().zip(&first).flat_map(|(d, words)| d.iter().zip(words).take(kernel.writes.len()));
            let (undefined, constant) =
                words.fold((0, 0), |(all, bad), (d, [_, u])| (all + u.count_ones(), bad + (u & !d).count_ones()));
            // One in eight bits of a conjunction of three is set: a few are the same in all runs.
            if constant > undefined / 50 {
                wrong.push(format!("{inst}, round {round}: {constant} of {undefined} bits are always the same"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(30)].join("\n"));
}
