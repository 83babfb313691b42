//! Prints instructions in the syntax of LLVM's assembler.
//!
//! The parser accepts the printed text. Branch distances are numbers of words; label names are a matter of
//! the code that prints a whole program.

use super::encode::is_vector;
use super::format::{Field, Format};
use super::inst::{Inst, is_constant, sign_extend};
use super::operand::{Inline, Operand, ScalarName, tuple};
use super::row::{Arg, Class, Form, Mods};
use super::ty::Elem;
use std::fmt;

/// The parts of registers, by their code in an SDWA word.
pub(crate) const SELECTS: [&str; 7] = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
/// The treatment of the rest of the destination, by its code in an SDWA word.
pub(crate) const UNUSED: [&str; 3] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];

/// Hardware registers: ISA §5.8, "Access Instructions".
pub(crate) const HWREGS: &[(u32, &str)] = &[
    (1, "HW_REG_MODE"),
    (2, "HW_REG_STATUS"),
    (3, "HW_REG_TRAPSTS"),
    (4, "HW_REG_HW_ID"),
    (5, "HW_REG_GPR_ALLOC"),
    (6, "HW_REG_LDS_ALLOC"),
    (7, "HW_REG_IB_STS"),
    (15, "HW_REG_SH_MEM_BASES"),
    (16, "HW_REG_TBA_LO"),
    (17, "HW_REG_TBA_HI"),
    (18, "HW_REG_TMA_LO"),
    (19, "HW_REG_TMA_HI"),
    (20, "HW_REG_XCC_ID"),
    (21, "HW_REG_SQ_PERF_SNAPSHOT_DATA"),
    (22, "HW_REG_SQ_PERF_SNAPSHOT_DATA1"),
    (23, "HW_REG_SQ_PERF_SNAPSHOT_PC_LO"),
    (24, "HW_REG_SQ_PERF_SNAPSHOT_PC_HI"),
];

/// The controls in `DPP_CTRL` with a number: the code of 0, the largest number, the name.
pub(crate) const DPP_SHIFTS: &[(u32, u32, u32, &str)] =
    &[(0x100, 1, 15, "row_shl"), (0x110, 1, 15, "row_shr"), (0x120, 1, 15, "row_ror"), (0x150, 0, 15, "row_newbcast")];

/// The controls without a number, or with only one.
pub(crate) const DPP_NAMES: &[(u32, &str)] = &[
    (0x130, "wave_shl:1"),
    (0x134, "wave_rol:1"),
    (0x138, "wave_shr:1"),
    (0x13C, "wave_ror:1"),
    (0x140, "row_mirror"),
    (0x141, "row_half_mirror"),
    (0x142, "row_bcast:15"),
    (0x143, "row_bcast:31"),
];

/// Counters of `s_waitcnt`: the name, and the ranges of bits from low to high (ISA §12.5, S_WAITCNT).
pub(crate) const COUNTERS: &[(&str, &[(u32, u32)])] =
    &[("vmcnt", &[(0, 4), (14, 2)]), ("expcnt", &[(4, 3)]), ("lgkmcnt", &[(8, 4)])];

/// The value of a counter in an immediate of `s_waitcnt`, and the largest value.
#[must_use]
pub(crate) fn counter(imm: u32, ranges: &[(u32, u32)]) -> (u32, u32) {
    let (mut value, mut most, mut at) = (0, 0, 0);
    for (lo, n) in ranges {
        let mask = (1 << n) - 1;
        value |= (imm >> lo & mask) << at;
        most |= mask << at;
        at += n;
    }
    (value, most)
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.row().name)?;
        match self.form() {
            Form::E64 => write!(f, "_e64")?,
            Form::Sdwa => write!(f, "_sdwa")?,
            Form::Dpp => write!(f, "_dpp")?,
            Form::Base if self.row().has_form(Form::E64) || self.row().mods.has(Mods::SUFFIX) => write!(f, "_e32")?,
            Form::Base => {}
        }
        let sources = self.sources();
        let mut first = true;
        for (i, (arg, operand)) in self.args().enumerate() {
            // A buffer operation to the local data share, or with an offset only, still prints `off`.
            write!(f, "{}", if first { " " } else { ", " })?;
            first = false;
            let source = sources.iter().position(|(at, _)| *at == i);
            self.operand(f, arg, operand, source)?;
        }
        self.modifiers_text(f)
    }
}

