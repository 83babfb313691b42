//! Encodes instructions as words.
//!
//! Every field is set by exactly one of: the row, an operand, a modifier. A value that does not fit is an error, so that an
//! encoding never differs from the instruction.

use super::error::IsaError;
use super::format::{DPP, Field, Format, LITERAL, SDWA};
use super::inst::Inst;
use super::operand::{Inline, M0, Operand, SGPRS, TTMP, VCC};
use super::row::{Arg, Class, Form};

/// The register number after `m0`, which the manual reserves (ISA §5.2).
const NO_REGISTER: u8 = 125;

/// The words of an instruction under construction.
struct Words<'a> {
    inst: &'a Inst,
    bits: u64,
    literal: Option<u32>,
    /// The register file that `ACC` selects, once an operand has determined it.
    acc: Option<bool>,
}

impl Inst {
    /// The words of the instruction, the first one first.
    ///
    /// # Errors
    /// [`IsaError`], if an operand or a modifier does not fit.
    pub fn encode(&self) -> Result<Vec<u32>, IsaError> {
        let (row, form) = (self.row(), self.form());
        if !row.has_form(form) {
            return Err(IsaError::Form { name: row.name });
        }
        let spec = self.format().spec();
        let args = row.args_in(form);
        let (wants, got) = (args.as_slice().len(), self.operands().len());
        if wants != got {
            return Err(IsaError::Count { name: row.name, wants, got });
        }
        self.check_constant_bus()?;
        self.check_parts()?;
        self.check_overlap()?;
        let mut words = Words { inst: self, bits: 0, literal: None, acc: None };
        words.bits |= spec.fixed.0.put(spec.fixed.1).unwrap_or(0);
        words.set(Field::Op, row.op_in(form).into())?;
        for (field, value) in row.fixed {
            words.set(*field, *value)?;
        }
        match form {
            Form::Sdwa => words.set(Field::Src0, SDWA)?,
            Form::Dpp => words.set(Field::Src0, DPP)?,
            Form::Base | Form::E64 => {}
        }
        let allowed = self.modifiers();
        for (field, value) in self.mods() {
            if !allowed.contains(field) {
                return Err(IsaError::Modifier { name: row.name, modifier: format!("{field:?}") });
            }
            words.set(*field, *value)?;
        }
        for (i, (arg, operand)) in self.args().enumerate() {
            words.operand(i, arg, operand)?;
        }
        let count = spec.words + u8::from(matches!(form, Form::Sdwa | Form::Dpp));
        Ok(words.finish(count))
    }

    /// The bytes of the instruction.
    ///
    /// # Errors
    /// As [`Inst::encode`].
    pub fn bytes(&self) -> Result<Vec<u8>, IsaError> {
        Ok(self.encode()?.into_iter().flat_map(u32::to_le_bytes).collect())
    }
}

