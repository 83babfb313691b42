//! Spills: a register that has no place is kept elsewhere, and copied to a register for every instruction that uses it; a constant is computed
//! again instead.
//!
//! | file | is kept in | copies |
//! |---|---|---|
//! | vector | an accumulation register | `v_accvgpr_read_b32`, `v_accvgpr_write_b32`; matrix instructions use it where it is |
//! | scalar | a lane of a vector register, which is kept for nothing else | `v_readlane_b32`, `v_writelane_b32` |
//! | either, of one word, with a constant as its only definition | nowhere | `s_mov_b32`, `v_mov_b32` |
//!
//! Every instruction that reads a spilled register reads a copy that is made before, and every one that writes it writes a register from which
//! the words are copied after. Copies of vector registers are vector instructions, executed by the same lanes as the instruction itself: so the
//! other lanes of a spilled register keep their contents, as they would in a vector register. Copies of scalar registers do not depend on
//! which lanes are active (ISA §12.11, `V_READLANE_B32`: `exec` is ignored).
//!
//! A matrix instruction has a bit for each of its factors, and one for its accumulator, that tells vector from accumulation registers (ISA
//! §7.1.1). So accumulators, whose loops do nothing else with them, are kept in accumulation registers without copies.
//!
//! The registers that are spilled are those that free the most room for the fewest copies: of the registers that live where no place was
//! free, those with the longest lifetime for each read and write that needs a copy. Constants come first, since they need no copy where they
//! are defined.
//!
//! # Rematerialized constants
//!
//! The definition of a constant becomes [`Kind::Rematerialized`], and it is computed again before the first read in each block, for all
//! reads in the block until the active lanes change: a move to a vector register sets the active lanes only. If such a register of a block has no
//! place, the constant is computed again before each read. A register that lives for one instruction is not spilled again, so that
//! this ends.
//!
//! ```text
//!                       if %1 has no place:          and if %5 has none:
//! %1 = v_mov 7          (rematerialized)
//! b2: …                 b2: …
//!                           %5 = v_mov 7                 %6 = v_mov 7
//!     v_add %2, %1, %3      v_add %2, %5, %3             v_add %2, %6, %3
//!     …                     …                            …
//!                                                        %7 = v_mov 7
//!     v_sub %4, %1, %2      v_sub %4, %5, %2             v_sub %4, %7, %2
//! ```

use super::live::Lives;
use crate::codegen::constants::{changes_lanes, definition, held, moved};
use crate::codegen::machine_ir::{Code, File, Inst, Kind, Operand, Part, Reg, Register};
use crate::isa::{Access, Class, Form, Operand as Isa};

/// What is spilled so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spills {
    /// The registers that may not be spilled: they only hold copies, or scalar registers in their lanes.
    kept: Vec<bool>,
    /// The vector registers that hold scalar ones, and the number of lanes that are used.
    banks: Vec<Reg>,
    lanes: usize,
    /// The registers that hold a constant for the reads of a block.
    local: Vec<bool>,
}

/// The number of lanes of a vector register.
const LANES: usize = 64;

/// The most words of constants that are spilled at once.
const CONSTANTS: u32 = 8;

/// Where a spilled register is: an accumulation register of the same number, the lanes of vector registers, or nowhere, since it is a constant.
#[derive(Clone, Debug)]
enum Home {
    Same,
    Lanes(Vec<(Reg, u8)>),
    Constant(Isa),
}

/// Registers to spill at a point that is full: as many words as are asked for, if there are so many; constants, as long as there are any.
pub(crate) fn choose(code: &Code, lives: &Lives, full: Reg, spills: &Spills, words: u32) -> Vec<Reg> {
    let held = held(code);
    let constants = longest(code, lives, full, spills, CONSTANTS, |r| held[r].is_some());
    if constants.is_empty() { longest(code, lives, full, spills, words, |_| true) } else { constants }
}

/// Those of the registers for which `may` holds that live the longest for each read and write.
fn longest(
    code: &Code,
    lives: &Lives,
    full: Reg,
    spills: &Spills,
    words: u32,
    may: impl Fn(usize) -> bool,
) -> Vec<Reg> {
    let (ranges, file) = (&lives.ranges[full.index()], code.register(full).file);
    let overlaps = |r: usize| lives.ranges[r].iter().any(|a| ranges.iter().any(|b| a.from <= b.to && b.from <= a.to));
    let length = |r: usize| lives.ranges[r].iter().map(|range| u64::from(range.to - range.from) + 1).sum::<u64>();
    let mut all: Vec<(u64, usize)> = (0..code.registers.len())
        .filter(|r| code.registers[*r].file == file && !spills.kept.get(*r).copied().unwrap_or(false))
        .filter(|r| may(*r) && overlaps(*r) && length(*r) > 6)
        .map(|r| (length(r) * 1000 / lives.uses[r].max(1), r))
        .collect();
    all.sort_by_key(|(worth, r)| (std::cmp::Reverse(*worth), *r));
    let mut chosen = Vec::new();
    let mut freed = 0;
    for (_, r) in all {
        if freed >= words {
            break;
        }
        freed += u32::from(code.registers[r].words);
        chosen.push(Reg::new(r));
    }
    chosen
}

