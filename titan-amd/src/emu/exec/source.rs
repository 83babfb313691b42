//! Sources of vector instructions: their values and shadows in each lane, as selected by SDWA and DPP words and the modifiers of VOP3.

use super::Run;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::lane::float::modify;
use crate::emu::op::{From, Op, Source};
use crate::emu::scalars::Value;
use crate::emu::vectors::Origin;
use crate::emu::wave::undefined;
use crate::isa::operand::VCC;
use crate::isa::{Field, Form, Format, Implicit, Mods, Special};

/// The lanes of a mask.
pub(crate) fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 64).then_some(lane as usize)
    })
}

/// 64 bits for every lane.
pub(crate) type Wide = [u64; 64];

/// The bits of a value in every lane, and their shadows if some are undefined.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    pub(crate) values: Wide,
    pub(crate) shadows: Option<Box<Wide>>,
}

impl Bits {
    pub(crate) const fn defined(values: Wide) -> Bits {
        Bits { values, shadows: None }
    }

    /// The same value in every lane.
    fn repeated(value: Value) -> Bits {
        Bits { values: [value.bits; 64], shadows: (value.shadow != 0).then(|| Box::new([value.shadow; 64])) }
    }

    /// The shadow in a lane.
    #[inline]
    pub(crate) fn shadow(&self, l: usize) -> u64 {
        self.shadows.as_ref().map_or(0, |s| s[l])
    }

    /// Applies a function that moves, drops or repeats bits, and so does the same to shadows.
    pub(crate) fn each(&mut self, f: impl Fn(u64) -> u64) {
        self.values.iter_mut().for_each(|x| *x = f(*x));
        self.keep_values(f);
    }

    /// Applies to shadows what does not change values.
    fn keep_values(&mut self, f: impl Fn(u64) -> u64) {
        if let Some(shadows) = &mut self.shadows {
            shadows.iter_mut().for_each(|x| *x = f(*x));
        }
    }
}

/// The shadows of results, computed for the lanes in which they can have undefined bits; `None` if there are none.
pub(crate) fn shadows(sources: &[&Bits], lanes: u64, f: impl Fn(usize) -> u64) -> Option<Box<Wide>> {
    if sources.iter().all(|s| s.shadows.is_none()) {
        return None;
    }
    let mut all = Box::new([0; 64]);
    lanes_of(lanes).for_each(|l| all[l] = f(l));
    all.iter().any(|s| *s != 0).then_some(all)
}

