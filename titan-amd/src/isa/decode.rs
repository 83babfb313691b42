//! Decodes words to instructions.
//!
//! The format is recognised by its fixed bits, the row by opcode and by the fields that the row fixes; then every bit
//! that is set must belong to an operand or a modifier. Nothing is guessed: an encoding that the tables do not have is an error.

use super::encode::is_vector;
use super::error::IsaError;
use super::format::{DPP, Field, Format, LITERAL, SDWA};
use super::inst::{Inst, sign_extend};
use super::operand::{Inline, InlineFloat, Operand, Special, VCC};
use super::row::{Arg, Class, Form, Row};
use super::tables;
use std::sync::OnceLock;

/// The rows by format and opcode.
struct Index {
    rows: Vec<Vec<&'static Row>>,
}

const OPS: usize = 1024;

fn slot(format: Format, op: u32) -> usize {
    format as usize * OPS + op as usize
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut rows = vec![Vec::new(); Format::ALL.len() * OPS];
        for row in tables::all() {
            if let Some(slot) = rows.get_mut(slot(row.format, row.op.into())) {
                slot.push(row);
            }
        }
        // Rows that fix more fields are tried first.
        rows.iter_mut().for_each(|r| r.sort_by_key(|r| std::cmp::Reverse(r.fixed.len())));
        Index { rows }
    })
}

/// A decoded instruction, and its size in bytes.
pub type Decoded = (Inst, usize);

