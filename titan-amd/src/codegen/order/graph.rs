//! What must come before what in a block: an instruction after those whose results it reads, and after those that read or write what it writes.

use crate::codegen::machine_ir::{Code, Inst, Kind, Operand};
use crate::isa::{Access, Field, Format, Implicit, Operand as Isa, Row, Special, Unit};

/// The kinds of locations that are not words of virtual registers: registers of the machine, by file; the condition code; the memories.
const FILE: usize = 256;
const SCC: usize = 3 * FILE;
const GLOBAL: usize = SCC + 1;
const LOCAL: usize = SCC + 2;
const OTHERS: usize = SCC + 3;

/// What an instruction does with a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Nothing.
    Apart,
    /// It reads it, as other instructions may do before or after.
    Reads(usize),
    Writes(usize),
    /// It orders all accesses to any memory: barriers, waits, atomics, accesses with a scope.
    Orders,
}

/// Whether an access to the local data share is one of the plain ones that are selected.
fn of_words(name: &str, access: &str) -> bool {
    name.strip_prefix(access).is_some_and(|of| matches!(of, "u8" | "u16" | "b8" | "b16" | "b32" | "b64" | "b128"))
}

fn memory(row: &Row, mods: &[(Field, u32)]) -> Memory {
    let of_device = matches!(row.format, Format::Global | Format::Mubuf);
    let scoped = mods
        .iter()
        .any(|(field, value)| *value != 0 && matches!(field, Field::Sc0 | Field::Sc1 | Field::Nt | Field::Glc));
    match row.unit {
        Unit::Salu | Unit::Valu | Unit::Trans | Unit::Dot | Unit::Xdl | Unit::Sgemm | Unit::Dgemm => Memory::Apart,
        Unit::Load if of_device && !scoped => Memory::Reads(GLOBAL),
        Unit::Smem if row.name.starts_with("s_load_dword") && !scoped => Memory::Reads(GLOBAL),
        Unit::Store if of_device && !scoped => Memory::Writes(GLOBAL),
        Unit::Lds if matches!(row.name, "ds_swizzle_b32" | "ds_bpermute_b32" | "ds_permute_b32") => Memory::Apart,
        Unit::Lds if of_words(row.name, "ds_read_") => Memory::Reads(LOCAL),
        Unit::Lds if of_words(row.name, "ds_write_") => Memory::Writes(LOCAL),
        Unit::Smem
        | Unit::Load
        | Unit::Store
        | Unit::Atomic
        | Unit::LoadLds
        | Unit::Cache
        | Unit::Lds
        | Unit::Branch
        | Unit::Control => Memory::Orders,
    }
}

/// The numbers of locations.
#[derive(Clone, Debug)]
pub(super) struct Locations {
    /// The number of the first word of each register.
    first: Vec<usize>,
    all: usize,
}

impl Locations {
    pub(super) fn new(code: &Code) -> Locations {
        let mut all = OTHERS;
        let mut first = Vec::with_capacity(code.registers.len());
        for register in &code.registers {
            first.push(all);
            all += usize::from(register.words);
        }
        Locations { first, all }
    }

    fn of(&self, operand: &Operand) -> std::ops::Range<usize> {
        let range = |file: usize, first: u8, n: u8| {
            let first = file * FILE + usize::from(first);
            first..first + usize::from(n)
        };
        match operand {
            Operand::Part(part) => {
                let first = self.first[part.reg.index()] + usize::from(part.first);
                first..first + usize::from(part.words)
            }
            Operand::Isa(Isa::S(first, n)) => range(0, *first, *n),
            Operand::Isa(Isa::V(first, n)) => range(1, *first, *n),
            Operand::Isa(Isa::A(first, n)) => range(2, *first, *n),
            Operand::Isa(Isa::Special(Special::Scc)) => SCC..SCC + 1,
            Operand::Isa(Isa::Special(Special::Vccz)) => self.of(&Operand::Isa(Isa::VCC)),
            Operand::Isa(Isa::Special(Special::Execz)) => self.of(&Operand::Isa(Isa::EXEC)),
            Operand::Isa(
                Isa::Special(Special::SharedBase | Special::SharedLimit | Special::PrivateBase | Special::PrivateLimit)
                | Isa::Inline(_)
                | Isa::Literal(_)
                | Isa::Imm(_)
                | Isa::Off,
            )
            | Operand::To(_) => 0..0,
        }
    }
}

/// What an instruction reads and writes.
#[derive(Clone, Debug, Default)]
struct Effects {
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// Whether it changes how other instructions work, or what is executed: all others keep their side of it.
    wall: bool,
}

const fn is_arithmetic(unit: Unit) -> bool {
    matches!(unit, Unit::Salu | Unit::Valu | Unit::Trans)
}