/// Spills registers.
pub(crate) fn spill(code: &mut Code, regs: &[Reg], spills: &mut Spills) {
    let held = held(code);
    let mut homes: Vec<Option<Home>> = vec![None; code.registers.len()];
    for reg in regs {
        let register = code.register(*reg);
        homes[reg.index()] = Some(match (held[reg.index()], register.file) {
            (Some(value), _) => Home::Constant(value),
            (None, File::S) => Home::Lanes((0..register.words).map(|_| spills.lane(code)).collect()),
            (None, File::V | File::A) => {
                code.registers[reg.index()] = Register { file: File::A, ..register };
                Home::Same
            }
        });
    }
    spills.kept.resize(code.registers.len(), false);
    for block in code.order.clone() {
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut out = Vec::with_capacity(insts.len());
        let mut made = Vec::new();
        for inst in insts {
            if let Some(inst) = again(code, inst, &homes, spills, &mut made, &mut out) {
                around(code, inst, &homes, spills, &mut out);
            }
        }
        code.blocks[block.index()].insts = out;
    }
    // What is written by several copies is a register of pieces, whose lifetime starts before the first of them.
    for reg in regs.iter().filter(|reg| held[reg.index()].is_none()) {
        code.registers[reg.index()].pieces = true;
    }
}

impl Spills {
    /// A lane that nothing else is kept in.
    fn lane(&mut self, code: &mut Code) -> (Reg, u8) {
        let (bank, lane) = (self.lanes / LANES, self.lanes % LANES);
        self.lanes += 1;
        if self.banks.len() <= bank {
            let reg = self.fresh(code, Register { file: File::V, words: 1, align: 1, pieces: true });
            self.banks.push(reg);
            let start = Inst {
                kind: Kind::Start,
                operands: vec![Part { reg, first: 0, words: 1 }.into()],
                loc: titan_core::ir::Loc::default(),
                added: true,
            };
            if let Some(entry) = code.order.first() {
                code.blocks[entry.index()].insts.insert(0, start);
            }
        }
        let last = self.banks.last().copied().unwrap_or(Reg::new(0));
        (last, u8::try_from(lane).unwrap_or(0))
    }

    /// A new register for a constant, in place of another one: if that was for the reads of a block, for one read, and not spilled.
    fn constant(&mut self, code: &mut Code, from: Reg) -> Reg {
        let register = code.register(from);
        if self.is_local(from) {
            return self.fresh(code, register);
        }
        let reg = Reg::new(code.registers.len());
        code.registers.push(register);
        self.local.resize(code.registers.len(), false);
        self.local[reg.index()] = true;
        reg
    }

    fn is_local(&self, reg: Reg) -> bool {
        self.local.get(reg.index()).copied().unwrap_or(false)
    }

    /// A new register that is not spilled.
    fn fresh(&mut self, code: &mut Code, register: Register) -> Reg {
        let reg = Reg::new(code.registers.len());
        code.registers.push(register);
        self.kept.resize(code.registers.len(), false);
        self.kept[reg.index()] = true;
        reg
    }
}

fn added(name: &'static str, operands: Vec<Operand>, like: &Inst) -> Option<Inst> {
    let row = crate::isa::by_name(name).first()?;
    let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
    Some(Inst { kind, operands, loc: like.loc, added: true })
}

/// The copy of a word from where it is kept (`read`), or to there.
fn copy(home: &Home, kept: Part, own: Part, read: bool, like: &Inst) -> Option<Inst> {
    let lanes = match home {
        Home::Lanes(lanes) => lanes,
        Home::Same if read => return added("v_accvgpr_read_b32", vec![own.into(), kept.into()], like),
        Home::Same => return added("v_accvgpr_write_b32", vec![kept.into(), own.into()], like),
        Home::Constant(_) => return None,
    };
    let (bank, lane) = *lanes.get(usize::from(kept.first))?;
    let bank = Part { reg: bank, first: 0, words: 1 };
    let lane = Operand::Isa(Isa::int(lane.into())?);
    match read {
        true => added("v_readlane_b32", vec![own.into(), bank.into(), lane], like),
        false => added("v_writelane_b32", vec![bank.into(), own.into(), lane], like),
    }
}

