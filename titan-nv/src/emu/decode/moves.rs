//! `mov`, `cvt`, `cvta`.

use super::operand::Width;
use super::{Decoded, Decoder};
use crate::emu::ast::Operand;
use crate::emu::error::EmuError;
use crate::emu::lane::{LaneFn, Mode, Rnd, convert};
use crate::emu::op::{BoolOp, Op, PredSrc, Src};
use crate::emu::ty::{Kind, Space, Ty};

/// The roundings of conversions: to integers, of tf32, of numbers.
const ROUNDINGS: [&str; 9] = ["rni", "rzi", "rmi", "rpi", "rna", "rn", "rz", "rm", "rp"];

impl Decoder<'_> {
    pub(super) fn movement(&mut self) -> Decoded {
        match self.opcode() {
            "mov" => self.mov(),
            "cvt" => self.cvt(),
            "cvta" => self.cvta(),
            _ => self.isspacep(),
        }
    }

    fn mov(&mut self) -> Decoded {
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        if ty == Ty::Pred {
            return Ok(Op::Logic { op: BoolOp::Or, dst: self.dst(0, ty)?, a: self.pred(1)?, b: PredSrc::Const(false) });
        }
        if ty.bits() > 64 || ty.bits() < 16 {
            return Err(self.bad_type(ty));
        }
        match (self.operand(0)?, self.operand(1)?) {
            (Operand::Vector(parts), _) => {
                let (part, bits) = self.part(ty, parts.len())?;
                let parts = parts.iter().map(|o| self.dst_of(o, part, Width::Same)).collect::<Result<_, _>>()?;
                Ok(Op::Unpack { parts, src: self.src(1, ty)?, bits })
            }
            (_, Operand::Vector(parts)) => {
                let (part, bits) = self.part(ty, parts.len())?;
                let parts = parts.iter().map(|o| self.src_of(o, part, Width::Same)).collect::<Result<_, _>>()?;
                Ok(Op::Pack { dst: self.dst(0, ty)?, parts, bits })
            }
            (_, Operand::Special(_)) => {
                // The upper bits of the source are zero, and a narrow destination takes the lower ones.
                let f: LaneFn = match ty.bits() {
                    16 => |_, a, _, _| a & 0xFFFF,
                    32 => |_, a, _, _| a & 0xFFFF_FFFF,
                    _ => |_, a, _, _| a,
                };
                self.lane(f, Mode::default(), ty, self.srcs(1, 1, ty)?)
            }
            _ => self.lane(|_, a, _, _| a, Mode::default(), ty, self.srcs(1, 1, ty)?),
        }
    }

    /// The type and width of each of `n` parts of a packed operand.
    fn part(&self, ty: Ty, n: usize) -> Result<(Ty, u32), EmuError> {
        Ok(match (ty.bits(), n) {
            (16, 2) => return Err(self.unknown("a move of bytes to and from one register")),
            (32, 2) | (64, 4) => (Ty::B16, 16),
            (64, 2) => (Ty::B32, 32),
            (32, 4) => return Err(self.unknown("a move of bytes to and from one register")),
            _ => return Err(self.misfit(&format!("{n} parts do not make `.{}`", ty.name()))),
        })
    }

    fn cvt(&mut self) -> Decoded {
        if self.accept("pack") {
            return self.cvt_pack();
        }
        // The modifiers may be in any order, as for the assembler.
        let (mut rnd, mut satfinite, mut mode) = (None, false, Mode::default());
        loop {
            if rnd.is_none()
                && let Some(text) = self.one_of(&ROUNDINGS)
            {
                let direction = match &text[..2] {
                    "rz" => Rnd::Zero,
                    "rm" => Rnd::Down,
                    "rp" => Rnd::Up,
                    _ if text == "rna" => Rnd::Away,
                    _ => Rnd::Near,
                };
                rnd = Some((direction, text.len() == 3 && text != "rna"));
            } else if !mode.relu && self.accept("relu") {
                mode.relu = true;
            } else if !mode.sat && self.accept("satfinite") {
                (mode.sat, satfinite) = (true, true);
            } else if !mode.sat && self.accept("sat") {
                mode.sat = true;
            } else if !mode.ftz && self.accept("ftz") {
                mode.ftz = true;
            } else {
                break;
            }
        }
        mode.rnd = rnd.map_or(Rnd::Near, |r| r.0);
        let (to, from) = (self.ty()?, self.ty()?);
        self.end()?;
        if matches!(to, Ty::F16x2 | Ty::Bf16x2 | Ty::E4m3x2 | Ty::E5m2x2) {
            return self.cvt_pair(mode, to, from, rnd.is_some());
        }
        self.n_operands(&[2])?;
        if !convert::knows(to) || !convert::knows(from) || from == Ty::Tf32 {
            return Err(self.bad_type(to));
        }
        self.check_cvt(to, from, rnd)?;
        let integral = rnd.is_some_and(|r| r.1) || (to == from && to.is_float() && rnd.is_some());
        if satfinite && to != Ty::Tf32 && mode.sat {
            // `.satfinite` of halves clamps to the largest number.
            let (f, mode) = (convert::to_half_satfinite(to).ok_or_else(|| self.bad_type(to))?, mode);
            return self.lane(f, mode, to, [self.src(1, from)?, Src::Imm(0), Src::Imm(0)]);
        }
        let dst = self.dst_of(self.operand(0)?, to, Width::Wider)?;
        let src = self.src_of(self.operand(1)?, from, Width::Wider)?;
        let widen = match self.declared(self.operand(0)?) {
            Some(declared) if to.is_signed() && declared.bits() > to.bits() => declared.bits(),
            _ => 0,
        };
        mode.aux = convert::pack(to, from, integral, widen);
        Ok(Op::Lane { f: convert::scalar, mode, all: None, dst, src: [src, Src::Imm(0), Src::Imm(0)] })
    }

    /// Checks that a conversion has a rounding modifier exactly if it needs one, and of the right kind.
    fn check_cvt(&self, to: Ty, from: Ty, rnd: Option<(Rnd, bool)>) -> Result<(), EmuError> {
        let (int_to, int_from) = (to.kind() == Kind::Int, from.kind() == Kind::Int);
        let other_half = to != from && to.bits() == from.bits();
        let narrows = to.is_float() && (int_from || to.bits() < from.bits() || to == Ty::Tf32 || other_half);
        let wrong = match rnd {
            None if narrows => Some("a rounding is needed"),
            None if int_to && from.is_float() => Some("a rounding to integer is needed"),
            Some((_, true)) if int_to && int_from => Some("it does not round"),
            Some((_, false)) if int_to => Some("a rounding to integer is needed"),
            Some((_, true)) if !int_to && to != from => Some("it does not round to an integer"),
            Some((_, false)) if !narrows => Some("it does not round"),
            _ => None,
        };
        wrong.map_or(Ok(()), |w| {
            Err(self.error(crate::emu::error::ErrorCode::Unknown, format!("`{}`: {w}", self.full())))
        })
    }

    fn cvt_pair(&mut self, mode: Mode, to: Ty, from: Ty, rounds: bool) -> Decoded {
        let fp8 = matches!(to, Ty::E4m3x2 | Ty::E5m2x2);
        if !rounds || (fp8 && !mode.sat) {
            let what = if rounds { "`.satfinite` is needed" } else { "a rounding is needed" };
            return Err(self.error(crate::emu::error::ErrorCode::Unknown, format!("`{}`: {what}", self.full())));
        }
        if from == Ty::F32 {
            self.n_operands(&[3])?;
            let f = convert::pair_from_f32(to).ok_or_else(|| self.bad_type(to))?;
            return self.lane(f, mode, to, self.srcs(1, 2, Ty::F32)?);
        }
        self.n_operands(&[2])?;
        let f = convert::pair_to_pair(to, from).ok_or_else(|| self.bad_type(from))?;
        self.lane(f, Mode { sat: false, ..mode }, to, self.srcs(1, 1, from)?)
    }

    fn cvt_pack(&mut self) -> Decoded {
        if !self.accept("sat") {
            return Err(self.wrong_part("`.sat`"));
        }
        let (to, from) = (self.ty()?, self.ty()?);
        let three = self.accept("b32");
        self.end()?;
        let bytes = matches!(to, Ty::U8 | Ty::S8);
        self.n_operands(&[if bytes { 4 } else { 3 }])?;
        let f = convert::pack_integers(to).filter(|_| from == Ty::S32 && three == bytes);
        let f = f.ok_or_else(|| self.bad_type(to))?;
        let mut src = self.srcs(1, 2, Ty::S32)?;
        if bytes {
            src[2] = self.src(3, Ty::B32)?;
        }
        self.lane(f, Mode::default(), Ty::B32, src)
    }

    fn cvta(&mut self) -> Decoded {
        let to_space = self.accept("to");
        let space = self.space()?;
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        if !matches!(ty, Ty::U64 | Ty::U32) {
            return Err(self.bad_type(ty));
        }
        if ty == Ty::U32 {
            return Err(self.unknown("a generic address of 32 bits"));
        }
        Ok(Op::Convert { dst: self.dst(0, ty)?, src: self.src(1, ty)?, space, to_space })
    }

    /// Takes a state space, which is required.
    pub(super) fn space(&mut self) -> Result<Space, EmuError> {
        let space = self.peek().and_then(Space::named).ok_or_else(|| self.wrong_part("a state space"))?;
        self.at += 1;
        Ok(space)
    }

    fn isspacep(&mut self) -> Decoded {
        let space = self.space()?;
        self.end()?;
        self.n_operands(&[2])?;
        Ok(Op::IsSpace { dst: self.dst(0, Ty::Pred)?, src: self.src(1, Ty::U64)?, space })
    }
}
