//! Comparisons of scalars that decide one branch or selection, made where they decide:
//!
//! ```text
//! s_cmp_lt_i32 a, b
//! s_cselect_b64 m, -1, 0
//! …                              …
//! s_and_b64 t, m, exec     ─▶    s_cmp_lt_i32 a, b
//! s_cbranch_scc0 other           s_cbranch_scc0 other
//! ```
//!
//! **Why it is right.** Some lane is active wherever code is executed, so that the condition code behind the conjunction of the mask with the active
//! lanes is the comparison. Nothing writes what is compared in between, and nobody else reads the mask or the conjunction.
//!
//! Deliberately absent: masks that are used twice, and across blocks.

use super::machine_ir::{Code, Inst, Kind, Operand, Reg};
use crate::isa::{Access, Implicit, Inline, Operand as Isa};

/// Moves such comparisons.
pub(crate) fn fuse(code: &mut Code) {
    let reads = reads(code);
    for block in code.order.clone() {
        let insts = &mut code.blocks[block.index()].insts;
        let mut at = 0;
        while at < insts.len() {
            match comparison(insts, at, &reads) {
                Some(first) => {
                    let Inst { kind, operands, .. } = insts[first].clone();
                    let decides = Inst { kind, operands, ..insts[at].clone() };
                    insts[at] = decides;
                    insts.drain(first..=first + 1);
                    at -= 1;
                }
                None => at += 1,
            }
        }
    }
}

/// How often each register is read.
fn reads(code: &Code) -> Vec<u32> {
    let mut reads = vec![0; code.registers.len()];
    for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
        for (access, operand) in inst.accesses() {
            if let (Operand::Part(part), true) = (operand, access != Access::Write) {
                reads[part.reg.index()] += 1;
            }
        }
    }
    reads
}

fn whole(operand: &Operand) -> Option<Reg> {
    match operand {
        Operand::Part(part) if part.first == 0 => Some(part.reg),
        Operand::Part(_) | Operand::Isa(_) | Operand::To(_) => None,
    }
}

/// The position of the comparison whose mask an instruction tests, if it may be made there instead.
fn comparison(insts: &[Inst], at: usize, reads: &[u32]) -> Option<usize> {
    let test = &insts[at];
    let [to, mask, Operand::Isa(Isa::EXEC)] = &test.operands[..] else { return None };
    let (to, mask) = (whole(to)?, whole(mask)?);
    if test.name() != "s_and_b64" || reads[to.index()] != 0 || reads[mask.index()] != 1 {
        return None;
    }
    let writes = |inst: &Inst, reg: Reg| {
        inst.accesses().any(|(access, operand)| {
            access != Access::Read && matches!(operand, Operand::Part(part) if part.reg == reg)
        })
    };
    let selected = insts[..at].iter().rposition(|inst| writes(inst, mask))?;
    let first = selected.checked_sub(1)?;
    let ones = [Isa::Inline(Inline::Int(-1)), Isa::Inline(Inline::Int(0))].map(Operand::Isa);
    let select = &insts[selected];
    let compare = &insts[first];
    if select.name() != "s_cselect_b64"
        || select.operands.get(1..) != Some(&ones[..])
        || !compare.name().starts_with("s_cmp_")
    {
        return None;
    }
    // Nothing in between reads the condition code of the comparison, or writes what it compares.
    for inst in &insts[selected + 1..at] {
        let Kind::Row { row, .. } = &inst.kind else { continue };
        if row.reads.has(Implicit::SCC) {
            return None;
        }
        if row.writes.has(Implicit::SCC) {
            break;
        }
    }
    let compared = compare.operands.iter().filter_map(|operand| match operand {
        Operand::Part(part) => Some(part.reg),
        Operand::Isa(_) | Operand::To(_) => None,
    });
    let mut compared = compared;
    let kept = compared.all(|reg| !insts[selected + 1..at].iter().any(|inst| writes(inst, reg)));
    kept.then_some(first)
}
