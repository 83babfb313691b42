//! The checker of passes that move instructions within their blocks: every instruction reads what it read before.
//!
//! Both orders of a block are run beside each other on *writers*: for each word of a register, each part of the implicit state and each class of
//! accesses to memory, the instruction that wrote it last, or the start of the block.
//!
//! ```text
//! before                       reads                    after                        reads
//! 0 v_cmp_lt %1, %2, %3        %2, %3: start            2 s_add %6, …
//! 1 s_and %4, %1, %5           %1: 0; writes SCC        0 v_cmp_lt %1, %2, %3        %2, %3: start
//! 2 s_add %6, …                writes SCC               1 s_and %4, %1, %5           %1: 0; writes SCC
//! 3 s_cbranch_scc1             SCC: 2                   3 s_cbranch_scc1             SCC: 1, refused
//! ```
//!
//! An instruction that reads the same writers in both orders computes the same, by induction over the instructions. At the end of a block, each
//! location has the same writer, or nobody reads it before it is written again. A write of some lanes, of a part of a register of pieces, reads what it keeps.
//!
//! **Memory.** The contents of global memory, and those of the local data share, are a location each. A load reads its memory; so loads of one memory may
//! change places, and accesses of different memories, but no access and a store to the same memory, whatever their addresses. So each access of the
//! wave is issued after the same stores to its memory as before, and before the same ones. What other waves see of several accesses depends on their order
//! only where these waves and this one synchronize: by barriers, waits, atomic operations, accesses with a scope, and control of caches. Each of these, and every
//! instruction that is not known to be one of those above, reads and writes all memories, so that no access passes it. The lane IR orders
//! accesses of different waves by nothing else on this machine (its releases and acquires are not selected), and accesses to one place that nothing orders are
//! races, whose results it leaves open.
//!
//! **Lanes and state.** Vector instructions read the mask of active lanes; so each is executed by the same lanes. What writes the mode or other hidden state reads and
//! writes a location that all instructions read. Branches end their blocks.
//!
//! It shares no code with the passes: what an instruction reads and writes is taken from the tables of the instruction set.

use crate::codegen::machine_ir::{Block, Code, Inst, Kind, Operand, Reg};
use crate::isa::{Access, Field, Form, Format, Implicit, Operand as Isa, Row, Special, Unit};
use std::collections::BTreeMap;

/// What instructions read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Location {
    /// A word of a virtual register.
    Word(Reg, u8),
    /// A scalar, a vector or an accumulation register of the machine.
    Scalar(u8),
    Vector(u8),
    Accumulation(u8),
    /// The scalar condition code.
    Scc,
    /// The contents of global memory.
    Global,
    /// The contents of the local data share.
    Local,
    /// The mode, the program counter and other hidden state.
    Hidden,
}

/// The parts of the implicit state that are scalar registers, with the first of these and their number.
const REGISTERS: [(Implicit, Isa); 3] =
    [(Implicit::VCC, Isa::VCC), (Implicit::EXEC, Isa::EXEC), (Implicit::M0, Isa::M0)];

/// What an instruction reads, and what it writes.
#[derive(Clone, Debug, Default)]
struct Accessed {
    reads: Vec<Location>,
    writes: Vec<Location>,
}

fn of_isa(operand: Isa) -> Vec<Location> {
    let all = |first: u8, n: u8, of: fn(u8) -> Location| (0..n).map(|i| of(first.saturating_add(i))).collect();
    match operand {
        Isa::S(first, n) => all(first, n, Location::Scalar),
        Isa::V(first, n) => all(first, n, Location::Vector),
        Isa::A(first, n) => all(first, n, Location::Accumulation),
        Isa::Special(Special::Scc) => vec![Location::Scc],
        Isa::Special(Special::Vccz) => of_isa(Isa::VCC),
        Isa::Special(Special::Execz) => of_isa(Isa::EXEC),
        // The apertures of memories are constants.
        Isa::Special(Special::SharedBase | Special::SharedLimit | Special::PrivateBase | Special::PrivateLimit)
        | Isa::Inline(_)
        | Isa::Literal(_)
        | Isa::Imm(_)
        | Isa::Off => Vec::new(),
    }
}

