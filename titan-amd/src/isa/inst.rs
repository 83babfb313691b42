//! Instructions: a row, an encoding, operands, and the fields of modifiers.

use super::error::IsaError;
use super::format::{Bits, DPP_FIELDS, Field, Format, SDWA_FIELDS, SDWAB_FIELDS};
use super::operand::{EXEC, Inline, M0, Operand};
use super::row::{Access, Arg, Class, Form, Implicit, Mods, Row};
use std::fmt;

/// An instruction.
#[derive(Clone, PartialEq, Eq)]
pub struct Inst {
    row: &'static Row,
    form: Form,
    operands: Vec<Operand>,
    /// The fields of modifiers that are not zero, in the order of fields.
    mods: Vec<(Field, u32)>,
}

impl fmt::Debug for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Inst {
    /// Creates an instruction with default modifiers.
    ///
    /// # Errors
    /// [`IsaError`], if the row has no such encoding or the operands do not fit it.
    pub fn new(row: &'static Row, form: Form, operands: Vec<Operand>) -> Result<Inst, IsaError> {
        let inst = Inst::unchecked(row, form, operands);
        inst.encode()?;
        Ok(inst)
    }

    /// Creates an instruction without checks; encoding checks it.
    pub(crate) fn unchecked(row: &'static Row, form: Form, operands: Vec<Operand>) -> Inst {
        let mut inst = Inst { row, form, operands, mods: Vec::new() };
        for (field, value) in inst.defaults() {
            inst.put(field, value);
        }
        inst
    }

    pub(crate) const fn bare(row: &'static Row, form: Form, operands: Vec<Operand>) -> Inst {
        Inst { row, form, operands, mods: Vec::new() }
    }

    /// The same instruction with a field of its modifiers set.
    ///
    /// # Errors
    /// [`IsaError`], if it has no such modifier, or the value is too large.
    pub fn with(mut self, field: Field, value: u32) -> Result<Inst, IsaError> {
        self.put(field, value);
        self.encode()?;
        Ok(self)
    }

    pub(crate) fn put(&mut self, field: Field, value: u32) {
        self.mods.retain(|(f, _)| *f != field);
        if value != 0 {
            let at = self.mods.partition_point(|(f, _)| *f < field);
            self.mods.insert(at, (field, value));
        }
    }

    /// The row of the instruction.
    #[must_use]
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// The encoding of the instruction.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The operands, in the order of the row's.
    #[must_use]
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    pub(crate) fn operands_mut(&mut self) -> &mut Vec<Operand> {
        &mut self.operands
    }

