//! The registers of the machine that an instruction reads and writes, for passes after the allocation of registers.

use super::machine_ir::{Inst, Kind, Operand};
use crate::isa::operand::VCC;
use crate::isa::{Access, Implicit, Operand as Isa, Unit};

/// A register of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Physical {
    /// A scalar register, by its code: ISA §5.2.
    S(u8),
    /// A vector register.
    V(u8),
    /// An accumulation register.
    A(u8),
}

/// The registers of an operand.
pub(crate) fn of(operand: &Operand) -> Vec<Physical> {
    match operand {
        Operand::Isa(Isa::S(first, n)) => (0..*n).map(|i| Physical::S(first.saturating_add(i))).collect(),
        Operand::Isa(Isa::V(first, n)) => (0..*n).map(|i| Physical::V(first.saturating_add(i))).collect(),
        Operand::Isa(Isa::A(first, n)) => (0..*n).map(|i| Physical::A(first.saturating_add(i))).collect(),
        Operand::Isa(Isa::Inline(_) | Isa::Literal(_) | Isa::Special(_) | Isa::Imm(_) | Isa::Off)
        | Operand::Part(_)
        | Operand::To(_) => Vec::new(),
    }
}

/// The registers that an instruction reads.
pub(crate) fn read(inst: &Inst) -> Vec<Physical> {
    let mut all: Vec<Physical> =
        inst.accesses().filter(|(access, _)| *access != Access::Write).flat_map(|(_, operand)| of(operand)).collect();
    if let Kind::Row { row, .. } = &inst.kind
        && row.reads.has(Implicit::VCC)
    {
        all.extend([Physical::S(VCC), Physical::S(VCC + 1)]);
    }
    all
}

/// The registers that an instruction writes.
pub(crate) fn written(inst: &Inst) -> Vec<Physical> {
    inst.accesses().filter(|(access, _)| *access != Access::Read).flat_map(|(_, operand)| of(operand)).collect()
}

/// The unit that executes an instruction.
pub(crate) fn unit(inst: &Inst) -> Unit {
    match &inst.kind {
        Kind::Row { row, .. } => row.unit,
        Kind::Start | Kind::Rematerialized => Unit::Control,
    }
}
