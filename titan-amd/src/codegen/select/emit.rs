//! Instructions whose operands are sources of any kind: what an encoding does not allow is moved to a register first.
//!
//! Source of the limits: ISA §6.2.1 "Limitations" (a vector instruction reads at most one scalar register or literal, and those of 64
//! bits no literal), §5.2 "Scalar ALU Operands" (one literal).

use super::{Select, Src};
use crate::codegen::error::{Done, Fault};
use crate::codegen::machine_ir::{File, Inst, Kind, Operand, Part};
use crate::isa::{
    Access, Arg, Class, Elem, Field, Form, Format, Implicit, Inline, InlineFloat, Operand as Isa, Row, Ty,
};

/// The bits that are read over the one path for scalar registers and literals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bus {
    Part(Part),
    Isa(Isa),
    Literal(u32),
}

impl Select<'_> {
    /// Adds an instruction with operands that fit, in the encoding of the row.
    pub(super) fn row(&mut self, name: &'static str, operands: &[Operand]) -> Done {
        self.full(name, Form::Base, operands, &[])
    }

    /// Adds an instruction with operands that fit.
    pub(super) fn full(&mut self, name: &'static str, form: Form, operands: &[Operand], mods: &[(Field, u32)]) -> Done {
        let row = row_of(name, operands.len())?;
        let kind = Kind::Row { row, form, mods: mods.to_vec() };
        self.push(Inst { kind, operands: operands.to_vec(), loc: self.loc, added: false });
        Ok(())
    }

    /// Adds a scalar instruction.
    pub(super) fn salu(&mut self, name: &'static str, to: Option<Operand>, srcs: &[Src]) -> Done {
        let row = row_of(name, srcs.len() + usize::from(to.is_some()))?;
        let args: Vec<Arg> = row.args().iter().copied().skip(usize::from(to.is_some())).collect();
        let mut operands: Vec<Operand> = to.into_iter().collect();
        let mut literal = None;
        for (arg, src) in args.iter().zip(srcs) {
            operands.push(self.scalar_operand(*arg, *src, &mut literal)?);
        }
        self.row(name, &operands)
    }

    /// Adds a scalar instruction with one result in a new register.
    pub(super) fn salu_new(&mut self, name: &'static str, words: u8, srcs: &[Src]) -> Result<Part, Fault> {
        let out = self.fresh(File::S, words);
        self.salu(name, Some(out.into()), srcs)?;
        Ok(out)
    }

    fn scalar_operand(&mut self, arg: Arg, src: Src, literal: &mut Option<u32>) -> Result<Operand, Fault> {
        Ok(match src {
            Src::Isa(isa) => isa.into(),
            Src::S(part) => part.into(),
            Src::V(part) => self.first_lane(part)?.into(),
            Src::Bits(bits) => match inline(bits, arg.ty) {
                Some(inline) => inline.into(),
                None if arg.ty.bits() == 64 => self.scalar_constant(bits, 2)?.into(),
                None => {
                    let word = low(bits);
                    if *literal.get_or_insert(word) == word {
                        Isa::Literal(word).into()
                    } else {
                        self.scalar_constant(bits, 1)?.into()
                    }
                }
            },
        })
    }

    /// A constant in new scalar registers.
    pub(super) fn scalar_constant(&mut self, bits: u64, words: u8) -> Result<Part, Fault> {
        if words == 1 {
            return self.salu_new("s_mov_b32", 1, &[Src::Bits(bits)]);
        }
        let out = self.pieces(File::S, words);
        for n in 0..words {
            self.salu("s_mov_b32", Some(out.word(n).into()), &[Src::Bits(bits).word(n)])?;
        }
        Ok(out)
    }

    /// Words that are the same in all active lanes, read from the first of them.
    pub(super) fn first_lane(&mut self, part: Part) -> Result<Part, Fault> {
        if part.words == 1 {
            let out = self.fresh(File::S, 1);
            self.row("v_readfirstlane_b32", &[out.into(), part.into()])?;
            return Ok(out);
        }
        let out = self.pieces(File::S, part.words);
        for n in 0..part.words {
            self.row("v_readfirstlane_b32", &[out.word(n).into(), part.word(n).into()])?;
        }
        Ok(out)
    }

    /// A source in scalar registers.
    pub(super) fn in_scalar(&mut self, src: Src, words: u8) -> Result<Part, Fault> {
        match src {
            Src::S(part) => Ok(part),
            Src::V(part) => self.first_lane(part),
            Src::Bits(bits) => self.scalar_constant(bits, words),
            Src::Isa(_) if words == 1 => self.salu_new("s_mov_b32", 1, &[src]),
            Src::Isa(_) => self.salu_new("s_mov_b64", 2, &[src]),
        }
    }

    /// A source in vector registers.
    pub(super) fn in_vector(&mut self, src: Src, words: u8) -> Result<Part, Fault> {
        if let Src::V(part) = src {
            return Ok(part);
        }
        if words == 1 {
            let out = self.fresh(File::V, 1);
            self.move_word(out, src)?;
            return Ok(out);
        }
        let out = self.pieces(File::V, words);
        for n in 0..words {
            self.move_word(out.word(n), src.word(n))?;
        }
        Ok(out)
    }

    /// Moves one word to a vector register.
    pub(super) fn move_word(&mut self, to: Part, src: Src) -> Done {
        self.valu("v_mov_b32", &[to.into()], &[src], &[])
    }

    /// Moves words to a vector register, two at once where both are 0.
    pub(super) fn move_words(&mut self, to: Part, words: &[Src]) -> Done {
        let mut at = 0;
        for pair in words.chunks(2) {
            if pair == [Src::Bits(0); 2] {
                self.valu("v_mov_b64", &[to.slice(at, 2).into()], &[Src::Bits(0)], &[])?;
            } else {
                for (n, word) in (at..).zip(pair) {
                    self.move_word(to.word(n), *word)?;
                }
            }
            at += 2;
        }
        Ok(())
    }

    /// Moves one word to a scalar register.
    pub(super) fn move_scalar(&mut self, to: Part, src: Src) -> Done {
        self.salu("s_mov_b32", Some(to.into()), &[src])
    }

    /// Two words as one value in vector registers.
    pub(super) fn pair(&mut self, low: Src, high: Src) -> Result<Part, Fault> {
        let out = self.pieces(File::V, 2);
        self.move_word(out.word(0), low)?;
        self.move_word(out.word(1), high)?;
        Ok(out)
    }

    /// Adds a vector instruction with one result in a new vector register.
    pub(super) fn valu_new(&mut self, name: &'static str, words: u8, srcs: &[Src]) -> Result<Part, Fault> {
        let out = self.fresh(File::V, words);
        self.valu(name, &[out.into()], srcs, &[])?;
        Ok(out)
    }

    /// Adds a vector instruction with one result in a new vector register; the sources of which a bit of `neg` is set are negated.
    pub(super) fn negated(&mut self, name: &'static str, words: u8, srcs: &[Src], neg: u32) -> Result<Part, Fault> {
        let out = self.fresh(File::V, words);
        self.valu(name, &[out.into()], srcs, &[(Field::Neg, neg)])?;
        Ok(out)
    }

    /// Adds a comparison of lanes, whose result is a new mask.
    pub(super) fn compare_new(&mut self, name: &'static str, srcs: [Src; 2]) -> Result<Part, Fault> {
        let out = self.fresh(File::S, 2);
        self.valu(name, &[out.into()], &srcs, &[])?;
        Ok(out)
    }

    /// `yes` in the lanes of a mask, else `no`: one word in a new register.
    pub(super) fn choose(&mut self, mask: Part, yes: Src, no: Src) -> Result<Part, Fault> {
        self.valu_new("v_cndmask_b32", 1, &[no, yes, Src::S(mask)])
    }

    /// Adds a vector instruction.
    pub(super) fn valu(&mut self, name: &'static str, to: &[Operand], srcs: &[Src], mods: &[(Field, u32)]) -> Done {
        let row = row_of(name, to.len() + srcs.len())?;
        let short = matches!(row.format, Format::Vop1 | Format::Vop2 | Format::Vopc);
        let mask = row.args().iter().any(|a| a.class == Class::Vcc);
        let second = match (row.format, srcs) {
            (Format::Vop2, [_, second, ..]) => is_vector(*second),
            _ => true,
        };
        let plain = short && !mask && second && mods.is_empty();
        let form = if plain || !short { Form::Base } else { Form::E64 };
        let args = row.args_in(form);
        let args = args.as_slice().get(to.len()..).unwrap_or_default().to_vec();
        let mut bus = row.reads.has(Implicit::VCC).then_some(Bus::Isa(Isa::VCC));
        for (arg, src) in args.iter().zip(srcs) {
            if let (Class::SrcS, Src::S(part)) = (arg.class, src) {
                bus = Some(Bus::Part(*part));
            }
        }
        let mut operands = to.to_vec();
        for (arg, src) in args.iter().zip(srcs) {
            operands.push(self.vector_operand(*arg, *src, &mut bus)?);
        }
        self.full(name, form, &operands, mods)
    }

    fn vector_operand(&mut self, arg: Arg, src: Src, bus: &mut Option<Bus>) -> Result<Operand, Fault> {
        let words = arg.ty.dwords();
        if matches!(arg.class, Class::V | Class::SrcV | Class::Va) || arg.access != Access::Read {
            return Ok(match src {
                Src::Isa(isa @ Isa::V(..)) => isa.into(),
                Src::S(_) | Src::V(_) | Src::Bits(_) | Src::Isa(_) => self.in_vector(src, words)?.into(),
            });
        }
        let take = |bus: &mut Option<Bus>, what| *bus.get_or_insert(what) == what;
        match src {
            Src::V(part) => return Ok(part.into()),
            Src::Isa(isa @ Isa::V(..)) => return Ok(isa.into()),
            Src::Isa(isa) if take(bus, Bus::Isa(isa)) => return Ok(isa.into()),
            Src::S(part) if take(bus, Bus::Part(part)) => return Ok(part.into()),
            Src::Bits(bits) => {
                if let Some(inline) = inline(bits, arg.ty) {
                    return Ok(inline.into());
                }
                if arg.class == Class::SrcS {
                    return Ok(self.scalar_constant(bits, words)?.into());
                }
                let literal = arg.class == Class::Src && words == 1;
                if literal && take(bus, Bus::Literal(low(bits))) {
                    return Ok(Isa::Literal(low(bits)).into());
                }
            }
            Src::S(_) | Src::Isa(_) => {}
        }
        Ok(self.in_vector(src, words)?.into())
    }
}