/// Decodes the instruction at the start of the bytes.
///
/// # Errors
/// [`IsaError::Unknown`], [`IsaError::Cut`], [`IsaError::Reserved`], [`IsaError::Operand`].
pub fn decode(bytes: &[u8]) -> Result<Decoded, IsaError> {
    let word = |i: usize| -> Result<u32, IsaError> {
        let word = bytes.get(4 * i..4 * i + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
        word.map(u32::from_le_bytes).ok_or(IsaError::Cut { have: bytes.len() })
    };
    let first = word(0)?;
    let unknown = IsaError::Unknown { word: first };
    for format in Format::ALL {
        let spec = format.spec();
        if spec.fixed.0.get(first.into()) != spec.fixed.1 {
            continue;
        }
        let (form, candidates) = candidates(format, first);
        if candidates.is_empty() {
            continue;
        }
        let appended = matches!(form, Form::Sdwa | Form::Dpp);
        let words = usize::from(spec.words) + usize::from(appended);
        let second = if words == 2 { word(1)? } else { 0 };
        let bits = u64::from(second) << 32 | u64::from(first);
        for row in candidates {
            if row.format_in(form) != format || !row.has_form(form) || !fixed(row, form, bits) {
                continue;
            }
            let mut decoder = Decoder {
                inst: Inst::bare(row, form, Vec::new()),
                bits,
                used: 0,
                literal: word(words).ok(),
                size: words,
            };
            decoder.run(bytes.len())?;
            return Ok((decoder.inst, 4 * decoder.size));
        }
    }
    Err(unknown)
}

/// The encoding of a word in a format, and the rows with its opcode.
fn candidates(format: Format, word: u32) -> (Form, Vec<&'static Row>) {
    let get = |f: Format, op: u32| index().rows.get(slot(f, op)).map_or(&[][..], Vec::as_slice).to_vec();
    let Some(op) = format.bits(Field::Op).map(|b| b.get(word.into())) else { return (Form::Base, Vec::new()) };
    match format {
        Format::Vop1 | Format::Vop2 | Format::Vopc => {
            let src0 = format.bits(Field::Src0).map_or(0, |b| b.get(word.into()));
            let form = match src0 {
                SDWA => Form::Sdwa,
                DPP => Form::Dpp,
                _ => Form::Base,
            };
            (form, get(format, op))
        }
        // The opcodes of VOP3 are those of VOPC, VOP2 and VOP1, and then its own.
        Format::Vop3a | Format::Vop3b => match op {
            0..0x100 => (Form::E64, get(Format::Vopc, op)),
            0x100..0x140 => (Form::E64, get(Format::Vop2, op - 0x100)),
            0x140..0x1C0 => (Form::E64, get(Format::Vop1, op - 0x140)),
            _ => (Form::Base, get(format, op)),
        },
        _ => (Form::Base, get(format, op)),
    }
}

/// Whether the fields that a row fixes have their values.
fn fixed(row: &'static Row, form: Form, bits: u64) -> bool {
    let inst = Inst::bare(row, form, Vec::new());
    row.fixed.iter().all(|(f, v)| inst.bits(*f).is_some_and(|b| b.get(bits) == *v))
}

struct Decoder {
    inst: Inst,
    bits: u64,
    /// The bits that have been interpreted.
    used: u64,
    literal: Option<u32>,
    /// The number of words so far.
    size: usize,
}

impl Decoder {
    fn run(&mut self, have: usize) -> Result<(), IsaError> {
        let row = self.inst.row();
        let spec = self.inst.format().spec();
        self.used |= spec.fixed.0.put(u32::MAX >> (32 - spec.fixed.0.len())).unwrap_or(0);
        self.take(Field::Op);
        for (field, _) in row.fixed {
            self.take(*field);
        }
        if matches!(self.inst.form(), Form::Sdwa | Form::Dpp) {
            self.take(Field::Src0);
        }
        for field in self.inst.modifiers() {
            let value = self.take(field);
            self.inst.put(field, value);
        }
        let args = row.args_in(self.inst.form());
        for (i, arg) in args.as_slice().iter().enumerate() {
            let operand = self.operand(i, *arg, have)?;
            self.inst.operands_mut().push(operand);
        }
        let rest = self.bits & !self.used;
        if rest != 0 {
            return Err(IsaError::Reserved { name: row.name, bits: rest });
        }
        // Instructions that the encoder would refuse are refused here too: registers that are not aligned, two scalar sources.
        self.inst.encode()?;
        Ok(())
    }

    /// The value of a field; 0 if the format does not have it.
    fn take(&mut self, field: Field) -> u32 {
        let Some(bits) = self.inst.bits(field) else { return 0 };
        self.used |= bits.put(u32::MAX >> (32 - bits.len())).unwrap_or(0);
        bits.get(self.bits)
    }

    fn misfit(&self, i: usize, why: &'static str) -> IsaError {
        self.inst.misfit(i, why)
    }

    fn operand(&mut self, i: usize, arg: Arg, have: usize) -> Result<Operand, IsaError> {
        let n = arg.ty.dwords();
        let operand = match arg.class {
            Class::Sdst if arg.field == Field::SdwaSdst => {
                let (code, other) = (self.take(Field::SdwaSdst), self.take(Field::SdwaSd) != 0);
                if other { Operand::S(low(code), n) } else { Operand::S(VCC, n) }
            }
            Class::Sdst | Class::Smem => Operand::S(low(self.take(arg.field)), n),
            Class::Ssrc | Class::SsrcInline | Class::SrcS => {
                let code = self.take(arg.field);
                self.source(i, code, n, have)?
            }
            Class::Soffset => {
                let code = self.take(arg.field);
                self.source(i, code, 1, have)?
            }
            Class::Src | Class::SrcInline => self.vector_source(i, arg, have)?,
            Class::SrcV => self.register(i, arg, false)?,
            Class::SrcA => self.register(i, arg, true)?,
            Class::V => Operand::V(low(self.take(arg.field)), n),
            Class::A => Operand::A(low(self.take(arg.field)), n),
            Class::Va => self.file(Field::Acc, arg, n),
            Class::MatrixD => self.file(Field::AccCd, arg, n),
            Class::MatrixAb => {
                let acc = self.take(if arg.field == Field::Src0 { Field::AccA } else { Field::AccB }) != 0;
                self.register(i, arg, acc)?
            }
            Class::MatrixC => {
                let acc = self.take(Field::AccCd) != 0;
                let code = self.bits_of(arg.field);
                if code >= 256 { self.register(i, arg, acc)? } else { self.matrix_constant(i, arg, have)? }
            }
            Class::Vcc => Operand::VCC,
            Class::Literal => self.literal(i, have)?,
            Class::Sbase => Operand::S(low(self.take(arg.field) * 2), n),
            Class::Srsrc => Operand::S(low(self.take(arg.field) * 4), n),
            Class::Simm | Class::Branch => Operand::Imm(sign_extend(self.take(arg.field), 16)),
            Class::Hex | Class::Uimm | Class::Waitcnt | Class::Hwreg | Class::Message => {
                Operand::Imm(self.take(arg.field).cast_signed())
            }
            Class::IndexMode => match self.take(arg.field) {
                mode @ 0..=15 => Operand::Imm(mode.cast_signed()),
                _ => return Err(self.misfit(i, "there are four operands that can be indexed")),
            },
            Class::SmemOffset => self.smem_offset(i)?,
            Class::BufferAddr => {
                let count = self.inst.get(Field::Offen) + self.inst.get(Field::Idxen);
                let first = low(self.take(arg.field));
                match count {
                    0 if first == 0 => Operand::Off,
                    0 => return Err(self.misfit(i, "a register where none is read")),
                    _ => Operand::V(first, low(count)),
                }
            }
            Class::GlobalAddr => {
                let base = self.bits_of(Field::Saddr);
                Operand::V(low(self.take(arg.field)), if base == 0x7F { 2 } else { 1 })
            }
            Class::GlobalBase | Class::ScratchBase => match self.take(arg.field) {
                0x7F => Operand::Off,
                code => Operand::S(low(code), if arg.class == Class::GlobalBase { 2 } else { 1 }),
            },
            Class::ScratchAddr => {
                let used = self.take(Field::Lve) != 0;
                match (used, low(self.take(arg.field))) {
                    (true, first) => Operand::V(first, 1),
                    (false, 0) => Operand::Off,
                    (false, _) => return Err(self.misfit(i, "a register where none is read")),
                }
            }
        };
        Ok(operand)
    }

    fn bits_of(&self, field: Field) -> u32 {
        self.inst.bits(field).map_or(0, |b| b.get(self.bits))
    }

    fn file(&mut self, bit: Field, arg: Arg, n: u8) -> Operand {
        let first = low(self.take(arg.field));
        if self.take(bit) != 0 { Operand::A(first, n) } else { Operand::V(first, n) }
    }

    /// Decodes a 9-bit source that must be a register.
    fn register(&mut self, i: usize, arg: Arg, acc: bool) -> Result<Operand, IsaError> {
        let n = arg.ty.dwords();
        let code = self.take(arg.field);
        let first = code.checked_sub(256).ok_or_else(|| self.misfit(i, "only registers can stand here"))?;
        Ok(if acc { Operand::A(low(first), n) } else { Operand::V(low(first), n) })
    }

    fn vector_source(&mut self, i: usize, arg: Arg, have: usize) -> Result<Operand, IsaError> {
        let (code, n) = (self.take(arg.field), arg.ty.dwords());
        match self.inst.form() {
            Form::Dpp => Ok(Operand::V(low(code), n)),
            Form::Sdwa => {
                let scalar = self.take(if arg.field == Field::SdwaSrc0 { Field::S0 } else { Field::S1 }) != 0;
                if scalar { self.source(i, code, n, have) } else { Ok(Operand::V(low(code), n)) }
            }
            Form::Base | Form::E64 => match code.checked_sub(256) {
                Some(first) => Ok(Operand::V(low(first), n)),
                None => self.source(i, code, n, have),
            },
        }
    }

    fn matrix_constant(&mut self, i: usize, arg: Arg, have: usize) -> Result<Operand, IsaError> {
        let code = self.take(arg.field);
        match self.source(i, code, arg.ty.dwords(), have)? {
            constant @ Operand::Inline(_) => Ok(constant),
            _ => Err(self.misfit(i, "only registers and constants can stand here")),
        }
    }

    /// Decodes a scalar register or constant.
    fn source(&mut self, i: usize, code: u32, n: u8, have: usize) -> Result<Operand, IsaError> {
        Ok(match code {
            0..128 => Operand::S(low(code), n),
            128..=192 => Operand::Inline(Inline::Int(low(code - 128).cast_signed())),
            193..=208 => Operand::Inline(Inline::Int(-low(code - 192).cast_signed())),
            LITERAL => self.literal(i, have)?,
            _ => match (InlineFloat::from_code(code), Special::from_code(code)) {
                (Some(float), _) => Operand::Inline(Inline::Float(float)),
                (_, Some(special)) => Operand::Special(special),
                (None, None) => return Err(self.misfit(i, "the code stands for nothing")),
            },
        })
    }

    fn literal(&mut self, i: usize, have: usize) -> Result<Operand, IsaError> {
        let spec = self.inst.format().spec();
        if spec.words != 1 || (is_vector(self.inst.format()) && self.inst.form() != Form::Base) {
            return Err(self.misfit(i, "the encoding has no literals"));
        }
        let value = self.literal.ok_or(IsaError::Cut { have })?;
        self.size = usize::from(spec.words) + 1;
        Ok(Operand::Literal(value))
    }

    /// ISA §8.2.1.1: the table of `IMM` and `SOE`.
    fn smem_offset(&mut self, i: usize) -> Result<Operand, IsaError> {
        // The offset was decoded as a modifier, which it is only together with a register; `SOE` is one only if the offset is 0.
        let offset = self.inst.get(Field::SmemOffset);
        let (imm, soe) = (self.take(Field::Imm) != 0, self.take(Field::Soe) != 0);
        match (imm, soe) {
            (true, false) => {
                self.inst.put(Field::SmemOffset, 0);
                Ok(Operand::Imm(sign_extend(offset, 21)))
            }
            (false, false) if offset < 0x80 => {
                self.inst.put(Field::SmemOffset, 0);
                Ok(Operand::S(low(offset), 1))
            }
            (true, true) => {
                self.inst.put(Field::Soe, u32::from(offset == 0));
                Ok(Operand::S(low(self.take(Field::SmemSoffset)), 1))
            }
            // Bits that are not used.
            (false, _) => Err(self.misfit(i, "an offset is an immediate, a register, or both")),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "fields of at most 8 bits")]
const fn low(value: u32) -> u8 {
    value as u8
}
