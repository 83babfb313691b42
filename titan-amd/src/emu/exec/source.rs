//! Sources of vector instructions: their values in each lane, as selected by SDWA and DPP words and the modifiers of VOP3.

use super::Run;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::lane::float::modify;
use crate::emu::op::{From, Op, Source};
use crate::isa::{Field, Form, Format, Mods};

/// The bits of a source in every lane.
pub(crate) type Wide = [u64; 64];

/// The values of a source, and the lanes in which they are valid: a DPP word may exclude lanes.
pub(crate) struct Read {
    pub(crate) values: Wide,
    pub(crate) valid: u64,
}

/// The lane from which a lane reads, by `DPP_CTRL` (ISA §13.3.9, table 93); `None` if there is none.
const fn dpp_lane(ctrl: u32, n: u32) -> Option<u32> {
    let (row, at) = (n & 0x30, n & 15);
    let by = ctrl & 15;
    match ctrl {
        0..=0xFF => Some(n & 0x3C | ctrl >> (2 * (n & 3)) & 3),
        0x101..=0x10F => {
            if at + by < 16 {
                Some(n + by)
            } else {
                None
            }
        }
        0x111..=0x11F => {
            if at >= by {
                Some(n - by)
            } else {
                None
            }
        }
        0x121..=0x12F => Some(row | (at + 16 - by) & 15),
        0x130 => {
            if n < 63 {
                Some(n + 1)
            } else {
                None
            }
        }
        0x134 => Some((n + 1) & 63),
        0x138 => {
            if n > 0 {
                Some(n - 1)
            } else {
                None
            }
        }
        0x13C => Some((n + 63) & 63),
        0x140 => Some(row | (15 - at)),
        0x141 => Some(n & 0x38 | (7 - (n & 7))),
        0x142 => {
            if n > 15 {
                Some(row - 1)
            } else {
                None
            }
        }
        0x143 => {
            if n > 31 {
                Some(31)
            } else {
                None
            }
        }
        0x150..=0x15F => Some(row | by),
        _ => None,
    }
}

impl Group<'_> {
    /// The bits of a source in the lanes that are read; those of other lanes are arbitrary.
    pub(super) fn lanes(&self, wave: usize, source: Source, lanes: u64) -> Run<Wide> {
        let w = &self.waves[wave];
        match source.from {
            From::Vector(file, first, n) => {
                let first = usize::from(first);
                let low = w.file(file).read(first, lanes)?;
                if n == 1 {
                    return Ok(low.map(u64::from));
                }
                let high = w.file(file).read(first + 1, lanes)?;
                Ok(std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32))
            }
            From::Scalar(..) | From::Constant(_) | From::Special(_) | From::Nothing => {
                Ok([self.scalar_source(wave, source)?; 64])
            }
        }
    }

    /// The `n`-th source of an instruction, with its modifiers.
    pub(super) fn read(&self, wave: usize, op: &Op, n: usize) -> Run<Read> {
        let exec = self.waves[wave].exec();
        let source = *op.sources.get(n).ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))?;
        let mut read = Read { values: self.lanes(wave, source, exec)?, valid: u64::MAX };
        let form = op.inst.form();
        if form == Form::Dpp && n == 0 {
            read = self.across(op, &read.values, exec);
        }
        let bits = source.ty.elem.bits();
        let whole = source.ty.count == 1;
        if form == Form::Sdwa && n < 2 {
            let (field, extend) = [(Field::Src0Sel, Field::Src0Sext), (Field::Src1Sel, Field::Src1Sext)][n];
            let (select, signed) = (op.inst.get(field), op.inst.get(extend) == 1);
            read.values.iter_mut().for_each(|x| *x = selected(*x, select, signed));
        }
        let vop3 = matches!(op.inst.format(), Format::Vop3a | Format::Vop3b);
        if vop3
            && bits == 16
            && whole
            && op.inst.row().mods.has(Mods::OP_SEL)
            && op.inst.get(Field::OpSel) >> n & 1 == 1
        {
            read.values.iter_mut().for_each(|x| *x >>= 16);
        }
        if whole && bits < 32 && !op.inst.row().is_mix() {
            let mask = (1 << bits) - 1;
            read.values.iter_mut().for_each(|x| *x &= mask);
        }
        let (neg, abs, _) = op.inst.source_modifiers(n);
        if (neg || abs) && !op.inst.row().is_mix() {
            let width = if source.ty.elem.is_float() { bits } else { 32 };
            read.values.iter_mut().for_each(|x| *x = modify(*x, width, neg, abs));
        }
        Ok(read)
    }

    /// Moves a source across lanes; lanes whose source lane is inactive or does not exist read 0 if the DPP word requests that.
    fn across(&self, op: &Op, values: &Wide, exec: u64) -> Read {
        let ctrl = op.inst.get(Field::DppCtrl);
        let zero = op.inst.get(Field::BoundCtrl) == 1;
        let (rows, banks) = (op.inst.get(Field::RowMask), op.inst.get(Field::BankMask));
        let mut read = Read { values: [0; 64], valid: 0 };
        for n in 0..64_u32 {
            let enabled = rows >> (n / 16) & 1 == 1 && banks >> (n % 16 / 4) & 1 == 1;
            let from = dpp_lane(ctrl, n).filter(|l| exec >> l & 1 == 1);
            if let Some(from) = from {
                read.values[n as usize] = values[from as usize];
            }
            if enabled && (from.is_some() || zero) {
                read.valid |= 1 << n;
            }
        }
        read
    }
}

/// A part of a register, as SDWA selects it: ISA §13.3.7.
fn selected(x: u64, select: u32, signed: bool) -> u64 {
    let (at, bits) = match select {
        0..=3 => (8 * select, 8),
        4 | 5 => (16 * (select - 4), 16),
        _ => (0, 32),
    };
    let part = x >> at & ((1 << bits) - 1);
    if signed { ((part << (64 - bits)).cast_signed() >> (64 - bits)).cast_unsigned() & 0xFFFF_FFFF } else { part }
}
