//! Vector instructions: the computation in every active lane, and the write of results.
//!
//! Each function computes values and, if a source has undefined bits, the shadow of its result by the rules of `shadow`.

use super::Run;
use super::source::{Bits, lanes_of, shadows};
use crate::emu::absent::{self, Absent};
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::lane::float::{modify, output};
use crate::emu::lane::{CompareFn, LaneFn, Mode, divide, int};
use crate::emu::op::{CarryKind, From, Kind, Op, Source, To};
use crate::emu::scalars::Value;
use crate::emu::shadow::compare::CompareShadow;
use crate::emu::shadow::{self, ShadowFn, difference, ones, product, sum};
use crate::emu::vectors::{Origin, Vectors};
use crate::emu::wave::ALL;
use crate::isa::operand::{EXEC, VCC};
use crate::isa::{Field, Form, Mods, Ty};

const WORD: u64 = 0xFFFF_FFFF;

impl Group<'_> {
    pub(super) fn vector(&mut self, wave: usize, op: &Op) -> Run<()> {
        self.check_mode(wave, op)?;
        match op.kind {
            Kind::Lane(f, rule) => self.each(wave, op, f, rule),
            Kind::Packed(f) => self.packed(wave, op, f),
            Kind::PackedInt(f, rule) => self.packed_int(wave, op, f, rule),
            Kind::Compare(f, rule) => self.compare(wave, op, f, rule),
            Kind::Select => self.select(wave, op),
            Kind::Carry(kind) => self.carry(wave, op, kind),
            Kind::Mad64 { signed } => self.mad64(wave, op, signed),
            Kind::DivScale | Kind::DivFmas => self.division(wave, op),
            Kind::ToSmall => self.shrink(wave, op),
            Kind::Mix(kind) => self.mix(wave, op, kind),
            Kind::PackedMove => self.packed_move(wave, op),
            Kind::Mbcnt { high } => self.count_below(wave, op, high),
            Kind::ReadLane | Kind::ReadFirstLane | Kind::WriteLane => self.one_lane(wave, op),
            Kind::Swap => self.swap(wave, op),
            _ => Err(Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction")),
        }
    }

    /// Checks that the rounding mode is to nearest; others are not modelled.
    fn check_mode(&self, wave: usize, op: &Op) -> Run<()> {
        let mode = self.waves[wave].mode;
        if op.rounds && (mode.round_32 != 0 || mode.round_16_64 != 0) {
            return Err(absent::refuse(
                Absent::Rounding,
                format_args!("`{}` rounds as `MODE` says", op.inst.row().name),
            ));
        }
        Ok(())
    }

    fn each(&mut self, wave: usize, op: &Op, f: LaneFn, rule: Option<ShadowFn>) -> Run<()> {
        let (mode, exec) = (self.waves[wave].mode, self.waves[wave].exec());
        let first = self.read(wave, op, 0)?;
        let rest = |n: usize| -> Run<Option<Bits>> {
            if op.sources.len() > n { self.read(wave, op, n).map(|r| Some(r.bits)) } else { Ok(None) }
        };
        let (second, third) = (rest(1)?, rest(2)?);
        let x = |l: usize| {
            [
                first.bits.values[l],
                second.as_ref().map_or(0, |v| v.values[l]),
                third.as_ref().map_or(0, |v| v.values[l]),
            ]
        };
        let mut values = [0; 64];
        lanes_of(exec).for_each(|l| values[l] = f(mode, x(l)));
        let all: Vec<&Bits> = [Some(&first.bits), second.as_ref(), third.as_ref()].into_iter().flatten().collect();
        let width = ones(op.results.first().map_or(32, |r| r.ty.bits()));
        let shadows = shadows(&all, exec, |l| {
            let s: [u64; 3] = std::array::from_fn(|n| all.get(n).map_or(0, |b| b.shadow(l)));
            match (s, rule) {
                ([0, 0, 0], _) => 0,
                (_, Some(rule)) => rule(x(l), s),
                (_, None) => width,
            }
        });
        self.write(wave, op, &Bits { values, shadows }, first.valid)
    }

    /// Writes the first result in the active and valid lanes, with output modifiers, to the selected part.
    pub(super) fn write(&mut self, wave: usize, op: &Op, result: &Bits, valid: u64) -> Run<()> {
        let origin = if result.shadows.is_some() { self.origin(wave, op) } else { None };
        let w = &mut self.waves[wave];
        let lanes = w.exec() & valid;
        let place = *op.results.first().ok_or_else(|| Fail::new(ErrorCode::Unknown, "a result is missing"))?;
        let To::Vector(file, first, n) = place.to else {
            return Err(Fail::new(ErrorCode::Unknown, "no vector register for the result"));
        };
        let (clamp, omod) = (op.inst.get(Field::Clamp) == 1, op.inst.get(Field::Omod));
        let (mode, bits) = (w.mode, place.ty.bits());
        let adjusts = (clamp || omod != 0) && place.ty.elem.is_float();
        let finish = |x: u64| if adjusts { outputs(mode, x, place.ty, clamp, omod) } else { x };
        let shadow = |l: usize| match result.shadow(l) {
            0 => 0,
            _ if adjusts => ones(bits),
            s => s,
        };
        let (file, first) = (w.file_mut(file), usize::from(first));
        #[expect(clippy::cast_possible_truncation, reason = "the words of a result")]
        if n == 2 {
            for (r, shift) in [(first, 0), (first + 1, 32)] {
                let register = file.write(r, lanes)?;
                lanes_of(lanes).for_each(|l| register[l] = (finish(result.values[l]) >> shift) as u32);
                if result.shadows.is_some() {
                    file.set_shadows(r, lanes, origin, |l| (shadow(l) >> shift) as u32);
                }
            }
        } else {
            let part = part(op, bits);
            let kept = part.kept_shadows(file, first, lanes);
            let register = file.write(first, lanes)?;
            lanes_of(lanes).for_each(|l| register[l] = part.merge(register[l], finish(result.values[l]) as u32));
            if result.shadows.is_some() || kept.is_some() {
                let old = |l: usize| kept.as_ref().map_or(0, |k| k[l]);
                file.set_shadows(first, lanes, origin, |l| part.merge(old(l), shadow(l) as u32));
            }
        }
        Ok(())
    }

    /// Packed floats: each half of the result is computed from the halves of the sources that are selected for it.
    fn packed(&mut self, wave: usize, op: &Op, f: LaneFn) -> Run<()> {
        let (mode, exec) = (self.waves[wave].mode, self.waves[wave].exec());
        let bits = op.results.first().map_or(32, |r| r.ty.elem.bits());
        let sources = (0..op.sources.len()).map(|n| self.halves(wave, op, n, bits)).collect::<Run<Vec<_>>>()?;
        let (clamp, mut values) = (op.inst.get(Field::Clamp) == 1, [0; 64]);
        for l in lanes_of(exec) {
            let side = |high: usize| {
                let get = |n: usize| sources.get(n).map_or(0, |s: &[Bits; 2]| s[high].values[l]);
                let r = f(mode, [get(0), get(1), get(2)]);
                if clamp { output(mode, r, bits, true, 0) } else { r }
            };
            values[l] = side(0) | side(1) << bits;
        }
        let all: Vec<&Bits> = sources.iter().flatten().collect();
        let shadows = shadows(&all, exec, |l| {
            let side = |high: usize| sources.iter().any(|s| s[high].shadow(l) != 0);
            let each = |high: usize| if side(high) { ones(bits) } else { 0 };
            each(0) | each(1) << bits
        });
        self.write(wave, op, &Bits { values, shadows }, ALL)
    }

    /// The values that a source provides for the lower and for the upper half of the result.
    fn halves(&self, wave: usize, op: &Op, n: usize, bits: u32) -> Run<[Bits; 2]> {
        let source = *op.sources.get(n).ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))?;
        let inst = &op.inst;
        let explicit = inst.row().mods.has(Mods::OP_SEL_HI);
        let high = inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2;
        let (low_half, high_half) = if explicit { (inst.get(Field::OpSel) >> n & 1, high >> n & 1) } else { (0, 1) };
        let x = self.chosen(wave, source, [low_half, high_half])?;
        let (neg_low, neg_high) = (inst.get(Field::Neg) >> n & 1 == 1, inst.get(Field::NegHi) >> n & 1 == 1);
        let float = source.ty.elem.is_float();
        let mask = (1_u64 << bits) - 1;
        let pick = |half: u32, neg: bool| {
            let mut part = x.clone();
            part.each(|v| v >> (bits * half) & mask);
            part.values.iter_mut().for_each(|v| *v = modify(*v, bits, neg && float, false));
            part
        };
        Ok([pick(low_half, neg_low), pick(high_half, neg_high)])
    }

    /// Selects words of a register pair; the word that is not selected may be in flight.
    pub(super) fn chosen(&self, wave: usize, source: Source, words: [u32; 2]) -> Run<Bits> {
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
        let mut x = self.lanes(wave, Source { from, ..source }, exec)?;
        x.each(|v| v << (32 * only));
        Ok(x)
    }

    /// Packed integers and dot products: functions of registers whose halves are selected before.
    fn packed_int(&mut self, wave: usize, op: &Op, f: LaneFn, rule: Option<ShadowFn>) -> Run<()> {
        let (mode, exec) = (self.waves[wave].mode, self.waves[wave].exec());
        let whole = |n: usize| -> Run<Bits> {
            let source: Source = op.sources[n];
            let packed = source.ty.count == 2 && op.inst.row().mods.has(Mods::OP_SEL_HI);
            if packed {
                let [low, high] = self.halves(wave, op, n, 16)?;
                let both = |low: u64, high: u64| low | high << 16;
                let values = std::array::from_fn(|l| both(low.values[l], high.values[l]));
                let shadows = shadows(&[&low, &high], ALL, |l| both(low.shadow(l), high.shadow(l)));
                return Ok(Bits { values, shadows });
            }
            let mut x = self.lanes(wave, source, exec)?;
            let (low, high) = (op.inst.get(Field::Neg) >> n & 1 == 1, op.inst.get(Field::NegHi) >> n & 1 == 1);
            // Either two halves of `f16`, or one `f32`.
            let flip =
                if source.ty.count == 2 { u64::from(low) << 15 | u64::from(high) << 31 } else { u64::from(low) << 31 };
            x.values.iter_mut().for_each(|v| *v ^= flip);
            Ok(x)
        };
        let sources = (0..op.sources.len()).map(whole).collect::<Run<Vec<_>>>()?;
        let x = |l: usize| -> [u64; 3] { std::array::from_fn(|n| sources.get(n).map_or(0, |s| s.values[l])) };
        let mut values = [0; 64];
        lanes_of(exec).for_each(|l| values[l] = f(mode, x(l)));
        let all: Vec<&Bits> = sources.iter().collect();
        let shadows = shadows(&all, exec, |l| {
            let s: [u64; 3] = std::array::from_fn(|n| sources.get(n).map_or(0, |b| b.shadow(l)));
            match (s, rule) {
                ([0, 0, 0], _) => 0,
                (_, Some(rule)) => rule(x(l), s),
                (_, None) => WORD,
            }
        });
        self.write(wave, op, &Bits { values, shadows }, ALL)
    }

    fn packed_move(&mut self, wave: usize, op: &Op) -> Run<()> {
        let select = op.inst.get(Field::OpSel);
        let source = |n: usize| self.chosen(wave, op.sources[n], [select >> n & 1; 2]);
        let (a, b) = (source(0)?, source(1)?);
        let half = |x: u64, n: u32| x >> (32 * (select >> n & 1)) & WORD;
        let values = std::array::from_fn(|l| half(a.values[l], 0) | half(b.values[l], 1) << 32);
        let shadows = shadows(&[&a, &b], ALL, |l| half(a.shadow(l), 0) | half(b.shadow(l), 1) << 32);
        self.write(wave, op, &Bits { values, shadows }, ALL)
    }

    fn compare(&mut self, wave: usize, op: &Op, f: CompareFn, rule: Option<CompareShadow>) -> Run<()> {
        let (mode, exec) = (self.waves[wave].mode, self.waves[wave].exec());
        let (a, b) = (self.read(wave, op, 0)?.bits, self.read(wave, op, 1)?.bits);
        let x = |l: usize| [a.values[l], b.values[l]];
        let bits = lanes_of(exec).filter(|l| f(mode, [a.values[*l], b.values[*l], 0])).fold(0, |all, l| all | 1 << l);
        let mut shadow = 0;
        if a.shadows.is_some() || b.shadows.is_some() {
            let undefined = |l: &usize| {
                let s = [a.shadow(*l), b.shadow(*l)];
                s != [0; 2] && rule.is_none_or(|rule| rule(x(*l), s))
            };
            shadow = lanes_of(exec).filter(undefined).fold(0, |all, l| all | 1 << l);
        }
        let origin = if shadow == 0 { None } else { self.origin(wave, op) };
        let value = Value { bits, shadow };
        if op.inst.row().name.starts_with("v_cmpx") {
            self.waves[wave].set_scalar(EXEC, 2, value, origin)?;
        }
        self.set_result(wave, op, value)
    }

    /// `v_cndmask`.
    fn select(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (a, b) = (self.read(wave, op, 0)?, self.read(wave, op, 1)?.bits);
        let mask = self.scalar_value(wave, last(op)?)?;
        let values = std::array::from_fn(|l| if mask.bits >> l & 1 == 1 { b.values[l] } else { a.bits.values[l] });
        let chosen = |l: usize| {
            let every = |m: u64| if m >> l & 1 == 1 { u64::MAX } else { 0 };
            let (x, y) = ([b.values[l], b.shadow(l)], [a.bits.values[l], a.bits.shadow(l)]);
            shadow::select(every(mask.bits), every(mask.shadow), x, y)
        };
        let shadows = if mask.shadow == 0 {
            shadows(&[&a.bits, &b], ALL, chosen)
        } else {
            Some(Box::new(std::array::from_fn(chosen)))
        };
        self.write(wave, op, &Bits { values, shadows }, a.valid)
    }

    /// `v_mbcnt`: adds the number of bits of a mask that are below the lane's.
    fn count_below(&mut self, wave: usize, op: &Op, high: bool) -> Run<()> {
        let (a, b) = (self.read(wave, op, 0)?.bits, self.read(wave, op, 1)?.bits);
        let below = |l: usize| {
            let below = (1_u64 << l) - 1;
            if high { below >> 32 } else { below & WORD }
        };
        let values =
            std::array::from_fn(|l| u64::from(int::u(b.values[l]).wrapping_add((a.values[l] & below(l)).count_ones())));
        let shadows = shadows(&[&a, &b], ALL, |l| if a.shadow(l) & below(l) | b.shadow(l) == 0 { 0 } else { WORD });
        self.write(wave, op, &Bits { values, shadows }, ALL)
    }

    /// Writes a mask of lanes to the second result.
    fn set_mask(&mut self, wave: usize, op: &Op, mask: Value, origin: Option<Origin>) -> Run<()> {
        match op.results.get(1).map(|r| r.to) {
            Some(To::Scalar(code, n)) => self.waves[wave].set_scalar(code, n, mask, origin),
            Some(To::Vector(..)) | None => Err(Fail::new(ErrorCode::Unknown, "no scalar register for the mask")),
        }
    }

    fn carry(&mut self, wave: usize, op: &Op, kind: CarryKind) -> Run<()> {
        let exec = self.waves[wave].exec();
        let (a, b) = (self.read(wave, op, 0)?, self.read(wave, op, 1)?.bits);
        let carried = if op.sources.len() > 2 { self.scalar_value(wave, op.sources[2])? } else { Value::default() };
        let clamp = op.inst.get(Field::Clamp) == 1;
        let (mut values, mut mask) = ([0; 64], Value::default());
        let mut all = Box::new([0; 64]);
        for l in lanes_of(exec) {
            let (x, y, c) = (a.bits.values[l] & WORD, b.values[l] & WORD, carried.bits >> l & 1);
            let exact = kind.exact(x, y, c);
            let kept = if clamp { exact.clamp(0, u32::MAX.into()) } else { exact };
            values[l] = kept.cast_unsigned() & WORD;
            mask.bits |= u64::from(kind.overflows(exact)) << l;
            let s = [a.bits.shadow(l), b.shadow(l), carried.shadow >> l & 1];
            if s != [0; 3] {
                all[l] = if clamp { WORD } else { kind.shadow([x, y, c], s) };
                mask.shadow |= u64::from(kind.overflow_is_undefined([x, y, c], s)) << l;
            }
        }
        let shadows = all.iter().any(|s| *s != 0).then_some(all);
        let mask_origin = if mask.shadow == 0 { None } else { self.origin(wave, op) };
        self.write(wave, op, &Bits { values, shadows }, a.valid)?;
        self.set_mask(wave, op, mask, mask_origin)
    }

    fn mad64(&mut self, wave: usize, op: &Op, signed: bool) -> Run<()> {
        let exec = self.waves[wave].exec();
        let read = |n: usize| self.read(wave, op, n).map(|r| r.bits);
        let (a, b, c) = (read(0)?, read(1)?, read(2)?);
        let (mut values, mut mask) = ([0; 64], Value::default());
        for l in lanes_of(exec) {
            let (x, y) = (int::u(a.values[l]), int::u(b.values[l]));
            let out = if signed {
                let product = i64::from(x.cast_signed()) * i64::from(y.cast_signed());
                let (sum, out) = product.overflowing_add(c.values[l].cast_signed());
                values[l] = sum.cast_unsigned();
                out
            } else {
                let (sum, out) = (u64::from(x) * u64::from(y)).overflowing_add(c.values[l]);
                values[l] = sum;
                out
            };
            mask.bits |= u64::from(out) << l;
            mask.shadow |= u64::from(a.shadow(l) | b.shadow(l) | c.shadow(l) != 0) << l;
        }
        let extend = |v: u64| if signed { i64::from(int::i(v)).cast_unsigned() } else { v & WORD };
        let shadows = shadows(&[&a, &b, &c], exec, |l| {
            let (x, y) = (extend(a.values[l]), extend(b.values[l]));
            sum(x.wrapping_mul(y), product(x, a.shadow(l), y, b.shadow(l)), c.values[l], c.shadow(l))
        });
        let mask_origin = if mask.shadow == 0 { None } else { self.origin(wave, op) };
        self.write(wave, op, &Bits { values, shadows }, ALL)?;
        self.set_mask(wave, op, mask, mask_origin)
    }

    fn division(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (exec, mode) = (self.waves[wave].exec(), self.waves[wave].mode);
        let name = op.inst.row().name;
        let read = |n: usize| self.read(wave, op, n).map(|r| r.bits);
        let (a, b, c) = (read(0)?, read(1)?, read(2)?);
        let scales = matches!(op.kind, Kind::DivScale);
        let scaled = if scales { Value::default() } else { self.waves[wave].scalar(VCC, 2)? };
        let (mut values, mut mask, mut all) = ([0; 64], Value::default(), Box::new([0; 64]));
        let width = ones(op.results.first().map_or(32, |r| r.ty.bits()));
        for l in lanes_of(exec) {
            let x = [a.values[l], b.values[l], c.values[l]];
            if let Some((value, flag)) = divide::div_scale(name, x) {
                values[l] = value;
                mask.bits |= u64::from(flag) << l;
            } else if let Some(value) = divide::div_fmas(name, mode, x, scaled.bits >> l & 1 == 1) {
                values[l] = value;
            }
            if a.shadow(l) | b.shadow(l) | c.shadow(l) | scaled.shadow >> l & 1 != 0 {
                all[l] = width;
                mask.shadow |= 1 << l;
            }
        }
        let shadows = (mask.shadow != 0).then_some(all);
        let mask_origin = if mask.shadow == 0 { None } else { self.origin(wave, op) };
        self.write(wave, op, &Bits { values, shadows }, ALL)?;
        if scales { self.set_mask(wave, op, mask, mask_origin) } else { Ok(()) }
    }
}

