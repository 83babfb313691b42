//! Masks of lanes, computed where they are used.
//!
//! ```text
//! v_cmp_lt_i32 %1, …                       v_cmp_lt_i32 %1, …
//! v_cmp_lt_i32 %2, …                       v_cmp_ge_i32 %3, …
//! v_cmp_ge_i32 %3, …                       s_and_b64 %5, %1, %3
//! v_cmp_ge_i32 %4, …                ─▶     v_cndmask_b32 %7, …, %5
//! s_and_b64 %5, %1, %3                     v_cmp_lt_i32 %2, …
//! s_and_b64 %6, %2, %4                     v_cmp_ge_i32 %4, …
//! v_cndmask_b32 %7, …, %5                  s_and_b64 %6, %2, %4
//! v_cndmask_b32 %8, …, %6                  v_cndmask_b32 %8, …, %6
//! ```
//!
//! A mask takes two scalar registers, and those of all elements of a tile more than there are. Moved down to its first use, a mask lives for few
//! instructions, while what is compared lives longer: so this is for code that copies scalar registers ([`super::allocate`]). Wait states between a
//! comparison and vector arithmetic that reads the mask are filled with other instructions where there are any.
//!
//! **Why it is right.** An instruction moves down in its block over instructions that neither read or write its result, nor write what it
//! reads, nor change the active lanes. One that writes the condition code moves only if nobody reads what it writes there, to a place where
//! the next instruction that has to do with the condition code writes it.
//!
//! **Why it ends.** Each instruction is looked at once, from the end of the block to its start; so the uses of a mask stand where they stay when
//! the mask is moved.

use super::constants::changes_lanes;
use super::machine_ir::{Block, Code, File, Inst, Kind, Operand, Reg};
use crate::isa::{Access, Implicit, Operand as Isa, Unit};

/// The instructions between a comparison and vector arithmetic that reads its mask: two wait states (`hazards`).
const APART: usize = 2;
/// A mask moves only over more instructions than this.
const NEAR: usize = 8;

/// Moves masks down to their first use.
pub(crate) fn masks(code: &Code) -> Code {
    let mut out = code.clone();
    let single = single(code);
    for block in &code.order {
        in_block(&mut out, *block, &single);
    }
    out
}

/// Whether each register is a mask with one definition.
fn single(code: &Code) -> Vec<bool> {
    let mut writes = vec![0u32; code.registers.len()];
    for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
        for (access, operand) in inst.accesses() {
            if let (Operand::Part(part), true) = (operand, access != Access::Read) {
                writes[part.reg.index()] += 1;
            }
        }
    }
    let mask = |r: usize| {
        let register = code.registers[r];
        register.file == File::S && register.words == 2 && !register.pieces
    };
    (0..writes.len()).map(|r| writes[r] == 1 && mask(r)).collect()
}

fn in_block(code: &mut Code, block: Block, single: &[bool]) {
    let insts = &mut code.blocks[block.index()].insts;
    for at in (0..insts.len()).rev() {
        if let Some(to) = place(insts, at, single)
            && to > at + NEAR
        {
            insts[at..to].rotate_left(1);
        }
    }
}

/// The register that an instruction computes, if it is a mask that may be computed elsewhere.
fn mask(inst: &Inst, single: &[bool]) -> Option<Reg> {
    let Kind::Row { row, .. } = &inst.kind else { return None };
    let combines = matches!(row.name, "s_and_b64" | "s_andn2_b64" | "s_or_b64" | "s_xor_b64");
    let hidden = row.writes.without(Implicit::SCC) != Implicit::NONE || row.reads != Implicit::NONE;
    if hidden && !row.name.starts_with("v_cmp_") || !(combines || row.name.starts_with("v_cmp_")) {
        return None;
    }
    match inst.operands.first() {
        Some(Operand::Part(part)) if single.get(part.reg.index()) == Some(&true) => Some(part.reg),
        Some(Operand::Part(_) | Operand::Isa(_) | Operand::To(_)) | None => None,
    }
}

/// The number of the instruction before which a mask may be computed, which is behind its place.
fn place(insts: &[Inst], at: usize, single: &[bool]) -> Option<usize> {
    let inst = &insts[at];
    let reg = mask(inst, single)?;
    let reads_exec = inst.operands.contains(&Operand::Isa(Isa::EXEC));
    let mut end = at + 1;
    let mut used = None;
    for (k, next) in insts.iter().enumerate().skip(at + 1) {
        if touches(next, reg) {
            used = Some(next);
            break;
        }
        if next.target().is_some() || next.ends() || overwrites(next, inst) || changes_lanes(next) {
            break;
        }
        end = k + 1;
    }
    let used = used?;
    // A comparison and vector arithmetic stand apart.
    let vector = |inst: &Inst| matches!(inst.kind, Kind::Row { row, .. } if matches!(row.unit, Unit::Valu | Unit::Trans | Unit::Dot));
    if vector(used) && vector(inst) {
        end = end.saturating_sub(APART);
    }
    let sets = |inst: &Inst| matches!(inst.kind, Kind::Row { row, .. } if row.writes.has(Implicit::SCC));
    let asks = |inst: &Inst| matches!(inst.kind, Kind::Row { row, .. } if row.reads.has(Implicit::SCC));
    let is_read = |from: usize| {
        let next = insts[from..].iter().find(|next| asks(next) || sets(next));
        next.is_some_and(asks)
    };
    let kept = !sets(inst) || !(is_read(at + 1) || is_read(end));
    (kept && !reads_exec && end > at + 1).then_some(end)
}

/// Whether an instruction reads or writes a register.
fn touches(inst: &Inst, reg: Reg) -> bool {
    inst.operands.iter().any(|operand| matches!(operand, Operand::Part(part) if part.reg == reg))
}

/// Whether an instruction writes something that another one reads.
fn overwrites(inst: &Inst, reader: &Inst) -> bool {
    let writes = inst.accesses().filter(|(access, _)| *access != Access::Read);
    let mut writes = writes.map(|(_, operand)| operand);
    writes.any(|written| match written {
        Operand::Part(written) => touches(reader, written.reg),
        Operand::Isa(Isa::S(..) | Isa::V(..) | Isa::A(..)) => {
            reader.operands.iter().any(|operand| matches!(operand, Operand::Isa(Isa::S(..) | Isa::V(..) | Isa::A(..))))
        }
        Operand::Isa(Isa::Inline(_) | Isa::Literal(_) | Isa::Special(_) | Isa::Imm(_) | Isa::Off) | Operand::To(_) => {
            false
        }
    })
}
