//! Comparisons, selection, and logic of predicates.

use super::{Decoded, Decoder};
use crate::emu::error::EmuError;
use crate::emu::lane::{LaneFn, Mode, float, int};
use crate::emu::op::{BoolOp, Op, PredSrc};
use crate::emu::ty::{Kind, Ty};

/// The names of the comparisons.
const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
];

/// The function of a comparison of this type; for a packed type, of one half.
fn comparison(cmp: &str, ty: Ty) -> Option<LaneFn> {
    match ty {
        Ty::F16x2 => float::compare(cmp, Ty::F16),
        Ty::Bf16x2 => float::compare(cmp, Ty::Bf16),
        _ if ty.is_float() => float::compare(cmp, ty),
        _ if ty.kind() == Kind::Bits => int::compare(cmp, ty).filter(|_| matches!(cmp, "eq" | "ne")),
        // `lo` and the like exist for unsigned types only.
        _ if ty.is_signed() && matches!(cmp, "lo" | "ls" | "hi" | "hs") => None,
        _ => int::compare(cmp, ty),
    }
}

impl Decoder<'_> {
    pub(super) fn comparison(&mut self) -> Decoded {
        match self.opcode() {
            "setp" => self.setp(),
            "set" => self.set(),
            "selp" => self.selp(),
            "slct" => self.slct(),
            _ => self.testp(),
        }
    }

    fn bool_op(&mut self) -> Option<BoolOp> {
        Some(match self.one_of(&["and", "or", "xor"])? {
            "and" => BoolOp::And,
            "or" => BoolOp::Or,
            _ => BoolOp::Xor,
        })
    }

    /// The predicate that a comparison is combined with: the last operand.
    fn combined(&self, op: Option<BoolOp>) -> Result<Option<(BoolOp, PredSrc)>, EmuError> {
        self.n_operands(&[3 + usize::from(op.is_some())])?;
        op.map(|op| Ok((op, self.pred(3)?))).transpose()
    }

    /// The comparison, what combines it with a predicate, and whether subnormals are zeros. `.ftz` may be anywhere, as for the assembler.
    fn compared(&mut self) -> Result<(&'static str, Option<BoolOp>, bool), EmuError> {
        let mut ftz = self.accept("ftz");
        let cmp = self.need(&COMPARISONS)?;
        ftz = ftz || self.accept("ftz");
        let op = self.bool_op();
        ftz = ftz || self.accept("ftz");
        Ok((cmp, op, ftz))
    }

    fn setp(&mut self) -> Decoded {
        let (cmp, op, ftz) = self.compared()?;
        let ty = self.ty()?;
        self.end()?;
        let f = comparison(cmp, ty).filter(|_| ty.bits() >= 16).ok_or_else(|| self.bad_type(ty))?;
        let combine = self.combined(op)?;
        let (dst, second) = self.pair(0, Ty::Pred, Ty::Pred)?;
        let packed = matches!(ty, Ty::F16x2 | Ty::Bf16x2);
        let src = [self.src(1, ty)?, self.src(2, ty)?];
        Ok(Op::Setp { f, mode: Mode { ftz, ..Mode::default() }, src, dst, second, combine, packed })
    }

    fn set(&mut self) -> Decoded {
        let (cmp, op, ftz) = self.compared()?;
        let (to, ty) = (self.ty()?, self.ty()?);
        self.end()?;
        let f =
            comparison(cmp, ty).filter(|_| !matches!(ty, Ty::F16x2 | Ty::Bf16x2)).ok_or_else(|| self.bad_type(ty))?;
        let truth = match to {
            Ty::U32 | Ty::S32 => 0xFFFF_FFFF,
            Ty::F32 => 0x3F80_0000,
            Ty::U16 | Ty::S16 => 0xFFFF,
            Ty::F16 => 0x3C00,
            Ty::Bf16 => 0x3F80,
            _ => return Err(self.bad_type(to)),
        };
        let (combine, dst) = (self.combined(op)?, self.dst(0, to)?);
        let src = [self.src(1, ty)?, self.src(2, ty)?];
        Ok(Op::Set { f, mode: Mode { ftz, ..Mode::default() }, src, dst, combine, truth })
    }

    fn selp(&mut self) -> Decoded {
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[4])?;
        let known = matches!(ty.kind(), Kind::Bits | Kind::Int) || matches!(ty, Ty::F32 | Ty::F64);
        if !known || !(16..=64).contains(&ty.bits()) {
            return Err(self.bad_type(ty));
        }
        Ok(Op::Select { dst: self.dst(0, ty)?, src: [self.src(1, ty)?, self.src(2, ty)?], by: self.pred(3)? })
    }

    fn slct(&mut self) -> Decoded {
        let ftz = self.accept("ftz");
        let (ty, by) = (self.ty()?, self.ty()?);
        self.end()?;
        self.n_operands(&[4])?;
        let f: LaneFn = match by {
            Ty::S32 if !ftz => |_, a, b, c| if c >> 31 & 1 == 0 { a } else { b },
            // NaN selects the second operand; −0 counts as not negative.
            Ty::F32 => |m, a, b, c| if float::in32(m, c) >= 0.0 { a } else { b },
            _ => return Err(self.bad_type(by)),
        };
        if !(16..=64).contains(&ty.bits()) {
            return Err(self.bad_type(ty));
        }
        self.lane(f, Mode { ftz, ..Mode::default() }, ty, [self.src(1, ty)?, self.src(2, ty)?, self.src(3, by)?])
    }

    fn testp(&mut self) -> Decoded {
        let property = self.need(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"])?;
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        let f = float::test(property, ty).ok_or_else(|| self.bad_type(ty))?;
        Ok(Op::Test { f, src: self.src(1, ty)?, dst: self.dst(0, Ty::Pred)? })
    }

    /// Decodes `and.pred` and the like, whose types and number of operands are already checked.
    pub(super) fn predicate_logic(&self, op: &str) -> Decoded {
        let dst = self.dst(0, Ty::Pred)?;
        let (op, b) = match op {
            "not" => (BoolOp::Xor, PredSrc::Const(true)),
            "and" => (BoolOp::And, self.pred(2)?),
            "or" => (BoolOp::Or, self.pred(2)?),
            "xor" => (BoolOp::Xor, self.pred(2)?),
            _ => return Err(self.bad_type(Ty::Pred)),
        };
        Ok(Op::Logic { op, dst, a: self.pred(1)?, b })
    }
}