impl Inst {
    fn operand(&self, f: &mut fmt::Formatter<'_>, arg: Arg, operand: Operand, source: Option<usize>) -> fmt::Result {
        let Some(n) = source.filter(|_| is_vector(self.format())) else { return plain(f, arg, operand) };
        let (neg, abs, sext) = self.source_modifiers(n);
        if sext {
            write!(f, "sext(")?;
        }
        match (neg, abs) {
            (true, false) if is_constant(operand) => write!(f, "neg(")?,
            (true, _) => write!(f, "-")?,
            (false, _) => {}
        }
        if abs {
            write!(f, "|")?;
        }
        plain(f, arg, operand)?;
        if abs {
            write!(f, "|")?;
        }
        if sext || (neg && !abs && is_constant(operand)) {
            write!(f, ")")?;
        }
        Ok(())
    }

    /// Whether the `n`-th source is negated, is made absolute, and is sign-extended.
    #[must_use]
    pub fn source_modifiers(&self, n: usize) -> (bool, bool, bool) {
        let bit = |field| self.get(field) >> n & 1 == 1;
        let pick = |fields: [Field; 2]| fields.get(n).is_some_and(|f| self.get(*f) == 1);
        match self.form() {
            Form::Sdwa => (
                pick([Field::Src0Neg, Field::Src1Neg]),
                pick([Field::Src0Abs, Field::Src1Abs]),
                pick([Field::Src0Sext, Field::Src1Sext]),
            ),
            Form::Dpp => {
                (pick([Field::DppSrc0Neg, Field::DppSrc1Neg]), pick([Field::DppSrc0Abs, Field::DppSrc1Abs]), false)
            }
            Form::Base | Form::E64 if self.row().is_mix() => (bit(Field::Neg), bit(Field::NegHi), false),
            Form::Base | Form::E64 if matches!(self.format(), Format::Vop3a | Format::Vop3b) => {
                (bit(Field::Neg), bit(Field::Abs), false)
            }
            Form::Base | Form::E64 => (false, false, false),
        }
    }

