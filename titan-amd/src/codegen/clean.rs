//! Removal of what has no effect: blocks that no way leads to, branches to where control falls through anyway, and instructions whose
//! results nobody reads.

use super::machine_ir::{Block, Code, Inst, Kind, Operand};
use crate::isa::{Access, Form, Implicit, Operand as Isa, Unit};

/// Removes unreachable blocks, needless branches and needless instructions.
pub(crate) fn clean(code: &mut Code) {
    loop {
        let before = (code.order.len(), code.len());
        unreachable(code);
        needless(code);
        unread(code);
        if before == (code.order.len(), code.len()) {
            return;
        }
    }
}

/// A block into which a reachable one falls is reachable, so that the removal changes no way.
fn unreachable(code: &mut Code) {
    let mut positions = vec![None; code.blocks.len()];
    for (position, block) in code.order.iter().enumerate() {
        positions[block.index()] = Some(position);
    }
    let mut reached = vec![false; code.blocks.len()];
    let mut left: Vec<usize> = vec![0];
    while let Some(at) = left.pop() {
        let Some(block) = code.order.get(at) else { continue };
        if std::mem::replace(&mut reached[block.index()], true) {
            continue;
        }
        left.extend(code.successors(at).into_iter().filter_map(|block: Block| positions[block.index()]));
    }
    code.order.retain(|block| reached[block.index()]);
}

/// Removes an unconditional branch to a block that follows, with only empty blocks in between.
fn needless(code: &mut Code) {
    for at in 0..code.order.len() {
        let block = code.order[at];
        let Some(last) = code.insts(block).last() else { continue };
        let (true, Some(target)) = (last.name() == "s_branch", last.target()) else { continue };
        let after = &code.order[at + 1..];
        let Some(distance) = after.iter().position(|b| *b == target) else { continue };
        if after[..distance].iter().all(|b| code.insts(*b).is_empty()) {
            code.blocks[block.index()].insts.pop();
        }
    }
}

/// Removes instructions that do nothing but write registers that nobody reads. Reads by the instruction itself do not count.
fn unread(code: &mut Code) {
    let mut reads = vec![0u32; code.registers.len()];
    for block in &code.order {
        for inst in code.insts(*block) {
            let written = |reg| {
                let mut all = inst.accesses().filter(|(access, _)| *access != Access::Read);
                all.any(|(_, operand)| matches!(operand, Operand::Part(part) if part.reg == reg))
            };
            for (access, operand) in inst.accesses() {
                if let (Operand::Part(part), true) = (operand, access != Access::Write)
                    && !written(part.reg)
                {
                    reads[part.reg.index()] += 1;
                }
            }
        }
    }
    for block in code.order.clone() {
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut keep = vec![true; insts.len()];
        // Whether an instruction below reads the condition code before it is written again.
        let mut condition = false;
        for (inst, keep) in insts.iter().zip(&mut keep).rev() {
            *keep = has_effect(inst, condition)
                || inst.accesses().any(|(access, operand)| match operand {
                    Operand::Part(part) => access != Access::Read && reads[part.reg.index()] > 0,
                    Operand::Isa(Isa::S(..) | Isa::V(..) | Isa::A(..)) => access != Access::Read,
                    Operand::Isa(_) | Operand::To(_) => false,
                });
            if *keep && let Kind::Row { row, .. } = &inst.kind {
                condition = (condition && !row.writes.has(Implicit::SCC)) || row.reads.has(Implicit::SCC);
            }
        }
        let kept = insts.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(inst, _)| inst);
        code.blocks[block.index()].insts = kept.collect();
    }
}

/// Removes copies of a register of the machine to itself, and what is left of the definitions of constants that are computed again.
pub(crate) fn identities(code: &mut Code) {
    let moves = |inst: &Inst| matches!(inst.name(), "v_mov_b32" | "v_mov_b64" | "s_mov_b32" | "s_mov_b64");
    let plain = |inst: &Inst| matches!(inst.kind, Kind::Row { form: Form::Base, .. });
    for block in code.order.clone() {
        code.blocks[block.index()].insts.retain(|inst| match inst.operands.as_slice() {
            [to, from] => to != from || !moves(inst) || !plain(inst),
            _ => inst.kind != Kind::Rematerialized,
        });
    }
}

/// Whether an instruction does more than to write the registers that are its operands.
fn has_effect(inst: &Inst, condition: bool) -> bool {
    let Kind::Row { row, .. } = &inst.kind else { return false };
    let hidden = row.writes.without(Implicit::SCC) != Implicit::NONE;
    let scc = condition && row.writes.has(Implicit::SCC);
    match row.unit {
        Unit::Salu | Unit::Valu | Unit::Trans | Unit::Dot => hidden || scc,
        // Neither does a load or a matrix instruction; an access of the local data share may be one that other lanes take part in.
        Unit::Smem | Unit::Load | Unit::Xdl | Unit::Sgemm | Unit::Dgemm => false,
        Unit::Store | Unit::Atomic | Unit::LoadLds | Unit::Cache | Unit::Lds | Unit::Branch | Unit::Control => true,
    }
}