const fn is_vector(src: Src) -> bool {
    matches!(src, Src::V(_) | Src::Isa(Isa::V(..)))
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is what is meant")]
pub(super) const fn low(bits: u64) -> u32 {
    bits as u32
}

/// The row of a mnemonic with this number of operands: atomics with and without a result differ in it.
fn row_of(name: &'static str, operands: usize) -> Result<&'static Row, Fault> {
    let rows = crate::isa::by_name(name);
    let found = rows.iter().find(|row| row.args().len() == operands);
    found.copied().ok_or_else(|| Fault::Defect(format!("no `{name}` with {operands} operands")))
}

/// Whether a constant is an operand of scalar instructions without a literal: a small number.
pub(super) const fn is_inline(bits: u64) -> bool {
    bits <= 64
}

/// The constant that an instruction can have without a register or literal: ISA §5.2, the codes from 128 on. An integer is extended to
/// the width of the operand; a number has the format of the operand.
fn inline(bits: u64, ty: Ty) -> Option<Isa> {
    let width = ty.bits();
    let signed = match width {
        64 => bits.cast_signed(),
        32 => i64::from(low(bits).cast_signed()),
        // Of a wider or narrower operand only the bits that it has count: the shift cuts the others off.
        _ => (bits << (64 - width.min(63))).cast_signed() >> (64 - width.min(63)),
    };
    if let Ok(value @ -16..=64) = i8::try_from(signed) {
        return Some(Isa::Inline(Inline::Int(value)));
    }
    let value = match (width, ty.elem) {
        (64, Elem::F(64)) => f64::from_bits(bits),
        // An operand of 32 bits that is no number has the bits of one: ISA §5.2, the codes of floats.
        (32, _) => f64::from(f32::from_bits(low(bits))),
        _ => return None,
    };
    let known = [
        InlineFloat::Half,
        InlineFloat::MinusHalf,
        InlineFloat::One,
        InlineFloat::MinusOne,
        InlineFloat::Two,
        InlineFloat::MinusTwo,
        InlineFloat::Four,
        InlineFloat::MinusFour,
    ];
    known.into_iter().find(|one| one.value().to_bits() == value.to_bits()).map(|one| Isa::Inline(Inline::Float(one)))
}
