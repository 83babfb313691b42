//! Constants in registers, computed once: outside of the loops that read them, and once in a block outside of loops.
//!
//! ```text
//!                                         s_mov_b32 %9, 0x5040100
//! head: …                                 head: …
//!       s_mov_b32 %1, 0x5040100      ─▶         v_perm_b32 %2, %3, %4, %9
//!       v_perm_b32 %2, %3, %4, %1
//!       s_cbranch_scc1 head                     s_cbranch_scc1 head
//! ```
//!
//! Where registers are scarce, the allocation computes such a constant again where it is read (`allocate::spill`), so that a constant outside of
//! a loop never makes another value leave its register.
//!
//! **Why it is right.** The register has no other definition, and it is the same constant wherever it is defined. What is left to show is that it is
//! defined on every way to a read, in every lane that reads it. A loop is the blocks from a head to the last branch back to it, if the head
//! dominates them and is entered only by falling through from the block before. So a definition at the end of that block is on every way to
//! the blocks of the loop, and to whatever the definition in the loop was on every way to. The lanes that are active in a loop are among those that
//! enter it, since only the end of a loop or of a branch activates lanes, and those are lanes that were active at its start.
//! In a block, two definitions are one if the mask of active lanes does not change in between.
//!
//! Words of a tuple of scalar registers that is made anew in every iteration are moved likewise, together with the start of its lifetime: no word
//! of it is read before it is written. Such a tuple keeps its registers in the whole loop, and is not computed again where registers are scarce.
//!
//! Deliberately absent: constants of two words, and tuples of vector registers.

use super::machine_ir::{Block, Code, File, Inst, Kind, Operand, Part, Reg, Register};
use crate::isa::{Access, Form, Implicit, Operand as Isa};
use std::collections::BTreeMap;
use titan_core::ir::Loc;

/// The word that an instruction sets to a constant, if it does nothing else.
pub(crate) fn moved(inst: &Inst) -> Option<(Part, Isa)> {
    let Kind::Row { form: Form::Base, mods, .. } = &inst.kind else { return None };
    let moves = matches!(inst.name(), "s_mov_b32" | "v_mov_b32") && mods.is_empty();
    match inst.operands.as_slice() {
        [Operand::Part(part), Operand::Isa(value @ (Isa::Inline(_) | Isa::Literal(_)))] if moves => {
            Some((*part, *value))
        }
        _ => None,
    }
}

/// The constants that registers of one word hold from their only definition on, by the number of the register.
pub(crate) fn held(code: &Code) -> Vec<Option<Isa>> {
    let mut written = vec![0u32; code.registers.len()];
    let mut held = vec![None; code.registers.len()];
    for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
        for (access, operand) in inst.accesses() {
            if let (Operand::Part(part), true) = (operand, access != Access::Read) {
                written[part.reg.index()] += 1;
            }
        }
        if let Some((part, value)) = moved(inst) {
            held[part.reg.index()] = Some(value);
        }
    }
    for (r, register) in code.registers.iter().enumerate() {
        if register.pieces || register.words != 1 || written[r] != 1 {
            held[r] = None;
        }
    }
    held
}

/// Whether an instruction changes which lanes are active.
pub(crate) fn changes_lanes(inst: &Inst) -> bool {
    let Kind::Row { row, .. } = &inst.kind else { return false };
    let exec = |operand: &Operand| matches!(operand, Operand::Isa(Isa::S(crate::isa::operand::EXEC, _)));
    row.writes.has(Implicit::EXEC) || inst.accesses().any(|(access, operand)| access != Access::Read && exec(operand))
}

/// The instruction that sets a register to a constant.
pub(crate) fn definition(to: Part, file: File, value: Isa, loc: Loc, added: bool) -> Option<Inst> {
    let row = crate::isa::by_name(if file == File::S { "s_mov_b32" } else { "v_mov_b32" }).first()?;
    let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
    Some(Inst { kind, operands: vec![to.into(), value.into()], loc, added })
}

/// A loop, by positions in the order of blocks.
#[derive(Clone, Copy, Debug)]
struct Loop {
    head: usize,
    end: usize,
}