impl Words<'_> {
    #[expect(clippy::cast_possible_truncation, reason = "the words of a pair")]
    fn finish(self, count: u8) -> Vec<u32> {
        let both = [self.bits as u32, (self.bits >> 32) as u32];
        both.into_iter().take(count.into()).chain(self.literal).collect()
    }

    /// Sets a field, which must exist unless the value is 0.
    fn set(&mut self, field: Field, value: u32) -> Result<(), IsaError> {
        let wrong = || IsaError::Modifier { name: self.inst.row().name, modifier: format!("{field:?} = {value:#x}") };
        let Some(bits) = self.inst.bits(field) else { return if value == 0 { Ok(()) } else { Err(wrong()) } };
        self.bits |= bits.put(value).ok_or_else(wrong)?;
        Ok(())
    }

    fn operand(&mut self, i: usize, arg: Arg, operand: Operand) -> Result<(), IsaError> {
        let misfit = |why| Err(self.inst.misfit(i, why));
        let n = operand.registers();
        if n != 0 && !self.fits(arg, n) {
            return misfit("another number of registers is needed");
        }
        if let Operand::V(first, n) | Operand::A(first, n) = operand {
            if u32::from(first) + u32::from(n) > 256 {
                return misfit("there are 256 registers in the file");
            }
            if n > 1 && first % 2 != 0 {
                return misfit("vector registers in tuples begin at an even number");
            }
        }
        if let Operand::S(first, n) = operand {
            let align = if n == 1 {
                1
            } else if n == 2 {
                2
            } else {
                4
            };
            if first % align != 0 || u32::from(first) + u32::from(n) > 128 {
                return misfit("scalar registers in tuples begin at a multiple of two or four");
            }
            let last = first + (n - 1);
            if n > 2 && last >= SGPRS && !(first >= TTMP && last < M0) {
                return misfit("scalar registers in fours and more have no names");
            }
            // This also covers `m0` as the first register of a pair.
            if (first..first + n).contains(&NO_REGISTER) {
                return misfit("scalar register 125 does not exist");
            }
        }
        let code = self.code(i, arg, operand)?;
        if let Some(code) = code {
            let field = arg.field;
            if self.inst.bits(field).and_then(|b| b.put(code)).is_none() {
                return misfit("the value does not fit its field");
            }
            self.set(field, code)?;
        }
        Ok(())
    }

    fn fits(&self, arg: Arg, n: u8) -> bool {
        match arg.class {
            // These depend on the modifiers or on another operand, and are checked there.
            Class::BufferAddr | Class::GlobalAddr => true,
            Class::SmemOffset | Class::Soffset | Class::ScratchAddr | Class::ScratchBase => n == 1,
            Class::GlobalBase => n == 2,
            _ => n == arg.ty.dwords(),
        }
    }

    /// The value of an operand's field; related fields are set too.
    #[expect(clippy::too_many_lines, reason = "one arm for each class of operands")]
    fn code(&mut self, i: usize, arg: Arg, operand: Operand) -> Result<Option<u32>, IsaError> {
        let inst = self.inst;
        let wrong = || Err(inst.misfit(i, "no operand of this kind can stand here"));
        let code = match (arg.class, operand) {
            (Class::Sdst, Operand::S(code, _)) if arg.field == Field::SdwaSdst => {
                self.set(Field::SdwaSd, u32::from(code != VCC))?;
                if code == VCC { 0 } else { code.into() }
            }
            (Class::Smem, Operand::S(code, _)) if code >= M0 => return wrong(),
            (Class::Sdst | Class::Smem, Operand::S(code, _)) => code.into(),
            (Class::SrcS, Operand::EXEC) => {
                return Err(inst.misfit(i, "a mask of lanes is in other registers than `exec`"));
            }
            (Class::Ssrc | Class::SsrcInline | Class::SrcS | Class::Soffset, Operand::S(code, _)) => code.into(),
            (Class::Src | Class::SrcInline, Operand::S(code, n)) => {
                if n > 2 {
                    return Err(inst.misfit(i, "sources of more than 64 bits are vector registers"));
                }
                if self.inst.form() == Form::Sdwa {
                    self.set(if arg.field == Field::SdwaSrc0 { Field::S0 } else { Field::S1 }, 1)?;
                }
                code.into()
            }
            (Class::Src | Class::SrcInline, Operand::V(first, _)) => {
                let short = matches!(self.inst.form(), Form::Sdwa | Form::Dpp);
                u32::from(first) + if short { 0 } else { 256 }
            }
            (Class::SrcV, Operand::V(first, _)) | (Class::SrcA, Operand::A(first, _)) => 256 + u32::from(first),
            (
                Class::Ssrc | Class::SsrcInline | Class::SrcS | Class::Soffset | Class::Src | Class::SrcInline,
                Operand::Inline(_) | Operand::Special(_) | Operand::Literal(_),
            ) => {
                // A mask of lanes must be in registers.
                let mask = arg.class == Class::SrcS && arg.ty.dwords() == 2;
                if mask || self.inst.form() == Form::Sdwa || (is_vector(inst.format()) && arg.ty.dwords() > 2) {
                    return wrong();
                }
                match self.constant(arg, operand) {
                    Some(code) => code,
                    None => return wrong(),
                }
            }
            (Class::V, Operand::V(first, _)) | (Class::A, Operand::A(first, _)) => first.into(),
            (Class::Va, Operand::V(first, _) | Operand::A(first, _)) => {
                self.file(i, Field::Acc, operand)?;
                first.into()
            }
            (Class::MatrixAb, Operand::V(first, _) | Operand::A(first, _)) => {
                let field = if arg.field == Field::Src0 { Field::AccA } else { Field::AccB };
                self.set(field, u32::from(matches!(operand, Operand::A(..))))?;
                256 + u32::from(first)
            }
            (Class::MatrixC, Operand::V(first, _) | Operand::A(first, _)) => {
                self.file(i, Field::AccCd, operand)?;
                256 + u32::from(first)
            }
            (Class::MatrixC, Operand::Inline(_)) => self.constant(arg, operand).unwrap_or(0),
            (Class::MatrixD, Operand::V(first, _) | Operand::A(first, _)) => {
                self.file(i, Field::AccCd, operand)?;
                first.into()
            }
            (Class::Vcc, Operand::S(VCC, 2)) => return Ok(None),
            (Class::Literal, Operand::Literal(value)) => {
                self.literal = Some(value);
                return Ok(None);
            }
            (Class::Sbase, Operand::S(code, _)) => u32::from(code) / 2,
            (Class::Srsrc, Operand::S(code, _)) => u32::from(code) / 4,
            (Class::Simm | Class::Hex | Class::Uimm, Operand::Imm(v)) => match immediate(v) {
                Some(v) => v,
                None => return wrong(),
            },
            (Class::Branch | Class::Waitcnt | Class::Hwreg | Class::Message, Operand::Imm(v)) => match immediate(v) {
                Some(v) => v,
                None => return wrong(),
            },
            (Class::IndexMode, Operand::Imm(v @ 0..=15)) => v.cast_unsigned(),
            (Class::SmemOffset, _) => return self.smem_offset(i, operand).map(|()| None),
            (Class::BufferAddr, Operand::Off | Operand::V(..)) => {
                let n = inst.get(Field::Offen) + inst.get(Field::Idxen);
                match operand {
                    Operand::V(first, count) if u32::from(count) == n => first.into(),
                    Operand::Off if n == 0 => 0,
                    _ => return Err(inst.misfit(i, "`offen` and `idxen` take a register each")),
                }
            }
            (Class::GlobalAddr, Operand::V(first, n)) => {
                let base = inst.args().find(|(a, _)| a.class == Class::GlobalBase).map(|(_, o)| o);
                if n != if matches!(base, Some(Operand::S(..))) { 1 } else { 2 } {
                    return Err(inst.misfit(i, "an address has two registers, an offset beside a base one"));
                }
                first.into()
            }
            (Class::GlobalBase | Class::ScratchBase, Operand::Off) => 0x7F,
            (Class::GlobalBase | Class::ScratchBase, Operand::S(code, _)) => code.into(),
            (Class::ScratchAddr, Operand::Off) => 0,
            (Class::ScratchAddr, Operand::V(first, _)) => {
                self.set(Field::Lve, 1)?;
                first.into()
            }
            _ => return wrong(),
        };
        Ok(Some(code))
    }

    /// Sets the bit for the register file, which several operands share.
    fn file(&mut self, i: usize, field: Field, operand: Operand) -> Result<(), IsaError> {
        let acc = matches!(operand, Operand::A(..));
        if *self.acc.get_or_insert(acc) != acc {
            return Err(self.inst.misfit(i, "all data are in vector registers or all in accumulation registers"));
        }
        self.set(field, acc.into())
    }

    fn constant(&mut self, arg: Arg, operand: Operand) -> Option<u32> {
        match operand {
            Operand::Inline(Inline::Int(v)) => {
                let v = i32::from(v);
                let code = if v >= 0 { 128 + v } else { 192 - v };
                ((-16..=64).contains(&v)).then_some(code.cast_unsigned())
            }
            Operand::Inline(Inline::Float(v)) => Some(v.code()),
            Operand::Special(v) => Some(v.code()),
            Operand::Literal(value) => {
                let allowed = matches!(arg.class, Class::Ssrc | Class::Src) && self.inst.format().spec().words == 1;
                (allowed && *self.literal.get_or_insert(value) == value).then_some(LITERAL)
            }
            Operand::S(..) | Operand::V(..) | Operand::A(..) | Operand::Imm(_) | Operand::Off => None,
        }
    }

    /// ISA §8.2.1.1 "Scalar Memory Addressing": the table of `IMM` and `SOE`. A single register is encoded in `OFFSET`; `SOE` as a
    /// modifier adds an offset of 0 to it, as compilers do.
    fn smem_offset(&mut self, i: usize, operand: Operand) -> Result<(), IsaError> {
        let inst = self.inst;
        match operand {
            Operand::Imm(v) => {
                if inst.get(Field::SmemOffset) != 0 || inst.get(Field::Soe) != 0 || !(-(1 << 20)..1 << 20).contains(&v)
                {
                    return Err(inst.misfit(i, "an offset has 21 bits"));
                }
                self.set(Field::Imm, 1)?;
                self.set(Field::SmemOffset, v.cast_unsigned() & 0x1F_FFFF)
            }
            Operand::S(code, 1) if inst.get(Field::SmemOffset) == 0 && inst.get(Field::Soe) == 0 => {
                self.set(Field::SmemOffset, code.into())
            }
            Operand::S(code, 1) => {
                self.set(Field::Imm, 1)?;
                self.set(Field::Soe, 1)?;
                self.set(Field::SmemSoffset, code.into())
            }
            _ => Err(inst.misfit(i, "an offset is an immediate or a scalar register")),
        }
    }
}

/// The bits of an immediate of 16 bits, signed or not.
fn immediate(value: i32) -> Option<u32> {
    (-0x8000..0x1_0000).contains(&value).then_some(value.cast_unsigned() & 0xFFFF)
}

/// Formats whose operands are vectors of 64 lanes.
pub(crate) const fn is_vector(format: Format) -> bool {
    !matches!(format, Format::Sop1 | Format::Sopc | Format::Sopp | Format::Sopk | Format::Sop2 | Format::Smem)
}
