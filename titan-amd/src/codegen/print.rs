//! The text of machine IR, for readers and tests.
//!
//! ```text
//! b1: depth 1, from b0 b1
//!     v_add_u32 %7:v1, %3:s1, %6:v1        ; line 12
//!     global_load_dwordx4 %8:v4, %9:v2, off offset=16
//!     s_cbranch_scc1 b1
//! ```
//!
//! A register is printed with its file and its number of words; `%8.2:v1` is the third word of `%8`.
//!
//! Deliberately absent: a parser. Machine IR is made only by selection.

use super::machine_ir::{Code, File, Inst, Kind, Operand};
use crate::isa::{Form, Inst as IsaInst, Operand as Isa};
use std::fmt::{self, Write};

impl File {
    /// The letter of the file.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            File::S => 's',
            File::V => 'v',
            File::A => 'a',
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.predecessors();
        for block in &self.order {
            let data = &self.blocks[block.index()];
            write!(f, "{block}: depth {}", data.depth)?;
            for (i, one) in from[block.index()].iter().enumerate() {
                write!(f, "{} {one}", if i == 0 { ", from" } else { "" })?;
            }
            f.write_char('\n')?;
            let mut line = 0;
            for inst in &data.insts {
                f.write_str("    ")?;
                self.inst(f, inst)?;
                if inst.loc.line != line && inst.loc.line > 0 {
                    line = inst.loc.line;
                    write!(f, "        ; line {line}")?;
                }
                f.write_char('\n')?;
            }
        }
        Ok(())
    }
}

impl Code {
    fn inst(&self, f: &mut fmt::Formatter<'_>, inst: &Inst) -> fmt::Result {
        f.write_str(inst.name())?;
        let suffix = match &inst.kind {
            Kind::Row { form: Form::E64, .. } => "_e64",
            Kind::Row { form: Form::Dpp, .. } => "_dpp",
            Kind::Row { form: Form::Sdwa, .. } => "_sdwa",
            Kind::Row { form: Form::Base, .. } | Kind::Start | Kind::Rematerialized => "",
        };
        f.write_str(suffix)?;
        for (i, operand) in inst.operands.iter().enumerate() {
            f.write_str(if i == 0 { " " } else { ", " })?;
            match operand {
                Operand::Part(part) => {
                    let register = self.register(part.reg);
                    write!(f, "{}", part.reg)?;
                    if part.words != register.words {
                        write!(f, ".{}", part.first)?;
                    }
                    write!(f, ":{}{}", register.file.letter(), part.words)?;
                }
                Operand::Isa(operand) => write!(f, "{}", Shown(*operand))?,
                Operand::To(block) => write!(f, "{block}")?,
            }
        }
        if let Kind::Row { mods, .. } = &inst.kind {
            for (field, value) in mods {
                write!(f, " {}={value}", format!("{field:?}").to_lowercase())?;
            }
        }
        if inst.added { f.write_str("        ; added") } else { Ok(()) }
    }
}

/// An operand of the tables, as instructions print it.
struct Shown(Isa);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The printer of instructions knows the names of all operands: a move shows one.
        let moved = |name: &str, to: Isa| {
            let row = crate::isa::by_name(name).first()?;
            let inst = IsaInst::new(row, Form::Base, vec![to, self.0]).ok()?;
            inst.to_string().split_once(", ").map(|(_, operand)| operand.to_owned())
        };
        match self.0 {
            Isa::Imm(value) => write!(f, "{value}"),
            Isa::Off => f.write_str("off"),
            Isa::V(first, 1) => write!(f, "v{first}"),
            Isa::V(first, n) => write!(f, "v[{first}:{}]", u32::from(first) + u32::from(n) - 1),
            Isa::A(first, 1) => write!(f, "a{first}"),
            Isa::A(first, n) => write!(f, "a[{first}:{}]", u32::from(first) + u32::from(n) - 1),
            Isa::S(_, 2) => f.write_str(&moved("s_mov_b64", Isa::S(0, 2)).unwrap_or_default()),
            Isa::S(first, n) if n > 2 => write!(f, "s[{first}:{}]", u32::from(first) + u32::from(n) - 1),
            Isa::S(..) | Isa::Inline(_) | Isa::Literal(_) | Isa::Special(_) => {
                f.write_str(&moved("s_mov_b32", Isa::S(0, 1)).unwrap_or_default())
            }
        }
    }
}
