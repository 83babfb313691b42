//! Code on registers of the machine as bytes, with the distances of branches.

use super::error::Fault;
use super::machine_ir::{Code, Inst, Kind, Operand};
use crate::isa::{Inst as IsaInst, Operand as Isa};

/// The bytes of some code.
pub(crate) fn assemble(code: &Code) -> Result<Vec<u8>, Fault> {
    let mut starts = vec![0u64; code.blocks.len()];
    let mut insts = Vec::new();
    let mut at = 0;
    for block in &code.order {
        starts[block.index()] = at;
        for inst in code.insts(*block) {
            let Some(encoded) = instruction(inst)? else { continue };
            at += encoded.size();
            insts.push((encoded, inst, at));
        }
    }
    let mut bytes = Vec::new();
    for (mut encoded, inst, next) in insts {
        if let Some(target) = inst.target() {
            let words = (starts[target.index()].cast_signed() - next.cast_signed()) / 4;
            let Ok(distance) = i16::try_from(words) else {
                let why = "branches over at most 131072 bytes of code, and this code is longer".to_owned();
                return Err(Fault::Limit(why, inst.loc));
            };
            if let Some(operand) = encoded.operands_mut().last_mut() {
                *operand = Isa::Imm(distance.into());
            }
        }
        bytes.extend(encoded.bytes().map_err(|e| Fault::Defect(format!("{}: {e}", inst.name())))?);
    }
    Ok(bytes)
}

/// An instruction of the tables; nothing for what emits none. The target of a branch is set later.
pub(crate) fn instruction(inst: &Inst) -> Result<Option<IsaInst>, Fault> {
    let Kind::Row { row, form, mods } = &inst.kind else { return Ok(None) };
    let mut operands = Vec::with_capacity(inst.operands.len());
    for operand in &inst.operands {
        operands.push(match operand {
            Operand::Isa(operand) => *operand,
            Operand::To(_) => Isa::Imm(0),
            Operand::Part(part) => return Err(Fault::Defect(format!("{} has no register", part.reg))),
        });
    }
    let mut encoded = IsaInst::unchecked(row, *form, operands);
    for (field, value) in mods {
        encoded.put(*field, *value);
    }
    Ok(Some(encoded))
}