/// Moves constants out of loops, also words of tuples if that is asked for, and shares those of blocks outside of loops.
pub(crate) fn hoist(code: &Code, with_tuples: bool) -> Code {
    let mut out = code.clone();
    let (loops, held) = (outermost(code), held(code));
    let mut same: Vec<Option<Reg>> = vec![None; code.registers.len()];
    for (position, block) in code.order.iter().enumerate() {
        match loops.iter().find(|l| (l.head..=l.end).contains(&position)) {
            Some(l) if position == l.head => {
                out_of_loop(code, &mut out, *l, &held, &mut same);
                if with_tuples {
                    tuples(code, &mut out, *l);
                }
            }
            Some(_) => {}
            None => in_block(&mut out, *block, &held, &mut same),
        }
    }
    // The new registers have numbers behind those of all others.
    for block in &code.order {
        for inst in &mut out.blocks[block.index()].insts {
            for operand in &mut inst.operands {
                if let Operand::Part(part) = operand
                    && let Some(reg) = same.get(part.reg.index()).copied().flatten()
                {
                    part.reg = reg;
                }
            }
        }
    }
    out
}

/// The loops that are in no other one.
fn outermost(code: &Code) -> Vec<Loop> {
    let mut positions = vec![None; code.blocks.len()];
    for (position, block) in code.order.iter().enumerate() {
        positions[block.index()] = Some(position);
    }
    let mut loops: Vec<Loop> = Vec::new();
    for (end, block) in code.order.iter().enumerate() {
        let target = code.insts(*block).last().and_then(Inst::target);
        let Some(head) = target.and_then(|b| positions[b.index()]).filter(|head| *head <= end) else { continue };
        match loops.iter_mut().find(|l| l.head == head) {
            Some(l) => l.end = end,
            None => loops.push(Loop { head, end }),
        }
    }
    loops.retain(|l| is_loop(code, *l, &positions));
    let within = |a: &Loop, b: &Loop| b.head <= a.head && a.end <= b.end && (a.head, a.end) != (b.head, b.end);
    let all = loops.clone();
    loops.retain(|l| !all.iter().any(|other| within(l, other)));
    loops
}

/// Whether blocks are a loop into which control falls at its head, and nowhere else.
fn is_loop(code: &Code, l: Loop, positions: &[Option<usize>]) -> bool {
    let depth = |position: usize| code.order.get(position).map(|block| code.blocks[block.index()].depth);
    let (Some(before), Some(own)) = (l.head.checked_sub(1), depth(l.head)) else { return false };
    let nested = depth(before).is_some_and(|outside| outside + 1 == own);
    let inside = (l.head..=l.end).all(|position| depth(position) >= Some(own));
    if !nested || !inside {
        return false;
    }
    // The ways that do not pass the head reach no block of the loop, and the head only from the block before.
    let (mut open, mut reached) = (vec![0], vec![false; code.order.len()]);
    while let Some(position) = open.pop() {
        if position == l.head || std::mem::replace(&mut reached[position], true) {
            continue;
        }
        let next: Vec<usize> = code.successors(position).into_iter().filter_map(|b| positions[b.index()]).collect();
        if next.contains(&l.head) && position != before {
            return false;
        }
        open.extend(next);
    }
    let last = code.order.get(before).and_then(|block| code.insts(*block).last());
    let falls = !last.is_some_and(Inst::ends) && last.and_then(Inst::target) != code.order.get(l.head).copied();
    falls && reached[before] && !reached[l.head..=l.end].contains(&true)
}

/// Adds instructions behind all others of the block before a loop.
fn before(code: &Code, out: &mut Code, l: Loop, insts: Vec<Inst>) {
    let Some(block) = l.head.checked_sub(1).and_then(|position| code.order.get(position)) else { return };
    let own = &mut out.blocks[block.index()].insts;
    let at = own.len() - usize::from(own.last().is_some_and(|inst| inst.target().is_some()));
    own.splice(at..at, insts);
}

