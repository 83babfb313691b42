//! Lifetimes of virtual registers: the instructions between which each is needed.
//!
//! Instructions are numbered in the order of emission. Instruction i reads its operands at point 2 i and writes its results at 2 i + 1. A
//! lifetime is a list of ranges of points, from a definition to the last use on every path: the usual backward analysis, on the graph of
//! blocks. Definitions of registers of pieces end no lifetime upward ([`crate::codegen::machine_ir`]); those of their first definition do,
//! which is [`Kind::Start`].
//!
//! A result that is never read lives at the point where it is written. Results live from 2 i + 1 and operands up to 2 i, so a result may
//! take the place of an operand of the same instruction, except where an instruction could write a part of its result before it has read
//! all operands ([`early`]).

use super::spill::takes_either;
use crate::codegen::machine_ir::{Block, Code, Inst, Kind, Operand, Reg};
use crate::isa::{Access, Unit};

/// A range of points, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// The lifetimes of all registers, by number; the ranges of each are in ascending order and disjoint.
#[derive(Clone, Debug)]
pub(crate) struct Lives {
    pub(crate) ranges: Vec<Vec<Range>>,
    /// The number of reads and writes of each register that need it in its file, where one in a loop counts ten times.
    pub(crate) uses: Vec<u64>,
}

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(n: usize) -> Set {
        Set(vec![0; n.div_ceil(64)])
    }

    fn insert(&mut self, i: usize) -> bool {
        let old = self.0[i / 64];
        self.0[i / 64] |= 1 << (i % 64);
        old != self.0[i / 64]
    }

    fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// Adds all elements; returns whether there were new ones.
    fn join(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= *b;
        }
        changed
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(word, bits)| (0..64).filter(move |i| bits >> i & 1 == 1).map(move |i| 64 * word + i))
    }
}

/// Whether an instruction may write a part of its result before it has read all of its operands. Vector instructions on tuples read and write
/// one word after the other, and memory operations return data while others are still sent.
pub(crate) fn early(inst: &Inst) -> bool {
    let Kind::Row { row, .. } = &inst.kind else { return false };
    match row.unit {
        Unit::Salu | Unit::Branch | Unit::Control => false,
        Unit::Valu | Unit::Trans | Unit::Dot => row.args().iter().any(|arg| arg.ty.dwords() > 1),
        Unit::Smem
        | Unit::Xdl
        | Unit::Sgemm
        | Unit::Dgemm
        | Unit::Load
        | Unit::Store
        | Unit::Atomic
        | Unit::LoadLds
        | Unit::Cache
        | Unit::Lds => true,
    }
}

/// Whether a definition by an instruction ends the lifetime upward.
fn ends(code: &Code, inst: &Inst, operand: &Operand) -> Option<usize> {
    let Operand::Part(part) = operand else { return None };
    let register = code.register(part.reg);
    (inst.kind == Kind::Start || !register.pieces).then_some(part.reg.index())
}

/// The registers that live at the end of each block, by the number of the block.
pub(crate) fn live_at_ends(code: &Code) -> Vec<Vec<Reg>> {
    ends_of_blocks(code).iter().map(|ends| ends.iter().map(Reg::new).collect()).collect()
}

/// The same, as sets.
fn ends_of_blocks(code: &Code) -> Vec<Set> {
    let n = code.registers.len();
    let mut outs = vec![Set::new(n); code.blocks.len()];
    let mut ins = outs.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for position in (0..code.order.len()).rev() {
            let block = code.order[position];
            let mut out = std::mem::replace(&mut outs[block.index()], Set::new(0));
            let mut grown = ins[block.index()].0.iter().all(|w| *w == 0);
            for next in code.successors(position) {
                grown |= out.join(&ins[next.index()]);
            }
            if grown {
                let mut live = out.clone();
                for inst in code.insts(block).iter().rev() {
                    step(code, inst, &mut live);
                }
                changed |= ins[block.index()].join(&live);
            }
            outs[block.index()] = out;
        }
    }
    outs
}

fn step(code: &Code, inst: &Inst, live: &mut Set) {
    for (access, operand) in inst.accesses() {
        if access == Access::Write
            && let Some(reg) = ends(code, inst, operand)
        {
            live.remove(reg);
        }
    }
    for (access, operand) in inst.accesses() {
        if let Operand::Part(part) = operand
            && access != Access::Write
        {
            live.insert(part.reg.index());
        }
    }
}

/// The lifetimes of the registers of some code.
pub(crate) fn lives(code: &Code) -> Lives {
    let n = code.registers.len();
    let outs = ends_of_blocks(code);
    let mut lives = Lives { ranges: vec![Vec::new(); n], uses: vec![0; n] };
    let mut end = code.len();
    for block in code.order.iter().rev() {
        let start = end - code.insts(*block).len();
        block_lives(code, *block, start, outs[block.index()].clone(), &mut lives);
        end = start;
    }
    for ranges in &mut lives.ranges {
        ranges.reverse();
        merge(ranges);
    }
    lives
}

/// Adds the ranges in a block, from its end to its start, for each register in descending order.
fn block_lives(code: &Code, block: Block, start: usize, mut live: Set, lives: &mut Lives) {
    let insts = code.insts(block);
    let point = |i: usize| u32::try_from(2 * i).unwrap_or(u32::MAX - 1);
    let weight = 10u64.pow(code.blocks[block.index()].depth.min(6));
    // The last point of each register that lives, by number.
    let mut until = vec![0; code.registers.len()];
    for reg in live.iter() {
        until[reg] = point(start + insts.len()).saturating_sub(1);
    }
    for (i, inst) in insts.iter().enumerate().rev() {
        let at = point(start + i);
        for (number, (access, operand)) in inst.accesses().enumerate() {
            let Operand::Part(part) = operand else { continue };
            let reg = part.reg.index();
            lives.uses[reg] += if takes_either(inst, number) { 0 } else { weight };
            if access == Access::Read {
                continue;
            }
            if !live.contains(reg) {
                // Never read: it lives where it is written.
                live.insert(reg);
                until[reg] = at + 1;
            }
            if access == Access::Write && ends(code, inst, operand).is_some() {
                live.remove(reg);
                lives.ranges[reg].push(Range { from: at + 1, to: until[reg] });
            }
        }
        for (access, operand) in inst.accesses() {
            if let Operand::Part(part) = operand
                && access != Access::Write
                && live.insert(part.reg.index())
            {
                until[part.reg.index()] = if early(inst) { at + 1 } else { at };
            }
        }
    }
    for reg in live.iter() {
        lives.ranges[reg].push(Range { from: point(start), to: until[reg] });
    }
}

/// Joins ranges that touch or overlap.
fn merge(ranges: &mut Vec<Range>) {
    let mut out: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        match out.last_mut() {
            Some(last) if range.from <= last.to.saturating_add(1) => last.to = last.to.max(range.to),
            Some(_) | None => out.push(range),
        }
    }
    *ranges = out;
}
