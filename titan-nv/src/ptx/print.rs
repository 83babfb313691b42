//! The text of a module.

use super::isa::Slot;
use super::module::{Address, Base, Entry, Inst, Label, Line, Module, Operand, Reg, Special};
use std::fmt::{self, Display, Formatter};
use titan_core::lane::Ty;

/// The name of the dynamic shared memory.
const SHARED: &str = "smem";

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.comment.is_empty() {
            writeln!(f, "// {}", self.comment)?;
        }
        writeln!(f, ".version {}.{}", self.version / 10, self.version % 10)?;
        writeln!(f, ".target {}", self.target)?;
        writeln!(f, ".address_size 64")?;
        if let Some(file) = &self.file {
            writeln!(f, ".file 1 \"{file}\"")?;
        }
        if self.shared {
            writeln!(f, ".extern .shared .align 1024 .b8 {SHARED}[];")?;
        }
        for entry in self.entries() {
            writeln!(f)?;
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".visible .entry {}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            let comma = if i + 1 < self.params.len() { "," } else { "" };
            if param.bytes > 8 {
                writeln!(f, "  .param .align 64 .b8 p{i}[{}]{comma} // {}", param.bytes, param.comment)?;
            } else {
                writeln!(f, "  .param .b{} p{i}{comma} // {}", param.bytes * 8, param.comment)?;
            }
        }
        writeln!(f, ")")?;
        writeln!(f, ".maxntid {}, 1, 1", self.threads)?;
        writeln!(f, ".minnctapersm 1")?;
        if self.cluster > 1 {
            writeln!(f, ".reqnctapercluster {}, 1, 1", self.cluster)?;
        }
        writeln!(f, "{{")?;
        for (class, count) in Ty::ALL.iter().zip(self.registers) {
            if count > 0 {
                writeln!(f, "  .reg .{} {}<{count}>;", class_type(*class), prefix(*class))?;
            }
        }
        for line in &self.body {
            match line {
                Line::Label(label) => writeln!(f, "{label}:")?,
                Line::Inst(inst) => writeln!(f, "  {inst};")?,
                Line::Loc { line, column } => writeln!(f, "  .loc 1 {line} {column}")?,
            }
        }
        writeln!(f, "}}")
    }
}

const fn class_type(class: Ty) -> &'static str {
    match class {
        Ty::Pred => "pred",
        Ty::B16 => "b16",
        Ty::B32 => "b32",
        Ty::B64 => "b64",
    }
}

const fn prefix(class: Ty) -> &'static str {
    match class {
        Ty::Pred => "%p",
        Ty::B16 => "%rs",
        Ty::B32 => "%r",
        Ty::B64 => "%rd",
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", prefix(self.class), self.number)
    }
}

impl Display for Label {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "$L{}", self.0)
    }
}

impl Display for Special {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let axis = |axis: u8| match axis {
            0 => 'x',
            1 => 'y',
            _ => 'z',
        };
        match self {
            Special::ThreadId => f.write_str("%tid.x"),
            Special::ProgramId(a) => write!(f, "%ctaid.{}", axis(*a)),
            Special::NumPrograms(a) => write!(f, "%nctaid.{}", axis(*a)),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.base {
            Base::Reg(reg) => write!(f, "[{reg}")?,
            Base::Shared => write!(f, "[{SHARED}")?,
            Base::Param(n) => write!(f, "[p{n}")?,
        }
        match self.offset {
            0 => f.write_str("]"),
            // ptxas accepts `+-8`, but not `-8`.
            offset => write!(f, "+{offset}]"),
        }
    }
}

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.reg)?;
        }
        f.write_str(self.form.text)?;
        for (i, operand) in self.operands.iter().enumerate() {
            f.write_str(if i == 0 { " " } else { ", " })?;
            match operand {
                Operand::Reg(reg) => reg.fmt(f)?,
                Operand::Regs(regs) => braces(f, regs)?,
                Operand::Const(bits) => constant(f, self.form.slots.get(i), *bits)?,
                Operand::Address(address) => address.fmt(f)?,
                Operand::Special(special) => special.fmt(f)?,
                Operand::SharedBase => f.write_str(SHARED)?,
                Operand::Param(n) => write!(f, "p{n}")?,
                Operand::Box(map, coords) => {
                    write!(f, "[{map}, ")?;
                    braces(f, coords)?;
                    f.write_str("]")?;
                }
                Operand::Label(label) => label.fmt(f)?,
            }
        }
        Ok(())
    }
}

fn braces(f: &mut Formatter<'_>, regs: &[Reg]) -> fmt::Result {
    f.write_str("{")?;
    for (i, reg) in regs.iter().enumerate() {
        write!(f, "{}{reg}", if i == 0 { "" } else { ", " })?;
    }
    f.write_str("}")
}

/// Prints floats by their bits; small integers in decimal, others in hexadecimal.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is meant")]
fn constant(f: &mut Formatter<'_>, slot: Option<&Slot>, bits: u64) -> fmt::Result {
    let signed = match slot {
        Some(Slot::Float(Ty::B32)) => return write!(f, "0f{:08X}", bits as u32),
        Some(Slot::Float(_)) => return write!(f, "0d{bits:016X}"),
        Some(Slot::Int(Ty::B64)) => bits.cast_signed(),
        Some(Slot::Int(Ty::B16)) => i64::from(bits as u16),
        Some(_) | None => i64::from(bits as i32),
    };
    if signed <= 0xffff { write!(f, "{signed}") } else { write!(f, "{signed:#x}") }
}