    /// The operands, with their descriptions in the row.
    pub fn args(&self) -> impl Iterator<Item = (Arg, Operand)> + '_ {
        let args = self.row.args_in(self.form);
        let operands = self.operands.iter().enumerate();
        operands.filter_map(move |(i, o)| args.as_slice().get(i).map(|a| (*a, *o)))
    }

    /// The value of a field of the modifiers; 0 if the instruction does not have it.
    #[must_use]
    pub fn get(&self, field: Field) -> u32 {
        self.mods.iter().find(|(f, _)| *f == field).map_or(0, |(_, v)| *v)
    }

    /// The fields of the modifiers that are not zero.
    #[must_use]
    pub fn mods(&self) -> &[(Field, u32)] {
        &self.mods
    }

    /// The format of the instruction.
    #[must_use]
    pub fn format(&self) -> Format {
        self.row.format_in(self.form)
    }

    /// The size of the instruction in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        let literal = self.operands.iter().any(|o| matches!(o, Operand::Literal(_)));
        let appended = matches!(self.form, Form::Sdwa | Form::Dpp);
        4 * (u64::from(self.format().spec().words) + u64::from(literal) + u64::from(appended))
    }

    /// The bits of a field in the encoding.
    pub(crate) fn bits(&self, field: Field) -> Option<Bits> {
        let find = |fields: &[(Field, Bits)]| fields.iter().find(|(f, _)| *f == field).map(|(_, b)| *b);
        let appended = match (self.form, self.row.format) {
            (Form::Sdwa, Format::Vopc) => find(SDWAB_FIELDS),
            (Form::Sdwa, _) => find(SDWA_FIELDS),
            (Form::Dpp, _) => find(DPP_FIELDS),
            (Form::Base | Form::E64, _) => None,
        };
        appended.or_else(|| self.format().bits(field))
    }

    /// The byte offset of a memory operation, signed in the formats that sign it.
    #[must_use]
    pub fn offset(&self) -> i32 {
        let (field, signed) = match self.row.format {
            Format::Smem => (Field::SmemOffset, true),
            Format::Global | Format::Scratch => (Field::Offset, true),
            _ => (Field::Offset, false),
        };
        let raw = self.get(field);
        self.bits(field).filter(|_| signed).map_or(raw.cast_signed(), |b| sign_extend(raw, b.len()))
    }

    /// The default values of modifiers.
    pub(crate) fn defaults(&self) -> Vec<(Field, u32)> {
        let mods = self.row.mods;
        match self.form {
            Form::Sdwa => {
                let two = self.row.args_in(self.form).as_slice().iter().any(|a| a.field == Field::Vsrc1);
                let dst = (self.row.format != Format::Vopc).then_some((Field::DstSel, DWORD));
                let second = two.then_some((Field::Src1Sel, DWORD));
                [Some((Field::Src0Sel, DWORD)), dst, second].into_iter().flatten().collect()
            }
            Form::Dpp => {
                let ctrl = if mods.has(Mods::DPP64) { 0x150 } else { QUAD_IDENTITY };
                vec![(Field::DppCtrl, ctrl), (Field::BankMask, 15), (Field::RowMask, 15)]
            }
            Form::Base | Form::E64 if mods.has(Mods::OP_SEL_HI) && !self.row.is_mix() => {
                vec![(Field::OpSelHi, 3), (Field::OpSelHi2, 1)]
            }
            Form::Base | Form::E64 => Vec::new(),
        }
    }

    /// The fields that modifiers of the instruction may set.
    #[must_use]
    pub fn modifiers(&self) -> Vec<Field> {
        let mods = self.row.mods;
        let is = |m: Mods, fields: &[Field]| if mods.has(m) { fields.to_vec() } else { Vec::new() };
        let mut all = Vec::new();
        match self.form {
            Form::Sdwa => return self.sdwa_modifiers(),
            Form::Dpp => {
                all.extend([Field::DppCtrl, Field::BoundCtrl, Field::BankMask, Field::RowMask]);
                let fields = [(Field::DppSrc0Neg, Field::DppSrc0Abs), (Field::DppSrc1Neg, Field::DppSrc1Abs)];
                for ((_, neg), (n, a)) in self.sources().iter().zip(fields) {
                    all.extend(if *neg { vec![n, a] } else { Vec::new() });
                }
                return all;
            }
            Form::Base if matches!(self.row.format, Format::Vop1 | Format::Vop2 | Format::Vopc) => return all,
            Form::Base | Form::E64 => {}
        }
        all.extend(is(Mods::CLAMP, &[Field::Clamp]));
        all.extend(is(Mods::OMOD, &[Field::Omod]));
        all.extend(is(Mods::OP_SEL, &[Field::OpSel]));
        all.extend(is(Mods::OP_SEL_HI, &[Field::OpSel, Field::OpSelHi, Field::OpSelHi2]));
        all.extend(is(Mods::NEG_LO, &[Field::Neg]));
        all.extend(is(Mods::NEG_HI, &[Field::NegHi]));
        all.extend(is(Mods::BROADCAST, &[Field::Cbsz, Field::Abid]));
        all.extend(is(Mods::BLGP, &[Field::Blgp]));
        all.extend(is(Mods::MATRIX_NEG, &[Field::Blgp]));
        all.extend(is(Mods::OFFSET, &[Field::Offset, Field::Offset0, Field::Offset1, Field::SmemOffset, Field::Soe]));
        all.extend(is(Mods::SWIZZLE, &[Field::Offset0, Field::Offset1]));
        all.extend(is(Mods::OFFSET2, &[Field::Offset0, Field::Offset1]));
        all.extend(is(Mods::CACHE, &[Field::Sc0, Field::Nt, Field::Sc1]));
        all.extend(is(Mods::SCOPES, &[Field::Sc0, Field::Sc1]));
        all.extend(is(Mods::CACHE_ATOMIC, &[Field::Nt, Field::Sc1]));
        all.extend(is(Mods::BUFFER, &[Field::Offen, Field::Idxen]));
        all.extend(is(Mods::GLC, &[Field::Glc]));
        if matches!(self.format(), Format::Vop3a | Format::Vop3b) && self.sources().iter().any(|(_, neg)| *neg) {
            all.push(Field::Neg);
            all.extend((self.format() == Format::Vop3a).then_some(Field::Abs));
        }
        all
    }

    fn sdwa_modifiers(&self) -> Vec<Field> {
        let mods = self.row.mods;
        let mut all = vec![Field::Src0Sel];
        if mods.has(Mods::SDWA_SOURCE) {
            all.push(Field::DstSel);
            return all;
        }
        if self.row.format != Format::Vopc {
            all.extend([Field::DstSel, Field::DstUnused, Field::Clamp]);
            all.extend(mods.has(Mods::OMOD).then_some(Field::Omod));
        }
        let fields =
            [(Field::Src0Neg, Field::Src0Abs, Field::Src0Sext), (Field::Src1Neg, Field::Src1Abs, Field::Src1Sext)];
        let sources = self.sources();
        for ((_, neg), (n, a, s)) in sources.iter().zip(fields) {
            all.extend(if *neg { vec![n, a] } else { vec![s] });
        }
        all.extend((sources.len() > 1).then_some(Field::Src1Sel));
        all
    }

    /// The index of each vector source among the operands, and whether `-x` and `|x|` apply to it.
    pub(crate) fn sources(&self) -> Vec<(usize, bool)> {
        let args = self.row.args_in(self.form);
        let mut n = 0;
        let mut all = Vec::new();
        for (i, arg) in args.as_slice().iter().enumerate() {
            let source = !matches!(arg.class, Class::Vcc | Class::Literal | Class::SrcS | Class::SrcA)
                && arg.access == Access::Read;
            if source {
                all.push((i, self.row.negatable(n, arg.ty)));
                n += 1;
            }
        }
        all
    }

    /// Checks that at most one scalar register or literal is read: ISA §6.2.1, "Limitations". `m0` as the lane of `v_writelane` is
    /// not read over the constant bus (LLVM: `V_WRITELANE_B32` with a scalar source takes its lane from `m0`).
    pub(crate) fn check_constant_bus(&self) -> Result<(), IsaError> {
        let vector = matches!(
            self.format(),
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3a | Format::Vop3b | Format::Vop3p
        );
        let mut first = self.row.reads.has(Implicit::VCC).then_some(Operand::VCC).filter(|_| vector);
        for (i, (arg, operand)) in self.args().enumerate() {
            let read = match operand {
                _ if !vector || arg.access == Access::Write => continue,
                Operand::M0 if arg.field == Field::Src1 && self.row.name == "v_writelane_b32" => continue,
                Operand::S(code, _) if code == EXEC || code == EXEC + 1 => operand,
                Operand::S(code, n) => Operand::S(code, if code == M0 { 1 } else { n }),
                Operand::Literal(_) | Operand::Special(_) => operand,
                Operand::V(..) | Operand::A(..) | Operand::Inline(_) | Operand::Imm(_) | Operand::Off => continue,
            };
            if *first.get_or_insert(read) != read {
                return Err(self.misfit(i, "a vector instruction reads at most one scalar register or literal"));
            }
        }
        Ok(())
    }

    /// Checks that a large matrix instruction reads its accumulator from its destination or from other registers: LLVM's rule on gfx90a
    /// and later, because results are written while later rows of the accumulator are still read.
    pub(crate) fn check_overlap(&self) -> Result<(), IsaError> {
        let find = |class| self.args().position(|(a, _)| a.class == class);
        let at = (find(Class::MatrixD), find(Class::MatrixC));
        let (Some(d), Some(c)) = at else { return Ok(()) };
        let wrong = match (self.operands.get(d), self.operands.get(c)) {
            (Some(Operand::V(d, n)), Some(Operand::V(c, _))) | (Some(Operand::A(d, n)), Some(Operand::A(c, _))) => {
                *n > 4 && d != c && d.abs_diff(*c) < *n
            }
            _ => false,
        };
        if wrong { Err(self.misfit(c, "the accumulator overlaps the result without being the same")) } else { Ok(()) }
    }

    /// Checks that the values of modifiers are defined.
    pub(crate) fn check_parts(&self) -> Result<(), IsaError> {
        let modifier = |modifier: &str| Err(IsaError::Modifier { name: self.row.name, modifier: modifier.to_owned() });
        match self.form {
            Form::Sdwa => {
                let selects = [Field::DstSel, Field::Src0Sel, Field::Src1Sel].map(|f| self.get(f));
                let source_only = self.row.mods.has(Mods::SDWA_SOURCE) && self.get(Field::DstSel) != DWORD;
                if selects.iter().any(|s| *s > DWORD) || self.get(Field::DstUnused) > 2 || source_only {
                    return modifier("a part of a register that there is not");
                }
            }
            Form::Dpp => {
                let ctrl = self.get(Field::DppCtrl);
                let known = super::print::DPP_SHIFTS.iter().any(|(b, lo, hi, _)| (b + lo..=b + hi).contains(&ctrl))
                    || super::print::DPP_NAMES.iter().any(|(code, _)| *code == ctrl)
                    || ctrl < 256;
                if !known || (self.row.mods.has(Mods::DPP64) && ctrl & 0x1F0 != 0x150) {
                    return modifier("this way across lanes");
                }
            }
            Form::Base | Form::E64 => return self.check_modifiers(),
        }
        Ok(())
    }

    /// Checks that modifiers refer to existing sources, and are in the range of the format.
    fn check_modifiers(&self) -> Result<(), IsaError> {
        let sources = self.sources();
        let of = |chosen: fn(bool) -> bool| {
            (0..).zip(&sources).fold(0, |all, (i, (_, negatable))| all | u32::from(chosen(*negatable)) << i)
        };
        let (there, negatable) = (of(|_| true), of(|negatable| negatable));
        let set = |field, allowed: u32| self.get(field) & !allowed != 0;
        let wrong = match self.format() {
            Format::Vop3a | Format::Vop3b => {
                // The last bit is the destination's; stochastic conversions select one of four parts by two bits.
                let halves = if self.row.name.starts_with("v_cvt_sr") { 15 } else { there | 8 };
                (set(Field::Neg, negatable) || set(Field::Abs, negatable) || set(Field::OpSel, halves))
                    .then_some("a sign or half of a source that it does not have")
            }
            Format::Vop3p => (set(Field::Neg, there) || set(Field::NegHi, there) || set(Field::OpSel, there))
                .then_some("a sign or half of a source that it does not have"),
            // ISA §13.6: 12 bits without a sign, where addresses are generic.
            Format::Flat => set(Field::Offset, 0xFFF).then_some("an offset below 0 or beyond 4095"),
            Format::Sop1
            | Format::Sop2
            | Format::Sopc
            | Format::Sopk
            | Format::Sopp
            | Format::Smem
            | Format::Vop1
            | Format::Vop2
            | Format::Vopc
            | Format::Mai
            | Format::Ds
            | Format::Global
            | Format::Scratch
            | Format::Mubuf => None,
        };
        wrong.map_or(Ok(()), |m| Err(IsaError::Modifier { name: self.row.name, modifier: m.to_owned() }))
    }

    /// The error for an operand that does not fit.
    pub(crate) fn misfit(&self, index: usize, why: &'static str) -> IsaError {
        IsaError::Operand { name: self.row.name, index, why }
    }
}