/// The values of a source, and the lanes in which they are valid: a DPP word may exclude lanes.
pub(crate) struct Read {
    pub(crate) bits: Bits,
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
    pub(super) fn lanes(&self, wave: usize, source: Source, lanes: u64) -> Run<Bits> {
        let w = &self.waves[wave];
        let From::Vector(file, first, n) = source.from else {
            return Ok(Bits::repeated(self.scalar_value(wave, source)?));
        };
        let (file, first) = (w.file(file), usize::from(first));
        let low = file.read(first, lanes)?;
        let mut undefined = file.undefined(first, lanes);
        let values = if n == 1 {
            low.map(u64::from)
        } else {
            let high = file.read(first + 1, lanes)?;
            undefined |= file.undefined(first + 1, lanes);
            std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32)
        };
        if undefined == 0 {
            return Ok(Bits::defined(values));
        }
        let mut shadows = Box::new([0; 64]);
        for l in lanes_of(undefined) {
            let high = if n == 1 { 0 } else { file.shadow(first + 1, l) };
            shadows[l] = u64::from(file.shadow(first, l)) | u64::from(high) << 32;
        }
        Ok(Bits { values, shadows: Some(shadows) })
    }

    /// The bits of a source that must be defined in these lanes, because `what` depends on it.
    pub(super) fn defined_lanes(&self, wave: usize, source: Source, lanes: u64, what: &str) -> Run<Wide> {
        let bits = self.lanes(wave, source, lanes)?;
        match bits.shadows.as_ref().and_then(|s| lanes_of(lanes).find(|l| s[*l] != 0)) {
            None => Ok(bits.values),
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            Some(lane) => Err(undefined(what, self.origin_of(wave, source)).lane(lane as u32)),
        }
    }

    /// Where undefined bits of a source come from.
    pub(super) fn origin_of(&self, wave: usize, source: Source) -> Option<Origin> {
        let w = &self.waves[wave];
        match source.from {
            From::Vector(file, first, n) => {
                let registers = usize::from(first)..usize::from(first) + usize::from(n);
                let file = w.file(file);
                registers.into_iter().find(|r| file.undefined(*r, u64::MAX) != 0).and_then(|r| file.origin(r))
            }
            From::Scalar(code, n) => w.scalar_origin(code, n),
            From::Special(Special::Scc) => w.scc_origin(),
            From::Special(Special::Vccz) => w.scalar_origin(VCC, 2),
            From::Special(_) | From::Constant(_) | From::Nothing => None,
        }
    }

    /// Where undefined bits of an instruction's sources come from.
    pub(super) fn origin(&self, wave: usize, op: &Op) -> Option<Origin> {
        let reads = op.inst.row().reads;
        let w = &self.waves[wave];
        let vcc = || w.scalar_origin(VCC, 2).filter(|_| reads.has(Implicit::VCC));
        let scc = || w.scc_origin().filter(|_| reads.has(Implicit::SCC));
        op.sources.iter().find_map(|s| self.origin_of(wave, *s)).or_else(vcc).or_else(scc)
    }

    /// The `n`-th source of an instruction, with its modifiers.
    pub(super) fn read(&self, wave: usize, op: &Op, n: usize) -> Run<Read> {
        let exec = self.waves[wave].exec();
        let source = *op.sources.get(n).ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))?;
        let mut read = Read { bits: self.lanes(wave, source, exec)?, valid: u64::MAX };
        let form = op.inst.form();
        if form == Form::Dpp && n == 0 {
            read = across(op, &read.bits, exec);
        }
        let bits = source.ty.elem.bits();
        let whole = source.ty.count == 1;
        if form == Form::Sdwa && n < 2 {
            let (field, extend) = [(Field::Src0Sel, Field::Src0Sext), (Field::Src1Sel, Field::Src1Sext)][n];
            let (select, signed) = (op.inst.get(field), op.inst.get(extend) == 1);
            read.bits.each(|x| selected(x, select, signed));
        }
        let vop3 = matches!(op.inst.format(), Format::Vop3a | Format::Vop3b);
        if vop3
            && bits == 16
            && whole
            && op.inst.row().mods.has(Mods::OP_SEL)
            && op.inst.get(Field::OpSel) >> n & 1 == 1
        {
            read.bits.each(|x| x >> 16);
        }
        if whole && bits < 32 && !op.inst.row().is_mix() {
            let mask = (1 << bits) - 1;
            read.bits.each(|x| x & mask);
        }
        let (neg, abs, _) = op.inst.source_modifiers(n);
        if (neg || abs) && !op.inst.row().is_mix() {
            let width = if source.ty.elem.is_float() { bits } else { 32 };
            read.bits.values.iter_mut().for_each(|x| *x = modify(*x, width, neg, abs));
            // An absolute value has a sign that is defined.
            read.bits.keep_values(|s| modify(s, width, false, abs));
        }
        Ok(read)
    }
}

/// Moves a source across lanes; lanes whose source lane is inactive or does not exist read 0 if the DPP word requests that.
fn across(op: &Op, bits: &Bits, exec: u64) -> Read {
    let ctrl = op.inst.get(Field::DppCtrl);
    let zero = op.inst.get(Field::BoundCtrl) == 1;
    let (rows, banks) = (op.inst.get(Field::RowMask), op.inst.get(Field::BankMask));
    let mut read = Read { bits: Bits::defined([0; 64]), valid: 0 };
    read.bits.shadows = bits.shadows.as_ref().map(|_| Box::new([0; 64]));
    for n in 0..64_u32 {
        let enabled = rows >> (n / 16) & 1 == 1 && banks >> (n % 16 / 4) & 1 == 1;
        let from = dpp_lane(ctrl, n).filter(|l| exec >> l & 1 == 1);
        if let Some(from) = from {
            read.bits.values[n as usize] = bits.values[from as usize];
            if let Some(shadows) = &mut read.bits.shadows {
                shadows[n as usize] = bits.shadow(from as usize);
            }
        }
        if enabled && (from.is_some() || zero) {
            read.valid |= 1 << n;
        }
    }
    read
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