impl CarryKind {
    const fn exact(self, x: u64, y: u64, c: u64) -> i64 {
        let (x, y, c) = (x.cast_signed(), y.cast_signed(), c.cast_signed());
        match self {
            CarryKind::Add => x + y + c,
            CarryKind::Sub => x - y - c,
            CarryKind::SubRev => y - x - c,
        }
    }

    /// Whether there is a carry or borrow.
    const fn overflows(self, exact: i64) -> bool {
        exact < 0 || exact > u32::MAX as i64
    }

    /// The shadow of the sum or difference.
    fn shadow(self, [x, y, c]: [u64; 3], [sx, sy, sc]: [u64; 3]) -> u64 {
        let all = match self {
            CarryKind::Add => sum(x.wrapping_add(y), sum(x, sx, y, sy), c, sc),
            CarryKind::Sub => difference(x.wrapping_sub(y), difference(x, sx, y, sy), c, sc),
            CarryKind::SubRev => difference(y.wrapping_sub(x), difference(y, sy, x, sx), c, sc),
        };
        all & WORD
    }

    /// Whether the carry differs between the smallest and the largest operands that the shadows allow.
    fn overflow_is_undefined(self, x: [u64; 3], s: [u64; 3]) -> bool {
        let least: [u64; 3] = std::array::from_fn(|n| x[n] & !s[n]);
        let most: [u64; 3] = std::array::from_fn(|n| x[n] | s[n]);
        let (low, high) = match self {
            CarryKind::Add => (least, most),
            CarryKind::Sub => ([least[0], most[1], most[2]], [most[0], least[1], least[2]]),
            CarryKind::SubRev => ([most[0], least[1], most[2]], [least[0], most[1], least[2]]),
        };
        let out = |[x, y, c]: [u64; 3]| self.overflows(self.exact(x, y, c));
        out(low) != out(high)
    }
}

/// Every float of a result, clamped and multiplied.
fn outputs(mode: Mode, x: u64, ty: Ty, clamp: bool, omod: u32) -> u64 {
    let width = ty.elem.bits();
    let each =
        |i: u8| output(mode, x >> (width * u32::from(i)) & ones(width), width, clamp, omod) << (width * u32::from(i));
    (0..ty.count).fold(0, |all, i| all | each(i))
}

pub(super) fn last(op: &Op) -> Run<Source> {
    op.sources.last().copied().ok_or_else(|| Fail::new(ErrorCode::Unknown, "a source is missing"))
}

/// The bits of a register to which a result is written, and the treatment of the others.
struct Part {
    at: u32,
    bits: u32,
    rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The shadows of a register of which a part is kept, if some bits are undefined.
    fn kept_shadows(&self, file: &Vectors, r: usize, lanes: u64) -> Option<Box<[u32; 64]>> {
        let kept = self.bits != 32 && self.rest == Rest::Keep && file.undefined(r, lanes) != 0;
        kept.then(|| Box::new(std::array::from_fn(|l| file.shadow(r, l))))
    }

    /// The new contents of a register; the same for shadows, where a sign that is undefined spreads as well.
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
