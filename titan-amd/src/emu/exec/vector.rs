//! Vector instructions: the computation in every active lane, and the write of results.

use super::Run;
use super::source::Wide;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::lane::float::{f32_of, modify, out32, output};
use crate::emu::lane::{self, LaneFn, convert, divide, half, int};
use crate::emu::matrix::{self, Modifiers};
use crate::emu::op::{CarryKind, From, Kind, MixKind, Op, Source, To};
use crate::emu::wave::{ALL, Lanes};
use crate::isa::operand::EXEC;
use crate::isa::{Field, Form, Mods};

/// The lanes of a mask.
pub(crate) fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 64).then_some(lane as usize)
    })
}

impl Group<'_> {
    pub(super) fn vector(&mut self, wave: usize, op: &Op) -> Run<()> {
        self.check_mode(wave, op)?;
        match op.kind {
            Kind::Lane(f) => self.each(wave, op, f),
            Kind::Packed(f) => self.packed(wave, op, f),
            Kind::PackedInt(f) => self.packed_int(wave, op, f),
            Kind::Compare(f) => {
                let mode = self.waves[wave].mode;
                let (a, b) = (self.read(wave, op, 0)?.values, self.read(wave, op, 1)?.values);
                let exec = self.waves[wave].exec();
                let mask = lanes_of(exec).filter(|l| f(mode, [a[*l], b[*l], 0])).fold(0, |all, l| all | 1 << l);
                self.set_result(wave, op, mask)?;
                if op.inst.row().name.starts_with("v_cmpx") {
                    self.waves[wave].set_scalar(EXEC, 2, mask)?;
                }
                Ok(())
            }
            Kind::Select => {
                let (a, b) = (self.read(wave, op, 0)?, self.read(wave, op, 1)?);
                let mask = self.scalar_source(wave, last(op)?)?;
                let values = std::array::from_fn(|l| if mask >> l & 1 == 1 { b.values[l] } else { a.values[l] });
                self.write(wave, op, &values, a.valid)
            }
            Kind::Carry(kind) => self.carry(wave, op, kind),
            Kind::Mad64 { signed } => self.mad64(wave, op, signed),
            Kind::DivScale | Kind::DivFmas => self.division(wave, op),
            Kind::ToSmall => self.shrink(wave, op),
            Kind::Mix(kind) => self.mix(wave, op, kind),
            Kind::PackedMove => self.packed_move(wave, op),
            Kind::Mbcnt { high } => {
                let (a, b) = (self.read(wave, op, 0)?.values, self.read(wave, op, 1)?.values);
                let values = std::array::from_fn(|l| {
                    let below = (1_u64 << l) - 1;
                    let mask = if high { below >> 32 } else { below & 0xFFFF_FFFF };
                    u64::from(int::u(b[l]).wrapping_add((a[l] & mask).count_ones()))
                });
                self.write(wave, op, &values, ALL)
            }
            Kind::ReadLane | Kind::ReadFirstLane | Kind::WriteLane => self.one_lane(wave, op),
            Kind::Swap => self.swap(wave, op),
            _ => Err(Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction")),
        }
    }

    /// Checks that the rounding mode is to nearest; others are not modelled.
    fn check_mode(&self, wave: usize, op: &Op) -> Run<()> {
        let mode = self.waves[wave].mode;
        if (mode.round_32 != 0 || mode.round_16_64 != 0) && lane::rounds(op.inst.row().name) {
            return Err(Fail::new(
                ErrorCode::Unknown,
                "the emulator supports only rounding to nearest, but `MODE` selects another rounding",
            ));
        }
        Ok(())
    }

    fn each(&mut self, wave: usize, op: &Op, f: LaneFn) -> Run<()> {
        let mode = self.waves[wave].mode;
        let exec = self.waves[wave].exec();
        let first = self.read(wave, op, 0)?;
        let second = if op.sources.len() > 1 { Some(self.read(wave, op, 1)?.values) } else { None };
        let third = if op.sources.len() > 2 { Some(self.read(wave, op, 2)?.values) } else { None };
        let mut values = [0; 64];
        for l in lanes_of(exec) {
            let x = [first.values[l], second.as_ref().map_or(0, |v| v[l]), third.as_ref().map_or(0, |v| v[l])];
            values[l] = f(mode, x);
        }
        self.write(wave, op, &values, first.valid)
    }

    /// Writes the first result in the active and valid lanes, with output modifiers, to the selected part.
    fn write(&mut self, wave: usize, op: &Op, values: &Wide, valid: u64) -> Run<()> {
        let w = &mut self.waves[wave];
        let lanes = w.exec() & valid;
        let place = *op.results.first().ok_or_else(|| Fail::new(ErrorCode::Unknown, "a result is missing"))?;
        let To::Vector(file, first, n) = place.to else {
            return Err(Fail::new(ErrorCode::Unknown, "no vector register for the result"));
        };
        let (clamp, omod) = (op.inst.get(Field::Clamp) == 1, op.inst.get(Field::Omod));
        let mode = w.mode;
        let finish = |x: u64| {
            if (clamp || omod != 0) && place.ty.is_scalar_float() {
                output(mode, x, place.ty.elem.bits(), clamp, omod)
            } else {
                x
            }
        };
        let bits = place.ty.bits();
        let first = usize::from(first);
        #[expect(clippy::cast_possible_truncation, reason = "the words of a result")]
        if n == 2 {
            let low = w.file_mut(file).write(first, lanes)?;
            lanes_of(lanes).for_each(|l| low[l] = finish(values[l]) as u32);
            let high = w.file_mut(file).write(first + 1, lanes)?;
            lanes_of(lanes).for_each(|l| high[l] = (finish(values[l]) >> 32) as u32);
        } else {
            let part = part(op, bits);
            let register = w.file_mut(file).write(first, lanes)?;
            lanes_of(lanes).for_each(|l| register[l] = part.merge(register[l], finish(values[l]) as u32));
        }
        Ok(())
    }

    /// Packed floats: each half of the result is computed from the halves of the sources that are selected for it.
    fn packed(&mut self, wave: usize, op: &Op, f: LaneFn) -> Run<()> {
        let exec = self.waves[wave].exec();
        let mode = self.waves[wave].mode;
        let bits = op.results.first().map_or(32, |r| r.ty.elem.bits());
        let sources = (0..op.sources.len()).map(|n| self.halves(wave, op, n, bits)).collect::<Run<Vec<_>>>()?;
        let (clamp, mut values) = (op.inst.get(Field::Clamp) == 1, [0; 64]);
        for l in lanes_of(exec) {
            let side = |high: bool| {
                let get = |n: usize| sources.get(n).map_or(0, |s: &[Wide; 2]| s[usize::from(high)][l]);
                let r = f(mode, [get(0), get(1), get(2)]);
                if clamp { output(mode, r, bits, true, 0) } else { r }
            };
            values[l] = side(false) | side(true) << bits;
        }
        self.write(wave, op, &values, ALL)
    }

    /// The values that a source provides for the lower and for the upper half of the result.
    fn halves(&self, wave: usize, op: &Op, n: usize, bits: u32) -> Run<[Wide; 2]> {
        let source = *op.sources.get(n).ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))?;
        let inst = &op.inst;
        let explicit = inst.row().mods.has(Mods::OP_SEL_HI);
        let high = inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2;
        let (low_half, high_half) = if explicit { (inst.get(Field::OpSel) >> n & 1, high >> n & 1) } else { (0, 1) };
        let x = self.chosen(wave, source, [low_half, high_half])?;
        let (neg_low, neg_high) = (inst.get(Field::Neg) >> n & 1 == 1, inst.get(Field::NegHi) >> n & 1 == 1);
        let float = source.ty.elem.is_float();
        let mask = (1_u64 << bits) - 1;
        let pick = |half: u32, neg: bool| x.map(|v| modify(v >> (bits * half) & mask, bits, neg && float, false));
        Ok([pick(low_half, neg_low), pick(high_half, neg_high)])
    }

    /// Selects words of a register pair; the word that is not selected may be undefined.
    fn chosen(&self, wave: usize, source: Source, words: [u32; 2]) -> Run<Wide> {
        let exec = self.waves[wave].exec();
        let [only, other] = words;
        let part = |first: u8| first + u8::from(only == 1);
        let from = match source.from {
            From::Scalar(first, 2) if only == other => From::Scalar(part(first), 1),
            From::Vector(file, first, 2) if only == other => From::Vector(file, part(first), 1),
            From::Scalar(..) | From::Vector(..) | From::Constant(_) | From::Special(_) | From::Nothing => {
                return self.lanes(wave, source, exec);
            }
        };
        let x = self.lanes(wave, Source { from, ..source }, exec)?;
        Ok(x.map(|v| v << (32 * only)))
    }

    /// Packed integers and dot products: functions of registers whose halves are selected before.
    fn packed_int(&mut self, wave: usize, op: &Op, f: LaneFn) -> Run<()> {
        let exec = self.waves[wave].exec();
        let mode = self.waves[wave].mode;
        let whole = |n: usize| -> Run<Wide> {
            let source: Source = op.sources[n];
            let packed = source.ty.count == 2 && op.inst.row().mods.has(Mods::OP_SEL_HI);
            if packed {
                let [low, high] = self.halves(wave, op, n, 16)?;
                return Ok(std::array::from_fn(|l| low[l] | high[l] << 16));
            }
            let x = self.lanes(wave, source, exec)?;
            let (low, high) = (op.inst.get(Field::Neg) >> n & 1 == 1, op.inst.get(Field::NegHi) >> n & 1 == 1);
            if !low && !high {
                return Ok(x);
            }
            // Either two halves of `f16`, or one `f32`.
            let flip =
                if source.ty.count == 2 { u64::from(low) << 15 | u64::from(high) << 31 } else { u64::from(low) << 31 };
            Ok(x.map(|v| v ^ flip))
        };
        let sources = (0..op.sources.len()).map(whole).collect::<Run<Vec<_>>>()?;
        let mut values = [0; 64];
        for l in lanes_of(exec) {
            let get = |n: usize| sources.get(n).map_or(0, |s| s[l]);
            values[l] = f(mode, [get(0), get(1), get(2)]);
        }
        self.write(wave, op, &values, ALL)
    }

    fn packed_move(&mut self, wave: usize, op: &Op) -> Run<()> {
        let select = op.inst.get(Field::OpSel);
        let source = |n: usize| self.chosen(wave, op.sources[n], [select >> n & 1; 2]);
        let (a, b) = (source(0)?, source(1)?);
        let half = |x: u64, n: u32| x >> (32 * (select >> n & 1)) & 0xFFFF_FFFF;
        let values = std::array::from_fn(|l| half(a[l], 0) | half(b[l], 1) << 32);
        self.write(wave, op, &values, ALL)
    }

    /// Writes a mask of lanes to the second result.
    fn set_mask(&mut self, wave: usize, op: &Op, mask: u64) -> Run<()> {
        match op.results.get(1).map(|r| r.to) {
            Some(To::Scalar(code, n)) => self.waves[wave].set_scalar(code, n, mask),
            Some(To::Vector(..)) | None => Err(Fail::new(ErrorCode::Unknown, "no scalar register for the mask")),
        }
    }

    fn carry(&mut self, wave: usize, op: &Op, kind: CarryKind) -> Run<()> {
        let exec = self.waves[wave].exec();
        let (a, b) = (self.read(wave, op, 0)?, self.read(wave, op, 1)?.values);
        let carried = if op.sources.len() > 2 { self.scalar_source(wave, op.sources[2])? } else { 0 };
        let clamp = op.inst.get(Field::Clamp) == 1;
        let (mut values, mut mask) = ([0; 64], 0);
        for l in lanes_of(exec) {
            let (x, y) = (i64::from(int::u(a.values[l])), i64::from(int::u(b[l])));
            let c = i64::from(carried >> l & 1 == 1);
            let exact = match kind {
                CarryKind::Add => x + y + c,
                CarryKind::Sub => x - y - c,
                CarryKind::SubRev => y - x - c,
            };
            let out = exact < 0 || exact > u32::MAX.into();
            let kept = if clamp { exact.clamp(0, u32::MAX.into()) } else { exact };
            values[l] = kept.cast_unsigned() & 0xFFFF_FFFF;
            mask |= u64::from(out) << l;
        }
        self.write(wave, op, &values, a.valid)?;
        self.set_mask(wave, op, mask)
    }

    fn mad64(&mut self, wave: usize, op: &Op, signed: bool) -> Run<()> {
        let exec = self.waves[wave].exec();
        let read = |n: usize| self.read(wave, op, n).map(|r| r.values);
        let (a, b, c) = (read(0)?, read(1)?, read(2)?);
        let (mut values, mut mask) = ([0; 64], 0);
        for l in lanes_of(exec) {
            let (x, y) = (int::u(a[l]), int::u(b[l]));
            let out = if signed {
                let product = i64::from(x.cast_signed()) * i64::from(y.cast_signed());
                let (sum, out) = product.overflowing_add(c[l].cast_signed());
                values[l] = sum.cast_unsigned();
                out
            } else {
                let (sum, out) = (u64::from(x) * u64::from(y)).overflowing_add(c[l]);
                values[l] = sum;
                out
            };
            mask |= u64::from(out) << l;
        }
        self.write(wave, op, &values, ALL)?;
        self.set_mask(wave, op, mask)
    }

    fn division(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (exec, mode) = (self.waves[wave].exec(), self.waves[wave].mode);
        let name = op.inst.row().name;
        let read = |n: usize| self.read(wave, op, n).map(|r| r.values);
        let (a, b, c) = (read(0)?, read(1)?, read(2)?);
        let scales = matches!(op.kind, Kind::DivScale);
        let scaled = if scales { 0 } else { self.waves[wave].vcc()? };
        let (mut values, mut mask) = ([0; 64], 0);
        for l in lanes_of(exec) {
            let x = [a[l], b[l], c[l]];
            if let Some((value, flag)) = divide::div_scale(name, x) {
                values[l] = value;
                mask |= u64::from(flag) << l;
            } else if let Some(value) = divide::div_fmas(name, mode, x, scaled >> l & 1 == 1) {
                values[l] = value;
            }
        }
        self.write(wave, op, &values, ALL)?;
        if scales { self.set_mask(wave, op, mask) } else { Ok(()) }
    }

    /// Conversions to 8-bit floats write one or two bytes of the destination, and keep the others.
    fn shrink(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (exec, mode) = (self.waves[wave].exec(), self.waves[wave].mode);
        let name = op.inst.row().name;
        let (a, b) = (self.read(wave, op, 0)?.values, self.read(wave, op, 1)?.values);
        let select = op.inst.get(Field::OpSel);
        let Some(To::Vector(file, first, _)) = op.results.first().map(|r| r.to) else {
            return Err(Fail::new(ErrorCode::Unknown, "no vector register for the result"));
        };
        let register = self.waves[wave].file_mut(file).write(first.into(), exec)?;
        for l in lanes_of(exec) {
            let Some((value, bits)) = convert::to_small(name, mode, [a[l], b[l], 0]) else { continue };
            let at = if bits == 16 { 16 * (select >> 3 & 1) } else { 8 * (select >> 2 & 3) };
            let mask = ((1_u32 << bits) - 1) << at;
            register[l] = register[l] & !mask | int::u(value) << at & mask;
        }
        Ok(())
    }

    /// `v_fma_mix`: each source is an `f32`, or the selected half of a register as `f16`.
    fn mix(&mut self, wave: usize, op: &Op, kind: MixKind) -> Run<()> {
        let (exec, mode) = (self.waves[wave].exec(), self.waves[wave].mode);
        let inst = &op.inst;
        let high = inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2;
        let source = |n: usize| -> Run<[f32; 64]> {
            let x = self.lanes(wave, op.sources[n], exec)?;
            let as_half = high >> n & 1 == 1;
            let at = 16 * (inst.get(Field::OpSel) >> n & 1);
            let (neg, abs, _) = inst.source_modifiers(n);
            Ok(x.map(|v| {
                let bits = if as_half { v >> at & 0xFFFF } else { v };
                let bits = modify(bits, if as_half { 16 } else { 32 }, neg, abs);
                if as_half { half::to_f32(bits) } else { f32_of(bits) }
            }))
        };
        let (a, b, c) = (source(0)?, source(1)?, source(2)?);
        let clamp = inst.get(Field::Clamp) == 1;
        let mut values = [0; 64];
        for l in lanes_of(exec) {
            let r = a[l].mul_add(b[l], c[l]);
            let (bits, width) = match kind {
                MixKind::F32 => (out32(mode, r), 32),
                MixKind::Low | MixKind::High => (half::write(mode, r.into()), 16),
            };
            values[l] = if clamp { output(mode, bits, width, true, 0) } else { bits };
        }
        let Some(To::Vector(file, first, _)) = op.results.first().map(|r| r.to) else {
            return Err(Fail::new(ErrorCode::Unknown, "no vector register for the result"));
        };
        let register = self.waves[wave].file_mut(file).write(first.into(), exec)?;
        for l in lanes_of(exec) {
            let value = int::u(values[l]);
            register[l] = match kind {
                MixKind::F32 => value,
                MixKind::Low => register[l] & 0xFFFF_0000 | value,
                MixKind::High => register[l] & 0xFFFF | value << 16,
            };
        }
        Ok(())
    }

    fn one_lane(&mut self, wave: usize, op: &Op) -> Run<()> {
        let exec = self.waves[wave].exec();
        if matches!(op.kind, Kind::WriteLane) {
            #[expect(clippy::cast_possible_truncation, reason = "a register")]
            let value = self.scalar_source(wave, op.sources[0])? as u32;
            let lane = self.scalar_source(wave, op.sources[1])? & 63;
            let Some(To::Vector(file, first, _)) = op.results.first().map(|r| r.to) else {
                return Err(Fail::new(ErrorCode::Unknown, "no vector register for the result"));
            };
            let lane = lane as usize;
            self.waves[wave].file_mut(file).write(first.into(), 1 << lane)?[lane] = value;
            return Ok(());
        }
        let lane = match op.kind {
            // Without an active lane, the first lane is read.
            Kind::ReadFirstLane => {
                if exec == 0 {
                    0
                } else {
                    exec.trailing_zeros().into()
                }
            }
            _ => self.scalar_source(wave, last(op)?)? & 63,
        };
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let lane = lane as usize;
        let values = self.lanes(wave, op.sources[0], 1 << lane)?;
        self.set_result(wave, op, values[lane])
    }

    fn swap(&mut self, wave: usize, op: &Op) -> Run<()> {
        let exec = self.waves[wave].exec();
        let (From::Vector(fa, a, _), From::Vector(fb, b, _)) = (op.sources[0].from, op.sources[1].from) else {
            return Err(Fail::new(ErrorCode::Unknown, "registers are swapped"));
        };
        let w = &mut self.waves[wave];
        let (x, y) = (*w.file(fa).read(a.into(), exec)?, *w.file(fb).read(b.into(), exec)?);
        for (file, r, from) in [(fa, a, y), (fb, b, x)] {
            let register = w.file_mut(file).write(r.into(), exec)?;
            lanes_of(exec).for_each(|l| register[l] = from[l]);
        }
        Ok(())
    }

    pub(super) fn matrix(&mut self, wave: usize, op: &Op) -> Run<()> {
        let unknown = || Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction");
        let shape = op.matrix.ok_or_else(unknown)?;
        let mods = Modifiers {
            cbsz: op.inst.get(Field::Cbsz),
            abid: op.inst.get(Field::Abid),
            blgp: op.inst.get(Field::Blgp),
        };
        if !matrix::defined(shape, mods) {
            return Err(Fail::new(ErrorCode::Unknown, "broadcasting more blocks than there are is not defined"));
        }
        // MMAs ignore `exec`: every lane takes part.
        let (a, b) = (self.registers(wave, op.sources[0])?, self.registers(wave, op.sources[1])?);
        let c = self.registers(wave, op.sources[2])?;
        let w = &mut self.waves[wave];
        let d = matrix::multiply(shape, &a, &b, &c, mods, w.mode);
        let Some(To::Vector(file, first, _)) = op.results.first().map(|r| r.to) else { return Err(unknown()) };
        for (r, values) in (usize::from(first)..).zip(d) {
            *w.file_mut(file).write(r, ALL)? = values;
        }
        Ok(())
    }

    /// All registers of a matrix operand; a constant is repeated in each.
    fn registers(&self, wave: usize, source: Source) -> Run<Vec<Lanes>> {
        let n = usize::from(source.ty.dwords());
        match source.from {
            From::Vector(file, first, _) => {
                let file = self.waves[wave].file(file);
                (usize::from(first)..).take(n).map(|r| file.read(r, ALL).copied()).collect()
            }
            From::Constant(bits) => {
                let words = source.ty.elem.bits() / 32;
                #[expect(clippy::cast_possible_truncation, reason = "the words of a constant")]
                let word = |i: usize| (bits >> (32 * (i as u32 % words.max(1)))) as u32;
                Ok((0..n).map(|i| [word(i); 64]).collect())
            }
            From::Scalar(..) | From::Special(_) | From::Nothing => {
                Err(Fail::new(ErrorCode::Unknown, "a matrix operand is a register or a constant"))
            }
        }
    }
}

