//! Spills: a vector register that has no place is kept in an accumulation register, which no instruction of this code generator uses
//! otherwise.
//!
//! Every instruction that reads it reads a copy that is made before, and every one that writes it writes a register from which the words
//! are copied after. The copies are vector instructions, executed by the same lanes as the instruction itself: so the other lanes of a
//! spilled register keep their contents, as they would in a vector register.
//!
//! The registers that are spilled are those that free the most room for the fewest copies: of the registers that live where no place was
//! free, those with the longest lifetime for each read and write.

use super::live::Lives;
use crate::codegen::machine_ir::{Code, File, Inst, Kind, Operand, Part, Reg, Register};
use crate::isa::{Access, Form};

/// Registers to spill at a point that is full: as many words as are asked for, if there are so many.
pub(crate) fn choose(code: &Code, lives: &Lives, full: Reg, temporary: &[bool], words: u32) -> Vec<Reg> {
    let ranges = &lives.ranges[full.index()];
    let overlaps = |r: usize| lives.ranges[r].iter().any(|a| ranges.iter().any(|b| a.from <= b.to && b.from <= a.to));
    let length = |r: usize| lives.ranges[r].iter().map(|range| u64::from(range.to - range.from) + 1).sum::<u64>();
    let mut all: Vec<(u64, usize)> = (0..code.registers.len())
        .filter(|r| code.registers[*r].file == File::V && !temporary.get(*r).copied().unwrap_or(false))
        .filter(|r| overlaps(*r) && length(*r) > 6)
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

/// Moves registers to the file of accumulation registers. `temporary` has the registers that only hold copies.
pub(crate) fn spill(code: &mut Code, regs: &[Reg], temporary: &mut Vec<bool>) {
    let mut spilled = vec![false; code.registers.len()];
    for reg in regs {
        spilled[reg.index()] = true;
        code.registers[reg.index()].file = File::A;
        // It is written word by word from now on.
        code.registers[reg.index()].align = 1;
    }
    temporary.resize(code.registers.len(), false);
    let order = code.order.clone();
    for block in order {
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            around(code, inst, &spilled, temporary, &mut out);
        }
        code.blocks[block.index()].insts = out;
    }
    // What is written by several copies is a register of pieces, whose lifetime starts before the first of them.
    for reg in regs {
        code.registers[reg.index()].pieces = true;
    }
}

fn copy(name: &'static str, to: Part, from: Part, like: &Inst) -> Option<Inst> {
    let row = crate::isa::by_name(name).first()?;
    let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
    Some(Inst { kind, operands: vec![to.into(), from.into()], loc: like.loc, added: true })
}

/// Adds an instruction and the copies around it.
fn around(code: &mut Code, mut inst: Inst, spilled: &[bool], temporary: &mut Vec<bool>, out: &mut Vec<Inst>) {
    if inst.kind == Kind::Start {
        out.push(inst);
        return;
    }
    let accesses: Vec<Access> = inst.accesses().map(|(access, _)| access).collect();
    let mut after = Vec::new();
    let mut made: Vec<(Part, Part)> = Vec::new();
    for i in 0..inst.operands.len() {
        let Operand::Part(part) = inst.operands[i] else { continue };
        if !spilled.get(part.reg.index()).copied().unwrap_or(false) {
            continue;
        }
        let access = accesses.get(i).copied().unwrap_or(Access::Read);
        let known = made.iter().find(|(from, _)| *from == part && access == Access::Read).map(|(_, copy)| *copy);
        let own = known.unwrap_or_else(|| {
            let reg = Reg::new(code.registers.len());
            let (words, align) = (part.words, part.words.min(2));
            let pieces = access == Access::Read && words > 1;
            code.registers.push(Register { file: File::V, words, align, pieces });
            temporary.resize(code.registers.len(), false);
            temporary[reg.index()] = true;
            Part { reg, first: 0, words }
        });
        if access != Access::Write && known.is_none() {
            if part.words > 1 {
                let start = Inst { kind: Kind::Start, operands: vec![own.into()], loc: inst.loc, added: true };
                out.push(start);
            }
            out.extend((0..part.words).filter_map(|n| copy("v_accvgpr_read_b32", own.word(n), part.word(n), &inst)));
            made.push((part, own));
        }
        if access != Access::Read {
            if !code.registers[part.reg.index()].pieces {
                let whole = Part { reg: part.reg, first: 0, words: code.registers[part.reg.index()].words };
                let start = Inst { kind: Kind::Start, operands: vec![whole.into()], loc: inst.loc, added: true };
                after.push(start);
            }
            after.extend((0..part.words).filter_map(|n| copy("v_accvgpr_write_b32", part.word(n), own.word(n), &inst)));
        }
        inst.operands[i] = own.into();
    }
    out.push(inst);
    out.extend(after);
}