/// Computes the spilled constants that an instruction reads, and returns it with the registers in which they are. `made` has those that were
/// computed before in the block. The definition of a spilled constant defines nothing any more, and one that was added disappears.
fn again(
    code: &mut Code,
    mut inst: Inst,
    homes: &[Option<Home>],
    spills: &mut Spills,
    made: &mut Vec<(Reg, Reg)>,
    out: &mut Vec<Inst>,
) -> Option<Inst> {
    let home = |reg: Reg| match homes.get(reg.index()) {
        Some(Some(Home::Constant(value))) => Some(*value),
        Some(Some(Home::Same | Home::Lanes(_)) | None) | None => None,
    };
    if moved(&inst).is_some_and(|(to, _)| home(to.reg).is_some()) {
        return (!inst.added).then(|| Inst { kind: Kind::Rematerialized, operands: Vec::new(), ..inst });
    }
    for i in 0..inst.operands.len() {
        let Operand::Part(part) = inst.operands[i] else { continue };
        let Some(value) = home(part.reg) else { continue };
        let known = made.iter().find(|(from, _)| *from == part.reg).map(|(_, reg)| *reg);
        let reg = known.unwrap_or_else(|| {
            let reg = spills.constant(code, part.reg);
            out.extend(definition(Part { reg, ..part }, code.register(reg).file, value, inst.loc, true));
            made.push((part.reg, reg));
            reg
        });
        inst.operands[i] = Part { reg, ..part }.into();
    }
    let lanes = changes_lanes(&inst);
    made.retain(|(from, _)| !(spills.is_local(*from) || lanes && code.register(*from).file != File::S));
    Some(inst)
}

fn start(part: Part, like: &Inst) -> Inst {
    Inst { kind: Kind::Start, operands: vec![part.into()], loc: like.loc, added: true }
}

/// Whether an operand may be vector or accumulation registers: a factor of a matrix instruction, or its accumulator if what is read of it is
/// what is written, or a constant.
pub(crate) fn takes_either(inst: &Inst, operand: usize) -> bool {
    let Kind::Row { row, form, .. } = &inst.kind else { return false };
    let class = |i: usize| row.args_in(*form).as_slice().get(i).map(|arg| arg.class);
    let of = |class: Class| {
        let args = row.args_in(*form);
        let at = args.as_slice().iter().position(|arg| arg.class == class);
        at.and_then(|at| inst.operands.get(at)).copied()
    };
    match class(operand) {
        Some(Class::MatrixAb) => true,
        Some(Class::MatrixC | Class::MatrixD) => match (of(Class::MatrixD), of(Class::MatrixC)) {
            (Some(_), Some(Operand::Isa(Isa::Inline(_)))) => true,
            (d, c) => d == c,
        },
        Some(_) | None => false,
    }
}

/// Adds an instruction and the copies around it.
fn around(code: &mut Code, mut inst: Inst, homes: &[Option<Home>], spills: &mut Spills, out: &mut Vec<Inst>) {
    let begins = inst.kind == Kind::Start;
    let accesses: Vec<Access> = inst.accesses().map(|(access, _)| access).collect();
    let mut after = Vec::new();
    let mut made: Vec<(Part, Part)> = Vec::new();
    for i in 0..inst.operands.len() {
        let Operand::Part(part) = inst.operands[i] else { continue };
        let Some(home) = homes.get(part.reg.index()).and_then(Option::as_ref) else { continue };
        let in_lanes = matches!(home, Home::Lanes(_));
        // The lifetime of an accumulation register starts as that of the vector register did; lanes are kept all the time.
        if begins && !in_lanes {
            continue;
        }
        let access = accesses.get(i).copied().unwrap_or(Access::Read);
        if takes_either(&inst, i) {
            if access == Access::Write && !code.registers[part.reg.index()].pieces {
                let words = code.registers[part.reg.index()].words;
                out.push(start(Part { reg: part.reg, first: 0, words }, &inst));
            }
            continue;
        }
        let known = made.iter().find(|(from, _)| *from == part && access == Access::Read).map(|(_, copy)| *copy);
        let own = known.unwrap_or_else(|| {
            let (file, align) =
                if in_lanes { (File::S, part.words.next_power_of_two().min(4)) } else { (File::V, part.words.min(2)) };
            let pieces = begins || (access == Access::Read && part.words > 1);
            let reg = spills.fresh(code, Register { file, words: part.words, align, pieces });
            Part { reg, first: 0, words: part.words }
        });
        let words = |read: bool| {
            (0..part.words).filter_map(|n| copy(home, part.word(n), own.word(n), read, &inst)).collect::<Vec<_>>()
        };
        if access != Access::Write && known.is_none() {
            if part.words > 1 {
                out.push(start(own, &inst));
            }
            out.extend(words(true));
            made.push((part, own));
        }
        if access != Access::Read && !begins {
            if !code.registers[part.reg.index()].pieces && !in_lanes {
                let words = code.registers[part.reg.index()].words;
                after.push(start(Part { reg: part.reg, first: 0, words }, &inst));
            }
            after.extend(words(false));
        }
        inst.operands[i] = own.into();
    }
    out.push(inst);
    out.extend(after);
}
