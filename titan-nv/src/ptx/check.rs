//! The requirements on a module before it is printed: operands fit their form, each label is defined once, registers
//! are counted, and the version and target have every instruction.
//!
//! A violation is a bug of the lowering; it is reported as an error instead of printing text that an assembler refuses.

use super::isa::Slot;
use super::module::{Address, Base, Entry, Inst, Line, Module, Operand, Reg};
use crate::machine::Machine;
use titan_core::collections::SortedMap;
use titan_core::lane::Ty;

/// Checks a module for a machine.
///
/// # Errors
/// A description of the first instruction that is wrong.
pub fn check(module: &Module, machine: &Machine) -> Result<(), String> {
    module.entries().try_for_each(|entry| of_entry(entry, module.version, machine))
}

fn of_entry(entry: &Entry, version: u32, machine: &Machine) -> Result<(), String> {
    let mut labels: SortedMap<u32, u32> = SortedMap::new();
    for line in &entry.body {
        if let Line::Label(label) = line {
            *labels.entry(label.0).or_default() += 1;
        }
    }
    for inst in entry.instructions() {
        let fail = |why: &str| Err(format!("`{inst}`: {why}"));
        if inst.form.ptx > version || !inst.form.is_of(machine) {
            return fail("the target or the version does not have it");
        }
        if inst.operands.len() != inst.form.slots.len() {
            return fail("another number of operands");
        }
        if inst.guard.is_some_and(|g| g.reg.class != Ty::Pred) {
            return fail("the guard is not a condition");
        }
        for (operand, slot) in inst.operands.iter().zip(inst.form.slots) {
            if !fits(operand, *slot) {
                return fail(&format!("{operand:?} is not {slot:?}"));
            }
        }
        if let Some(Operand::Label(label)) = inst.operands.first()
            && labels.get(&label.0) != Some(&1)
        {
            return fail("the label is not there once");
        }
        if registers(inst).any(|reg| reg.number >= count(entry, reg.class)) {
            return fail("a register that is not declared");
        }
        let params = entry.params.len();
        if addresses(inst).any(|a| matches!(a.base, Base::Param(n) if n as usize >= params)) {
            return fail("a parameter that is not declared");
        }
    }
    Ok(())
}

fn count(entry: &Entry, class: Ty) -> u32 {
    Ty::ALL.iter().zip(entry.registers).find(|(c, _)| **c == class).map_or(0, |(_, n)| n)
}

fn addresses(inst: &Inst) -> impl Iterator<Item = &Address> {
    inst.operands.iter().filter_map(|o| if let Operand::Address(a) = o { Some(a) } else { None })
}

fn registers(inst: &Inst) -> impl Iterator<Item = Reg> {
    let guard = inst.guard.map(|g| g.reg);
    let bases = addresses(inst).filter_map(|a| if let Base::Reg(reg) = a.base { Some(reg) } else { None });
    let direct = inst.operands.iter().flat_map(|o| match o {
        Operand::Reg(reg) => std::slice::from_ref(reg),
        Operand::Regs(regs) | Operand::Box(_, regs) => regs.as_slice(),
        Operand::Const(_)
        | Operand::Param(_)
        | Operand::Address(_)
        | Operand::Special(_)
        | Operand::SharedBase
        | Operand::Label(_) => &[],
    });
    guard.into_iter().chain(bases).chain(direct.copied())
}

fn fits(operand: &Operand, slot: Slot) -> bool {
    match (slot, operand) {
        (Slot::Out(ty) | Slot::In(ty) | Slot::Int(ty) | Slot::Float(ty), Operand::Reg(reg)) => reg.class == ty,
        (Slot::Int(_) | Slot::Float(_) | Slot::Const, Operand::Const(_)) => true,
        (Slot::Outs(ty, n) | Slot::Ins(ty, n), Operand::Regs(regs)) => {
            regs.len() == usize::from(n) && regs.iter().all(|r| r.class == ty)
        }
        (Slot::Memory(space), Operand::Address(address)) => address.base.space() == Some(space),
        (Slot::Param, Operand::Address(address)) => matches!(address.base, Base::Param(_)),
        (Slot::Box(n), Operand::Box(map, coords)) => {
            map.class == Ty::B64 && coords.len() == usize::from(n) && coords.iter().all(|r| r.class == Ty::B32)
        }
        (Slot::ParamName, Operand::Param(_)) => true,
        (Slot::Special, Operand::Special(_)) | (Slot::SharedBase, Operand::SharedBase) => true,
        (Slot::Target, Operand::Label(_)) => true,
        (
            Slot::Out(_)
            | Slot::In(_)
            | Slot::Int(_)
            | Slot::Float(_)
            | Slot::Outs(..)
            | Slot::Ins(..)
            | Slot::Const
            | Slot::Memory(_)
            | Slot::Param
            | Slot::ParamName
            | Slot::Box(_)
            | Slot::Special
            | Slot::SharedBase
            | Slot::Target,
            _,
        ) => false,
    }
}