/// Replaces the definitions of constants in a loop by one before the loop for each constant.
fn out_of_loop(code: &Code, out: &mut Code, l: Loop, held: &[Option<Isa>], same: &mut [Option<Reg>]) {
    let mut known: Vec<(File, Isa, Reg)> = Vec::new();
    let mut definitions = Vec::new();
    for block in &code.order[l.head..=l.end] {
        let insts = std::mem::take(&mut out.blocks[block.index()].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let constant = moved(&inst).filter(|(part, _)| held[part.reg.index()].is_some());
            let Some((part, value)) = constant else {
                kept.push(inst);
                continue;
            };
            let file = code.register(part.reg).file;
            let one = known.iter().find(|(f, v, _)| (*f, *v) == (file, value)).map(|(_, _, reg)| *reg);
            let reg = one.unwrap_or_else(|| {
                let reg = Reg::new(out.registers.len());
                out.registers.push(Register { file, words: 1, align: 1, pieces: false });
                known.push((file, value, reg));
                definitions.extend(definition(Part { reg, ..part }, file, value, inst.loc, false));
                reg
            });
            same[part.reg.index()] = Some(reg);
        }
        out.blocks[block.index()].insts = kept;
    }
    before(code, out, l, definitions);
}

/// What is known of a tuple of scalar registers.
#[derive(Clone, Debug, Default)]
struct Tuple {
    /// The starts of its lifetime, all and those in the loop.
    starts: [u32; 2],
    /// The number of writes of each word.
    writes: BTreeMap<u8, u32>,
    /// The words that are set to a constant in the loop.
    constant: Vec<u8>,
}

/// Moves words of tuples that are constants out of a loop.
fn tuples(code: &Code, out: &mut Code, l: Loop) {
    let mut all: BTreeMap<Reg, Tuple> = BTreeMap::new();
    for (position, block) in code.order.iter().enumerate() {
        let inside = (l.head..=l.end).contains(&position);
        for inst in code.insts(*block) {
            for (access, operand) in inst.accesses() {
                let Operand::Part(part) = operand else { continue };
                let register = code.register(part.reg);
                if register.file != File::S || !register.pieces || access == Access::Read {
                    continue;
                }
                let tuple = all.entry(part.reg).or_default();
                if inst.kind == Kind::Start {
                    tuple.starts[0] += 1;
                    tuple.starts[1] += u32::from(inside);
                    continue;
                }
                (part.first..part.first + part.words).for_each(|word| *tuple.writes.entry(word).or_default() += 1);
                if inside && moved(inst).is_some() {
                    tuple.constant.push(part.first);
                }
            }
        }
    }
    all.retain(|_, tuple| {
        tuple.constant.retain(|word| tuple.writes.get(word) == Some(&1));
        tuple.starts == [1, 1] && !tuple.constant.is_empty()
    });
    let mut insts = Vec::new();
    for block in &code.order[l.head..=l.end] {
        out.blocks[block.index()].insts.retain(|inst| {
            let Some(Operand::Part(part)) = inst.operands.first() else { return true };
            let Some(tuple) = all.get(&part.reg) else { return true };
            let moves = inst.kind == Kind::Start || moved(inst).is_some() && tuple.constant.contains(&part.first);
            if moves {
                insts.push(inst.clone());
            }
            !moves
        });
    }
    before(code, out, l, insts);
}

/// Shares the constants of a block outside of loops.
fn in_block(out: &mut Code, block: Block, held: &[Option<Isa>], same: &mut [Option<Reg>]) {
    let registers = &out.registers;
    let mut known: Vec<(File, Isa, Reg)> = Vec::new();
    out.blocks[block.index()].insts.retain(|inst| {
        if changes_lanes(inst) {
            known.retain(|(file, _, _)| *file == File::S);
        }
        let constant = moved(inst).filter(|(part, _)| held[part.reg.index()].is_some());
        let Some((part, value)) = constant else { return true };
        let file = registers[part.reg.index()].file;
        match known.iter().find(|(f, v, _)| (*f, *v) == (file, value)) {
            Some((_, _, reg)) => same[part.reg.index()] = Some(*reg),
            None => known.push((file, value, part.reg)),
        }
        same[part.reg.index()].is_none()
    });
}