/// DPP: each lane of a quad gets its own value.
const QUAD_IDENTITY: u32 = 0xE4;
/// SDWA: the whole register.
pub(crate) const DWORD: u32 = 6;

impl Row {
    /// Whether it is a mixed-precision instruction (`v_fma_mix`), whose halves are selected differently.
    #[must_use]
    pub fn is_mix(&self) -> bool {
        self.name.starts_with("v_fma_mix")
    }

    /// Whether the `n`-th vector source may be negated and made absolute.
    pub(crate) const fn negatable(&self, n: usize, ty: super::ty::Ty) -> bool {
        if self.mods.has(Mods::NO_NEG) || (self.mods.has(Mods::FIRST_NEG_ONLY) && n > 0) {
            return false;
        }
        ty.is_scalar_float() || self.mods.has(Mods::BITS_NEG)
    }
}

/// Sign-extends the lowest `n` bits of a value.
#[must_use]
pub(crate) const fn sign_extend(value: u32, n: u32) -> i32 {
    (value << (32 - n)).cast_signed() >> (32 - n)
}

/// Whether an operand is a constant that the printed text does not distinguish from a negated one.
pub(crate) const fn is_constant(operand: Operand) -> bool {
    matches!(operand, Operand::Inline(Inline::Int(_) | Inline::Float(_)) | Operand::Literal(_))
}
