//! Vector instructions that are not functions of whole registers in each lane: conversions to 8-bit floats, mixed precision, single lanes,
//! swaps, MMAs.

use super::Run;
use super::source::lanes_of;
use super::vector::last;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::lane::float::{f32_of, modify, out32, output};
use crate::emu::lane::{convert, half, int};
use crate::emu::matrix::{self, Modifiers};
use crate::emu::op::{File, From, Kind, MixKind, Op, Source, To};
use crate::emu::scalars::Value;
use crate::emu::vectors::Lanes;
use crate::emu::wave::ALL;
use crate::isa::Field;

/// A source of mixed precision: values, and the lanes in which they have undefined bits.
struct Mixed {
    values: [f32; 64],
    undefined: u64,
}

fn unknown(what: &str) -> Fail {
    Fail::new(ErrorCode::Unknown, what)
}

fn vector_result(op: &Op) -> Run<(File, usize)> {
    match op.results.first().map(|r| r.to) {
        Some(To::Vector(file, first, _)) => Ok((file, first.into())),
        Some(To::Scalar(..)) | None => Err(unknown("no vector register for the result")),
    }
}

impl Group<'_> {
    /// Writes some bits of a register in the active lanes, and keeps the others. `part` gives, for a lane, the bits that are written, as a
    /// mask, their new values and their shadow.
    fn write_part(&mut self, wave: usize, op: &Op, part: impl Fn(usize) -> (u32, u32, u32)) -> Run<()> {
        let (exec, origin) = (self.waves[wave].exec(), self.origin(wave, op));
        let (file, r) = vector_result(op)?;
        let file = self.waves[wave].file_mut(file);
        let old: Lanes = std::array::from_fn(|l| file.shadow(r, l));
        let register = file.write(r, exec)?;
        let mut undefined = 0;
        for l in lanes_of(exec) {
            let (mask, value, shadow) = part(l);
            register[l] = register[l] & !mask | value & mask;
            undefined |= old[l] & !mask | shadow;
        }
        if undefined != 0 {
            file.set_shadows(r, exec, origin, |l| {
                let (mask, _, shadow) = part(l);
                old[l] & !mask | shadow & mask
            });
        }
        Ok(())
    }

    /// Conversions to 8-bit floats write one or two bytes of the destination, and keep the others.
    pub(super) fn shrink(&mut self, wave: usize, op: &Op) -> Run<()> {
        let mode = self.waves[wave].mode;
        let name = op.inst.row().name;
        let (a, b) = (self.read(wave, op, 0)?.bits, self.read(wave, op, 1)?.bits);
        let select = op.inst.get(Field::OpSel);
        self.write_part(wave, op, |l| {
            let x = [a.values[l], b.values[l], 0];
            let Some((value, bits)) = convert::to_small(name, mode, x) else { return (0, 0, 0) };
            let undefined = |s: u64| if s == 0 { 0 } else { 0xFF };
            // Two bytes come from one source each, one byte from both.
            let (at, shadow) = if bits == 16 {
                (16 * (select >> 3 & 1), undefined(a.shadow(l)) | undefined(b.shadow(l)) << 8)
            } else {
                (8 * (select >> 2 & 3), undefined(a.shadow(l) | b.shadow(l)))
            };
            (((1_u32 << bits) - 1) << at, int::u(value) << at, shadow << at)
        })
    }

    /// `v_fma_mix`: each source is an `f32`, or the selected half of a register as `f16`.
    pub(super) fn mix(&mut self, wave: usize, op: &Op, kind: MixKind) -> Run<()> {
        let mode = self.waves[wave].mode;
        let (a, b, c) = (self.mixed(wave, op, 0)?, self.mixed(wave, op, 1)?, self.mixed(wave, op, 2)?);
        let clamp = op.inst.get(Field::Clamp) == 1;
        self.write_part(wave, op, |l| {
            let r = titan_core::num::fma(a.values[l], b.values[l], c.values[l]);
            let (bits, width) = match kind {
                MixKind::F32 => (out32(mode, r), 32),
                MixKind::Low | MixKind::High => (half::write(mode, r.into()), 16),
            };
            let value = int::u(if clamp { output(mode, bits, width, true, 0) } else { bits });
            let (mask, at) = match kind {
                MixKind::F32 => (u32::MAX, 0),
                MixKind::Low => (0xFFFF, 0),
                MixKind::High => (0xFFFF_0000, 16),
            };
            let undefined = (a.undefined | b.undefined | c.undefined) >> l & 1 == 1;
            (mask, value << at, if undefined { mask } else { 0 })
        })
    }

    fn mixed(&self, wave: usize, op: &Op, n: usize) -> Run<Mixed> {
        let inst = &op.inst;
        let high = inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2;
        let mut x = self.lanes(wave, op.sources[n], self.waves[wave].exec())?;
        let as_half = high >> n & 1 == 1;
        if as_half {
            let at = 16 * (inst.get(Field::OpSel) >> n & 1);
            x.each(|v| v >> at & 0xFFFF);
        }
        let (neg, abs, _) = inst.source_modifiers(n);
        let value = |v: u64| {
            let bits = modify(v, if as_half { 16 } else { 32 }, neg, abs);
            if as_half { half::to_f32(bits) } else { f32_of(bits) }
        };
        let undefined = lanes_of(ALL).filter(|l| x.shadow(*l) != 0).fold(0, |all, l| all | 1 << l);
        Ok(Mixed { values: x.values.map(value), undefined })
    }

    pub(super) fn one_lane(&mut self, wave: usize, op: &Op) -> Run<()> {
        let exec = self.waves[wave].exec();
        if matches!(op.kind, Kind::WriteLane) {
            let value = self.scalar_value(wave, op.sources[0])?;
            let origin = self.origin_of(wave, op.sources[0]);
            let lane = self.scalar_source(wave, op.sources[1], "the choice of a lane")? & 63;
            let (file, r) = vector_result(op)?;
            let file = self.waves[wave].file_mut(file);
            file.write(r, 1 << lane)?[lane as usize] = int::u(value.bits);
            if value.shadow != 0 {
                file.set_shadows(r, 1 << lane, origin, |_| int::u(value.shadow));
            }
            return Ok(());
        }
        let lane = match op.kind {
            // Without an active lane, the first lane is read.
            Kind::ReadFirstLane if exec == 0 => 0,
            Kind::ReadFirstLane => exec.trailing_zeros().into(),
            _ => self.scalar_source(wave, last(op)?, "the choice of a lane")? & 63,
        };
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let lane = lane as usize;
        let x = self.lanes(wave, op.sources[0], 1 << lane)?;
        self.set_result(wave, op, Value { bits: x.values[lane], shadow: x.shadow(lane) })
    }

    pub(super) fn swap(&mut self, wave: usize, op: &Op) -> Run<()> {
        let exec = self.waves[wave].exec();
        let (From::Vector(fa, a, _), From::Vector(fb, b, _)) = (op.sources[0].from, op.sources[1].from) else {
            return Err(unknown("registers are swapped"));
        };
        let w = &mut self.waves[wave];
        let get = |file: File, r: u8| -> Run<(Lanes, Lanes, Option<_>)> {
            let (file, r) = (w.file(file), usize::from(r));
            Ok((*file.read(r, exec)?, std::array::from_fn(|l| file.shadow(r, l)), file.origin(r)))
        };
        let (x, y) = (get(fa, a)?, get(fb, b)?);
        for (file, r, (values, shadows, origin)) in [(fa, a, y), (fb, b, x)] {
            let file = w.file_mut(file);
            let register = file.write(r.into(), exec)?;
            lanes_of(exec).for_each(|l| register[l] = values[l]);
            file.set_shadows(r.into(), exec, origin, |l| shadows[l]);
        }
        Ok(())
    }

    pub(super) fn matrix(&mut self, wave: usize, op: &Op) -> Run<()> {
        let shape = op.matrix.ok_or_else(|| unknown("the emulator has no rule for this instruction"))?;
        let mods = Modifiers {
            cbsz: op.inst.get(Field::Cbsz),
            abid: op.inst.get(Field::Abid),
            blgp: op.inst.get(Field::Blgp),
        };
        if !matrix::defined(shape, mods) {
            return Err(unknown("broadcasting more blocks than there are is not defined"));
        }
        // MMAs ignore `exec`: every lane takes part.
        let (a, b) = (self.registers(wave, op.sources[0])?, self.registers(wave, op.sources[1])?);
        let c = self.registers(wave, op.sources[2])?;
        let undefined = [&a, &b, &c].iter().any(|m| m.1.is_some());
        let origin = if undefined { self.origin(wave, op) } else { None };
        let d = matrix::multiply(shape, &a.0, &b.0, &c.0, mods, self.waves[wave].mode);
        let shadows = undefined.then(|| {
            let of = |m: &(Vec<Lanes>, Option<Vec<Lanes>>)| m.1.clone().unwrap_or_else(|| vec![[0; 64]; m.0.len()]);
            matrix::shadow(shape, &of(&a), &of(&b), &of(&c), mods)
        });
        let (file, first) = vector_result(op)?;
        let file = self.waves[wave].file_mut(file);
        for (i, values) in d.into_iter().enumerate() {
            *file.write(first + i, ALL)? = values;
            if let Some(shadows) = &shadows {
                file.set_shadows(first + i, ALL, origin, |l| shadows[i][l]);
            }
        }
        Ok(())
    }

    /// All registers of a matrix operand, and their shadows if some bits are undefined; a constant is repeated in each.
    fn registers(&self, wave: usize, source: Source) -> Run<(Vec<Lanes>, Option<Vec<Lanes>>)> {
        let n = usize::from(source.ty.dwords());
        match source.from {
            From::Vector(file, first, _) => {
                let file = self.waves[wave].file(file);
                let all = usize::from(first)..usize::from(first) + n;
                let values = all.clone().map(|r| file.read(r, ALL).copied()).collect::<Run<_>>()?;
                let undefined = all.clone().any(|r| file.undefined(r, ALL) != 0);
                let shadows = || all.map(|r| std::array::from_fn(|l| file.shadow(r, l))).collect();
                Ok((values, undefined.then(shadows)))
            }
            From::Constant(bits) => {
                let words = source.ty.elem.bits() / 32;
                #[expect(clippy::cast_possible_truncation, reason = "the words of a constant")]
                let word = |i: usize| (bits >> (32 * (i as u32 % words.max(1)))) as u32;
                Ok(((0..n).map(|i| [word(i); 64]).collect(), None))
            }
            From::Scalar(..) | From::Special(_) | From::Nothing => {
                Err(unknown("a matrix operand is a register or a constant"))
            }
        }
    }
}