fn accessed(code: &Code, inst: &Inst) -> Accessed {
    let mut found = Accessed::default();
    for (access, operand) in inst.accesses() {
        let (locations, keeps) = match operand {
            Operand::Part(part) => {
                let words = (part.first..part.first + part.words).map(|word| Location::Word(part.reg, word));
                (words.collect(), code.register(part.reg).pieces || writes_some(inst))
            }
            // Which of the lanes of a register of the machine are written depends on the active ones.
            Operand::Isa(operand) => (of_isa(*operand), true),
            Operand::To(_) => (Vec::new(), false),
        };
        let begins = inst.kind == Kind::Start;
        if access != Access::Write || keeps && !begins {
            found.reads.extend(&locations);
        }
        if access != Access::Read {
            found.writes.extend(locations);
        }
    }
    let Kind::Row { row, mods, .. } = &inst.kind else { return found };
    for (implicit, registers) in REGISTERS {
        found.reads.extend(of_isa(registers).into_iter().filter(|_| row.reads.has(implicit)));
        found.writes.extend(of_isa(registers).into_iter().filter(|_| row.writes.has(implicit)));
    }
    found.reads.extend(row.reads.has(Implicit::SCC).then_some(Location::Scc));
    found.writes.extend(row.writes.has(Implicit::SCC).then_some(Location::Scc));
    let is_scalar = matches!(row.unit, Unit::Salu | Unit::Smem | Unit::Branch | Unit::Control);
    // Vector instructions compute in the active lanes only.
    found.reads.extend(of_isa(Isa::EXEC).into_iter().filter(|_| !is_scalar));
    let (reads, writes) = memories(row, mods);
    found.reads.extend(reads);
    found.writes.extend(writes);
    found.reads.push(Location::Hidden);
    found.writes.extend(is_hidden(row, &found.writes).then_some(Location::Hidden));
    found
}

/// Whether an instruction may leave a part of the bits of a register that it writes, in some or in all lanes, as the encoding says.
fn writes_some(inst: &Inst) -> bool {
    let Kind::Row { form, mods, .. } = &inst.kind else { return false };
    match form {
        Form::Sdwa | Form::Dpp => true,
        // The last bit chooses a half of the result.
        Form::Base | Form::E64 => mods.iter().any(|(field, bits)| *field == Field::OpSel && bits & 8 != 0),
    }
}

/// Whether an instruction writes hidden state, or reads what depends on its place or on other instructions in ways that are not modelled: the program
/// counter, the registers of the hardware, the registers that `m0` names.
fn is_hidden(row: &Row, writes: &[Location]) -> bool {
    let rest = row.writes.without(Implicit::SCC.and(Implicit::VCC).and(Implicit::EXEC).and(Implicit::M0));
    let computes = matches!(row.unit, Unit::Salu | Unit::Valu | Unit::Trans);
    let names = writes.iter().any(|location| of_isa(Isa::M0).contains(location));
    let reads = row.reads.has(Implicit::PC) || row.name == "s_getreg_b32" || computes && row.reads.has(Implicit::M0);
    rest != Implicit::NONE || reads || names
}

/// The instructions of the local data share that access no memory, those that load from it, and those that store to it. All others order all accesses.
const EXCHANGES: [&str; 3] = ["ds_swizzle_b32", "ds_permute_b32", "ds_bpermute_b32"];
const LOCAL_LOADS: [&str; 7] =
    ["ds_read_u8", "ds_read_i8", "ds_read_u16", "ds_read_i16", "ds_read_b32", "ds_read_b64", "ds_read_b128"];
const LOCAL_STORES: [&str; 5] = ["ds_write_b8", "ds_write_b16", "ds_write_b32", "ds_write_b64", "ds_write_b128"];
/// The scalar loads, of global memory.
const SCALAR_LOADS: [&str; 5] =
    ["s_load_dword", "s_load_dwordx2", "s_load_dwordx4", "s_load_dwordx8", "s_load_dwordx16"];

/// The memories that an instruction reads and writes.
fn memories(row: &Row, mods: &[(Field, u32)]) -> (Vec<Location>, Vec<Location>) {
    let all = || (vec![Location::Global, Location::Local], vec![Location::Global, Location::Local]);
    let apart = || (Vec::new(), Vec::new());
    let loads = |memory: Location| (vec![memory], Vec::new());
    let stores = |memory: Location| (vec![memory], vec![memory]);
    // Scopes and hints: the accesses of some atomic operations have them.
    let plain = mods.iter().all(|(field, value)| {
        let scope = [Field::Sc0, Field::Sc1, Field::Nt, Field::Glc].contains(field);
        !scope || *value == 0
    });
    // Others reach the local data share or private memory as well, or whatever memory the address is in.
    let is_global = row.format == Format::Global || row.format == Format::Mubuf;
    match row.unit {
        Unit::Salu | Unit::Valu | Unit::Trans | Unit::Dot | Unit::Xdl | Unit::Sgemm | Unit::Dgemm => apart(),
        Unit::Load => {
            if plain && is_global {
                loads(Location::Global)
            } else {
                all()
            }
        }
        Unit::Store => {
            if plain && is_global {
                stores(Location::Global)
            } else {
                all()
            }
        }
        Unit::Smem => {
            if plain && SCALAR_LOADS.contains(&row.name) {
                loads(Location::Global)
            } else {
                all()
            }
        }
        Unit::Lds => {
            if EXCHANGES.contains(&row.name) {
                apart()
            } else if LOCAL_LOADS.contains(&row.name) {
                loads(Location::Local)
            } else if LOCAL_STORES.contains(&row.name) {
                stores(Location::Local)
            } else {
                all()
            }
        }
        Unit::Atomic | Unit::LoadLds | Unit::Cache | Unit::Branch | Unit::Control => all(),
    }
}