    fn modifiers_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form() {
            Form::Sdwa => {
                self.output(f)?;
                return self.sdwa(f);
            }
            Form::Dpp => return self.dpp(f),
            Form::Base | Form::E64 => {}
        }
        match self.format() {
            Format::Vop3a | Format::Vop3b => {
                self.op_sel(f)?;
                self.output(f)
            }
            Format::Vop3p => {
                self.packed(f)?;
                self.output(f)
            }
            Format::Mai => self.matrix(f),
            Format::Smem => self.scalar_memory(f),
            Format::Ds => self.data_share(f),
            Format::Flat | Format::Scratch | Format::Global => {
                let offset = self.offset();
                if offset != 0 {
                    write!(f, " offset:{offset}")?;
                }
                self.cache(f)
            }
            Format::Mubuf => self.buffer(f),
            _ => Ok(()),
        }
    }

    fn output(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.get(Field::Clamp) != 0 {
            write!(f, " clamp")?;
        }
        match self.get(Field::Omod) {
            0 => Ok(()),
            1 => write!(f, " mul:2"),
            2 => write!(f, " mul:4"),
            _ => write!(f, " div:2"),
        }
    }

    fn sdwa(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let select = |field| SELECTS.get(self.get(field) as usize).copied().unwrap_or("?");
        if self.row().format != Format::Vopc && !self.row().mods.has(Mods::SDWA_SOURCE) {
            let unused = UNUSED.get(self.get(Field::DstUnused) as usize).copied().unwrap_or("?");
            write!(f, " dst_sel:{} dst_unused:{unused}", select(Field::DstSel))?;
        }
        write!(f, " src0_sel:{}", select(Field::Src0Sel))?;
        if self.sources().len() > 1 { write!(f, " src1_sel:{}", select(Field::Src1Sel)) } else { Ok(()) }
    }

    fn dpp(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ctrl = self.get(Field::DppCtrl);
        let shift = DPP_SHIFTS.iter().find(|(base, least, most, _)| (base + least..=base + most).contains(&ctrl));
        let named = DPP_NAMES.iter().find(|(code, _)| *code == ctrl);
        match (shift, named) {
            (Some((base, .., name)), _) => write!(f, " {name}:{}", ctrl - base)?,
            (None, Some((_, name))) => write!(f, " {name}")?,
            (None, None) => {
                let lane = |i: u32| ctrl >> (2 * i) & 3;
                write!(f, " quad_perm:[{},{},{},{}]", lane(0), lane(1), lane(2), lane(3))?;
            }
        }
        write!(f, " row_mask:{:#x} bank_mask:{:#x}", self.get(Field::RowMask), self.get(Field::BankMask))?;
        if self.get(Field::BoundCtrl) != 0 { write!(f, " bound_ctrl:1") } else { Ok(()) }
    }

    /// The number of elements in the lists of halves for the sources.
    pub(crate) fn halves(&self) -> usize {
        self.sources().len()
    }

    fn op_sel(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.get(Field::OpSel);
        if value == 0 {
            return Ok(());
        }
        let sources = self.row().op_sel_sources(self.halves());
        let bits = (0..sources).map(|i| value >> i & 1).chain([value >> 3 & 1]);
        list(f, "op_sel", bits)
    }

    fn packed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.halves();
        let each = |v: u32| (0..n).map(move |i| v >> i & 1);
        let high = self.get(Field::OpSelHi) | self.get(Field::OpSelHi2) << 2;
        let usual = if self.row().is_mix() { 0 } else { (1 << n) - 1 };
        if self.get(Field::OpSel) != 0 {
            list(f, "op_sel", each(self.get(Field::OpSel)))?;
        }
        if self.row().mods.has(Mods::OP_SEL_HI) && high & ((1 << n) - 1) != usual {
            list(f, "op_sel_hi", each(high))?;
        }
        if self.row().is_mix() {
            return Ok(());
        }
        if self.get(Field::Neg) != 0 {
            list(f, "neg_lo", each(self.get(Field::Neg)))?;
        }
        if self.get(Field::NegHi) != 0 { list(f, "neg_hi", each(self.get(Field::NegHi))) } else { Ok(()) }
    }

    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (field, name) in [(Field::Cbsz, "cbsz"), (Field::Abid, "abid")] {
            if self.get(field) != 0 {
                write!(f, " {name}:{}", self.get(field))?;
            }
        }
        match self.get(Field::Blgp) {
            0 => Ok(()),
            v if self.row().mods.has(Mods::MATRIX_NEG) => list(f, "neg", (0..3).map(|i| v >> i & 1)),
            v => write!(f, " blgp:{v}"),
        }
    }

    fn scalar_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset();
        if offset != 0 || self.get(Field::Soe) != 0 {
            write!(f, " offset:{}", hex(offset))?;
        }
        if self.get(Field::Glc) != 0 { write!(f, " glc") } else { Ok(()) }
    }

    fn data_share(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.get(Field::Offset0), self.get(Field::Offset1));
        let mods = self.row().mods;
        if mods.has(Mods::OFFSET2) {
            for (value, name) in [(low, "offset0"), (high, "offset1")] {
                if value != 0 {
                    write!(f, " {name}:{value}")?;
                }
            }
            return Ok(());
        }
        match low | high << 8 {
            0 => Ok(()),
            pattern if mods.has(Mods::SWIZZLE) => swizzle(f, pattern),
            offset => write!(f, " offset:{offset}"),
        }
    }

    fn cache(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let returns = self.row().fixed.contains(&(Field::Sc0, 1));
        if returns || self.get(Field::Sc0) != 0 {
            write!(f, " sc0")?;
        }
        for (field, name) in [(Field::Nt, "nt"), (Field::Sc1, "sc1")] {
            if self.get(field) != 0 {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }

    fn buffer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (field, name) in [(Field::Idxen, "idxen"), (Field::Offen, "offen")] {
            if self.get(field) != 0 {
                write!(f, " {name}")?;
            }
        }
        if self.get(Field::Offset) != 0 {
            write!(f, " offset:{}", self.get(Field::Offset))?;
        }
        self.cache(f)?;
        if self.row().fixed.contains(&(Field::Lds, 1)) { write!(f, " lds") } else { Ok(()) }
    }
}

impl super::row::Row {
    /// The number of sources in the list of halves; for stochastic conversions one more than exist.
    pub(crate) fn op_sel_sources(&self, sources: usize) -> usize {
        if self.name.starts_with("v_cvt_sr") { 3 } else { sources }
    }
}

fn list(f: &mut fmt::Formatter<'_>, name: &str, values: impl Iterator<Item = u32>) -> fmt::Result {
    let values: Vec<String> = values.map(|v| v.to_string()).collect();
    write!(f, " {name}:[{}]", values.join(","))
}

fn hex(value: i32) -> String {
    if value < 0 { format!("-{:#x}", value.unsigned_abs()) } else { format!("{value:#x}") }
}