fn effects(code: &Code, locations: &Locations, inst: &Inst) -> Effects {
    let mut found = Effects::default();
    for (access, operand) in inst.accesses() {
        // A definition by parts, or of some lanes, keeps the rest.
        let keeps = match operand {
            Operand::Part(part) => code.register(part.reg).pieces && inst.kind != Kind::Start,
            Operand::Isa(_) => true,
            Operand::To(_) => false,
        };
        if access != Access::Write || keeps {
            found.reads.extend(locations.of(operand));
        }
        if access != Access::Read {
            found.writes.extend(locations.of(operand));
        }
    }
    let Kind::Row { row, mods, .. } = &inst.kind else { return found };
    let implicit = [(Implicit::VCC, Isa::VCC), (Implicit::EXEC, Isa::EXEC), (Implicit::M0, Isa::M0)];
    for (set, register) in implicit {
        let own = locations.of(&Operand::Isa(register));
        found.reads.extend(own.clone().filter(|_| row.reads.has(set)));
        found.writes.extend(own.filter(|_| row.writes.has(set)));
    }
    found.reads.extend(row.reads.has(Implicit::SCC).then_some(SCC));
    found.writes.extend(row.writes.has(Implicit::SCC).then_some(SCC));
    if !matches!(row.unit, Unit::Salu | Unit::Smem | Unit::Branch | Unit::Control) {
        found.reads.extend(locations.of(&Operand::Isa(Isa::EXEC)));
    }
    let known = Implicit::SCC.and(Implicit::VCC).and(Implicit::EXEC);
    let m0 = locations.of(&Operand::Isa(Isa::M0));
    found.wall = row.writes.without(known) != Implicit::NONE
        || row.reads.has(Implicit::PC)
        || row.name == "s_getreg_b32"
        || is_arithmetic(row.unit) && row.reads.has(Implicit::M0)
        || found.writes.iter().any(|location| m0.contains(location))
        || row.unit == Unit::Branch
        || inst.target().is_some();
    match memory(row, mods) {
        Memory::Apart => {}
        Memory::Reads(memory) => found.reads.push(memory),
        Memory::Writes(memory) => found.writes.push(memory),
        Memory::Orders => found.writes.extend([GLOBAL, LOCAL]),
    }
    found
}

/// An instruction that another one comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) inst: usize,
    /// Whether a register that it writes is read.
    pub(super) flows: bool,
}

/// The instructions of a block.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Those that come before each one; starts of lifetimes are not among them.
    pub(super) before: Vec<Vec<Before>>,
    /// Those that come after each one.
    pub(super) after: Vec<Vec<usize>>,
    /// The starts of lifetimes that come immediately before each one, unless another instruction needed them earlier.
    pub(super) starts: Vec<Vec<usize>>,
}

/// The dependences of a block. A start of a lifetime is no node of its own: whatever comes after it comes after all that it comes after.
pub(super) fn graph(code: &Code, locations: &Locations, insts: &[Inst]) -> Graph {
    let mut last: Vec<Option<usize>> = vec![None; locations.all];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); locations.all];
    let mut before: Vec<Vec<Before>> = vec![Vec::new(); insts.len()];
    let mut wall = None;
    for (at, inst) in insts.iter().enumerate() {
        let Effects { reads, writes, wall: is_wall } = effects(code, locations, inst);
        let own = &mut before[at];
        let add = |own: &mut Vec<Before>, inst: usize, flows: bool| match own.iter_mut().find(|b| b.inst == inst) {
            Some(known) => known.flows |= flows,
            None => own.push(Before { inst, flows }),
        };
        if let Some(wall) = wall {
            add(own, wall, false);
        }
        if is_wall {
            (0..at).for_each(|inst| add(own, inst, false));
            wall = Some(at);
        }
        for location in &reads {
            if let Some(writer) = last[*location].filter(|writer| *writer != at) {
                add(own, writer, *location != GLOBAL && *location != LOCAL);
            }
        }
        for location in &writes {
            for reader in std::mem::take(&mut readers[*location]) {
                add(own, reader, false);
            }
            if let Some(writer) = last[*location].filter(|writer| *writer != at) {
                add(own, writer, false);
            }
            last[*location] = Some(at);
        }
        for location in reads {
            // What an instruction reads and writes is ordered by its write.
            if last[location] != Some(at) {
                readers[location].push(at);
            }
        }
    }
    without_starts(insts, before)
}

fn without_starts(insts: &[Inst], mut before: Vec<Vec<Before>>) -> Graph {
    let is_start = |at: usize| insts[at].kind == Kind::Start;
    let mut after = vec![Vec::new(); insts.len()];
    let mut starts = vec![Vec::new(); insts.len()];
    for at in 0..insts.len() {
        let own = std::mem::take(&mut before[at]);
        let (begun, mut rest): (Vec<Before>, Vec<Before>) = own.into_iter().partition(|b| is_start(b.inst));
        for start in begun {
            starts[at].push(start.inst);
            // Those that come before a start have no starts among them any more: they were looked at before.
            for more in before[start.inst].clone() {
                if !rest.iter().any(|b| b.inst == more.inst) {
                    rest.push(Before { flows: false, ..more });
                }
            }
            let earlier = starts[start.inst].clone();
            starts[at].extend(earlier);
        }
        starts[at].sort_unstable();
        starts[at].dedup();
        rest.sort_unstable_by_key(|b| b.inst);
        if !is_start(at) {
            rest.iter().for_each(|b| after[b.inst].push(at));
        }
        before[at] = rest;
    }
    Graph { before, after, starts }
}