/// An instruction: the place of an equal one in the block before. Of equal instructions, the first is the first.
type Name = usize;

/// The names of the instructions of a block after a pass; `None` if it has others.
fn names(before: &[Inst], after: &[Inst]) -> Option<Vec<Name>> {
    let mut taken = vec![false; before.len()];
    let name = |inst: &Inst| {
        // Most have not moved far; all are found, since the lengths are equal and each is taken once.
        let at = (0..before.len()).find(|at| !taken[*at] && before[*at] == *inst)?;
        taken[at] = true;
        Some(at)
    };
    after.iter().map(name).collect::<Option<Vec<Name>>>().filter(|_| before.len() == after.len())
}

/// The writers of what each instruction reads, by its name, and the writers at the end.
type Run = (BTreeMap<Name, Vec<Option<Name>>>, BTreeMap<Location, Name>);

fn run(code: &Code, order: impl Iterator<Item = (Name, Inst)>) -> Run {
    let (mut read, mut last) = (BTreeMap::new(), BTreeMap::new());
    for (name, inst) in order {
        let Accessed { reads, writes } = accessed(code, &inst);
        read.insert(name, reads.iter().map(|location| last.get(location).copied()).collect());
        last.extend(writes.into_iter().map(|location| (location, name)));
    }
    (read, last)
}

/// Whether something reads a location behind the end of a block before it is written.
fn is_read_behind(code: &Code, block: Block, location: Location) -> bool {
    let at = |block: Block| code.order.iter().position(|other| *other == block);
    let mut open: Vec<Block> = at(block).map(|at| code.successors(at)).unwrap_or_default();
    let mut seen = vec![false; code.blocks.len()];
    // This ends: each block is looked at once.
    while let Some(next) = open.pop() {
        if std::mem::replace(&mut seen[next.index()], true) {
            continue;
        }
        let decides = |inst: &Inst| {
            let Accessed { reads, writes } = accessed(code, inst);
            if reads.contains(&location) { Some(true) } else { writes.contains(&location).then_some(false) }
        };
        match code.insts(next).iter().find_map(decides) {
            Some(true) => return true,
            Some(false) => {}
            None => open.extend(at(next).map(|at| code.successors(at)).unwrap_or_default()),
        }
    }
    false
}

/// Checks that code is another one whose instructions were moved within their blocks, and computes the same.
///
/// # Errors
/// A description of the first difference.
pub fn check(before: &Code, after: &Code) -> Result<(), String> {
    if before.order != after.order || before.registers != after.registers {
        return Err("the blocks or registers are others".to_owned());
    }
    for block in &before.order {
        let (old, new) = (before.insts(*block), after.insts(*block));
        let Some(names) = names(old, new) else { return Err(format!("{block} has other instructions")) };
        let (was, ends) = run(before, old.iter().cloned().enumerate());
        let (is, ended) = run(before, names.iter().copied().zip(new.iter().cloned()));
        if let Some(name) = names.iter().find(|name| was.get(name) != is.get(name)) {
            let what = old[*name].name();
            return Err(format!("instruction {name} of {block}, `{what}`, reads what another instruction writes"));
        }
        // A branch ends its block.
        let last = |insts: &[Inst]| insts.iter().position(|inst| inst.target().is_some() || inst.ends());
        if last(old).is_some_and(|at| at + 1 == old.len()) && last(new).is_none_or(|at| at + 1 != new.len()) {
            return Err(format!("{block} does not end in its branch"));
        }
        let differs = |location: &&Location| ends.get(location) != ended.get(location);
        if let Some(location) = ends.keys().filter(differs).find(|location| is_read_behind(before, *block, **location))
        {
            return Err(format!("{location:?} has another contents at the end of {block}"));
        }
    }
    Ok(())
}