fn last(op: &Op) -> Run<Source> {
    op.sources.last().copied().ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))
}

/// The bits of a register to which a result is written, and the treatment of the others.
struct Part {
    at: u32,
    bits: u32,
    rest: Rest,
}

enum Rest {
    Zero,
    Sign,
    Keep,
}

/// ISA §13.3.7 for SDWA; results of 16 bits clear the upper half, unless a half is selected (§12.11, `V_FMA_F16`).
fn part(op: &Op, bits: u32) -> Part {
    if op.inst.form() == Form::Sdwa {
        let (at, bits) = match op.inst.get(Field::DstSel) {
            n @ 0..=3 => (8 * n, 8),
            n @ 4..=5 => (16 * (n - 4), 16),
            _ => (0, 32),
        };
        let rest = match op.inst.get(Field::DstUnused) {
            0 => Rest::Zero,
            1 => Rest::Sign,
            _ => Rest::Keep,
        };
        return Part { at, bits, rest };
    }
    let selects = op.inst.row().mods.has(Mods::OP_SEL) && bits == 16;
    if selects {
        Part { at: 16 * (op.inst.get(Field::OpSel) >> 3 & 1), bits, rest: Rest::Keep }
    } else {
        Part { at: 0, bits: 32, rest: Rest::Zero }
    }
}

impl Part {
    fn merge(&self, old: u32, value: u32) -> u32 {
        if self.bits == 32 {
            return value;
        }
        let mask = (1_u32 << self.bits) - 1;
        let placed = (value & mask) << self.at;
        match self.rest {
            Rest::Zero => placed,
            Rest::Keep => old & !(mask << self.at) | placed,
            Rest::Sign => {
                let extended = ((value << (32 - self.bits)).cast_signed() >> (32 - self.bits)).cast_unsigned();
                // Bits above are copies of the sign, bits below are 0.
                extended << self.at
            }
        }
    }
}