/// ISA §12.12, `DS_SWIZZLE_B32`.
fn swizzle(f: &mut fmt::Formatter<'_>, pattern: u32) -> fmt::Result {
    if pattern & 0x8000 != 0 && pattern & 0x7F00 == 0 {
        let lane = |i: u32| pattern >> (2 * i) & 3;
        return write!(f, " offset:swizzle(QUAD_PERM,{},{},{},{})", lane(0), lane(1), lane(2), lane(3));
    }
    if pattern & 0x8000 != 0 {
        return write!(f, " offset:{pattern}");
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    if and == 31 && or == 0 && xor.is_power_of_two() {
        return write!(f, " offset:swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        return write!(f, " offset:swizzle(REVERSE,{})", xor + 1);
    }
    let group = 32 - and;
    if group.is_power_of_two() && group > 1 && or < group && xor == 0 {
        return write!(f, " offset:swizzle(BROADCAST,{group},{or})");
    }
    let bit = |i: u32| match (and >> i & 1, or >> i & 1, xor >> i & 1) {
        (0, 0, 0) => '0',
        (0, 1, 0) => '1',
        (1, 0, 0) => 'p',
        (1, 0, 1) => 'i',
        // Other masks are one of these; the first two have names of their own.
        (0, a, b) if a != b => '1',
        (0, ..) => '0',
        (_, 1, 0) => '1',
        _ => '0',
    };
    let mask: String = (0..5).rev().map(bit).collect();
    write!(f, " offset:swizzle(BITMASK_PERM,\"{mask}\")")
}

fn plain(f: &mut fmt::Formatter<'_>, arg: Arg, operand: Operand) -> fmt::Result {
    match operand {
        Operand::S(code, n) => write!(f, "{}", ScalarName(code, n)),
        Operand::V(first, n) => tuple(f, "v", first, n),
        Operand::A(first, n) => tuple(f, "a", first, n),
        Operand::Off => write!(f, "off"),
        Operand::Special(special) => write!(f, "{}", special.text()),
        Operand::Literal(value) => write!(f, "{value:#x}"),
        Operand::Inline(Inline::Int(value)) => write!(f, "{value}"),
        // A 16-bit integer operand with the bits of a float constant, which LLVM prints as a number.
        Operand::Inline(Inline::Float(float)) if is_short_integer(arg) => {
            write!(f, "{:#x}", titan_core::num::f16_from_f64(float.value()))
        }
        Operand::Inline(Inline::Float(float)) => write!(f, "{}", float.text(arg.ty.elem.bits())),
        Operand::Imm(value) => immediate(f, arg.class, value),
    }
}

const fn is_short_integer(arg: Arg) -> bool {
    arg.ty.count == 1 && arg.ty.elem.bits() == 16 && matches!(arg.ty.elem, Elem::B(_) | Elem::U(_) | Elem::I(_))
}

fn immediate(f: &mut fmt::Formatter<'_>, class: Class, value: i32) -> fmt::Result {
    let bits = value.cast_unsigned() & 0xFFFF;
    match class {
        Class::SmemOffset => write!(f, "{}", hex(value)),
        Class::Hex => write!(f, "{bits:#x}"),
        Class::Waitcnt => waitcnt(f, bits),
        Class::Hwreg => hwreg(f, bits),
        Class::Message => message(f, bits),
        Class::IndexMode => {
            let chosen = INDEXED.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, name)| *name);
            write!(f, "gpr_idx({})", chosen.collect::<Vec<_>>().join(","))
        }
        Class::Simm => write!(f, "{}", sign_extend(bits, 16)),
        // As in LLVM: in decimal if the value could be an inline constant.
        Class::Uimm if bits > 64 => write!(f, "{bits:#x}"),
        _ => write!(f, "{bits}"),
    }
}

/// The operands whose registers can be indexed, by bit.
pub(crate) const INDEXED: [&str; 4] = ["SRC0", "SRC1", "SRC2", "DST"];

fn waitcnt(f: &mut fmt::Formatter<'_>, imm: u32) -> fmt::Result {
    let counters = COUNTERS.iter().map(|(name, ranges)| (name, counter(imm, ranges)));
    let waits: Vec<String> =
        counters.clone().filter(|(_, (v, most))| v != most).map(|(n, (v, _))| format!("{n}({v})")).collect();
    if waits.is_empty() {
        // A wait without a counter prints the largest value of each.
        let all: Vec<String> = counters.map(|(n, (v, _))| format!("{n}({v})")).collect();
        return write!(f, "{}", all.join(" "));
    }
    write!(f, "{}", waits.join(" "))
}

fn hwreg(f: &mut fmt::Formatter<'_>, imm: u32) -> fmt::Result {
    let (id, offset, size) = (imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1);
    match HWREGS.iter().find(|(i, _)| *i == id) {
        Some((_, name)) => write!(f, "hwreg({name}")?,
        None => write!(f, "hwreg({id}")?,
    }
    if offset != 0 || size != 32 {
        write!(f, ", {offset}, {size}")?;
    }
    write!(f, ")")
}

/// ISA §12.5.1 "Send Message": the messages of compute programs by name, others by their number.
fn message(f: &mut fmt::Formatter<'_>, imm: u32) -> fmt::Result {
    match imm {
        1 => write!(f, "sendmsg(MSG_INTERRUPT)"),
        // Bits that belong to no part of a message.
        _ if imm & !0x37F != 0 => write!(f, "{imm}"),
        _ => write!(f, "sendmsg({}, {}, {})", imm & 15, imm >> 4 & 7, imm >> 8 & 3),
    }
}
