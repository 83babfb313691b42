//! Integer and floating-point arithmetic.

use super::{Decoded, Decoder};
use crate::emu::error::EmuError;
use crate::emu::lane::{LaneFn, Mode, Rnd, approx, float, half, int, warp};
use crate::emu::op::{Op, Src};
use crate::emu::ty::{Kind, Ty};

const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

impl Decoder<'_> {
    pub(super) fn arithmetic(&mut self) -> Decoded {
        match self.opcode() {
            "and" | "or" | "xor" | "not" | "cnot" => self.bitwise(),
            "shl" | "shr" => self.shift(),
            "shf" => self.funnel(),
            "prmt" => self.permute(),
            "bfe" | "bfi" => self.bit_field(),
            "popc" | "clz" | "brev" | "bfind" => self.bit_count(),
            "lop3" => self.lop3(),
            "dp4a" => self.dot(),
            "mul" | "mad" | "madc" if self.integer_product() => self.product(),
            "mul24" | "mad24" => self.product24(),
            "addc" | "subc" => self.carry(),
            "add" | "sub" if self.peek() == Some("cc") => self.carry(),
            op => {
                let last = self.instr.parts.last().and_then(|p| Ty::named(p));
                if last.is_some_and(Ty::is_float) { self.floating(op) } else { self.integer_op(op) }
            }
        }
    }

    pub(super) fn lane(&self, f: LaneFn, mode: Mode, dst: Ty, srcs: [Src; 3]) -> Decoded {
        Ok(Op::Lane { f, mode, all: None, dst: self.dst(0, dst)?, src: srcs })
    }

    fn integer_op(&mut self, op: &str) -> Decoded {
        let saturates = self.accept("sat");
        let ty = self.ty()?;
        self.end()?;
        let n = match op {
            "abs" | "neg" => 1,
            "sad" => 3,
            _ => 2,
        };
        self.n_operands(&[n + 1])?;
        let f = if saturates { int::saturating(op).filter(|_| ty == Ty::S32) } else { int::arithmetic(op, ty) };
        let wrong = matches!(ty.kind(), Kind::Bits | Kind::Pred) || (matches!(op, "abs" | "neg") && !ty.is_signed());
        let f = f.filter(|_| !wrong).ok_or_else(|| self.bad_type(ty))?;
        self.lane(f, Mode::default(), ty, self.srcs(1, n, ty)?)
    }

    /// Whether `mul` or `mad` is an integer instruction.
    fn integer_product(&self) -> bool {
        self.instr.parts.last().and_then(|p| Ty::named(p)).is_some_and(|t| t.kind() == Kind::Int)
    }

    fn product(&mut self) -> Decoded {
        let op = self.opcode();
        let part = self.need(&["lo", "hi", "wide"])?;
        let saturates = op == "mad" && part == "hi" && self.accept("sat");
        let carries = self.accept("cc");
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[if op == "mul" { 3 } else { 4 }])?;
        let f = if saturates { int::saturating("mad.hi").filter(|_| ty == Ty::S32) } else { int::multiply(part, ty) };
        let f = f.ok_or_else(|| self.bad_type(ty))?;
        let out = if part == "wide" { wide(ty).ok_or_else(|| self.bad_type(ty))? } else { ty };
        let mut src = self.srcs(1, 2, ty)?;
        if op != "mul" {
            src[2] = self.src(3, out)?;
        }
        if carries || op == "madc" {
            if part == "wide" || ty.bits() < 32 {
                return Err(self.bad_type(ty));
            }
            let (dst, bits) = (self.dst(0, ty)?, ty.bits());
            let product = Some((f, Mode::default()));
            return Ok(Op::Carry { dst, src, product, bits, subtract: false, uses: op == "madc", sets: carries });
        }
        self.lane(f, Mode::default(), out, src)
    }

    fn product24(&mut self) -> Decoded {
        let part = self.need(&["lo", "hi"])?;
        let ty = self.ty()?;
        self.end()?;
        let n = if self.opcode() == "mul24" { 2 } else { 3 };
        self.n_operands(&[n + 1])?;
        let f = int::multiply24(part, ty).ok_or_else(|| self.bad_type(ty))?;
        self.lane(f, Mode::default(), ty, self.srcs(1, n, ty)?)
    }

    fn carry(&mut self) -> Decoded {
        let op = self.opcode();
        let sets = self.accept("cc");
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        if !matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64) {
            return Err(self.bad_type(ty));
        }
        let (dst, src, subtract) = (self.dst(0, ty)?, self.srcs(1, 2, ty)?, op.starts_with("sub"));
        Ok(Op::Carry { dst, src, product: None, bits: ty.bits(), subtract, uses: op.ends_with('c'), sets })
    }

    fn bitwise(&mut self) -> Decoded {
        let op = self.opcode();
        let ty = self.ty()?;
        self.end()?;
        let n = if matches!(op, "not" | "cnot") { 1 } else { 2 };
        self.n_operands(&[n + 1])?;
        if ty == Ty::Pred {
            return self.predicate_logic(op);
        }
        let f = int::logic(op, ty).filter(|_| ty.kind() == Kind::Bits && (16..=64).contains(&ty.bits()));
        let f = f.ok_or_else(|| self.bad_type(ty))?;
        self.lane(f, Mode::default(), ty, self.srcs(1, n, ty)?)
    }

    fn shift(&mut self) -> Decoded {
        let op = self.opcode();
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        let known = op == "shr" && ty.kind() == Kind::Int || ty.kind() == Kind::Bits;
        let f =
            int::shift(op, ty).filter(|_| known && (16..=64).contains(&ty.bits())).ok_or_else(|| self.bad_type(ty))?;
        let amount = self.src(2, Ty::U32)?;
        self.lane(f, Mode::default(), ty, [self.src(1, ty)?, amount, Src::Imm(0)])
    }

    fn funnel(&mut self) -> Decoded {
        let left = self.need(&["l", "r"])? == "l";
        let wrap = self.need(&["wrap", "clamp"])? == "wrap";
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[4])?;
        if ty != Ty::B32 {
            return Err(self.bad_type(ty));
        }
        self.lane(int::funnel(left, wrap), Mode::default(), ty, self.srcs(1, 3, Ty::B32)?)
    }

    fn permute(&mut self) -> Decoded {
        let ty = self.ty()?;
        const MODES: [&str; 6] = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
        let mode = self.one_of(&MODES);
        self.end()?;
        self.n_operands(&[4])?;
        if ty != Ty::B32 {
            return Err(self.bad_type(ty));
        }
        let aux = mode.and_then(|m| MODES.iter().position(|x| *x == m)).map_or(0, |i| i + 1);
        let mode = Mode { aux: u32::try_from(aux).unwrap_or(0), ..Mode::default() };
        self.lane(int::permute, mode, ty, self.srcs(1, 3, Ty::B32)?)
    }

    fn bit_field(&mut self) -> Decoded {
        let op = self.opcode();
        let ty = self.ty()?;
        self.end()?;
        if op == "bfe" {
            self.n_operands(&[4])?;
            let f = int::extract(ty).ok_or_else(|| self.bad_type(ty))?;
            return self.lane(f, Mode::default(), ty, [self.src(1, ty)?, self.src(2, Ty::U32)?, self.src(3, Ty::U32)?]);
        }
        self.n_operands(&[5])?;
        if !matches!(ty, Ty::B32 | Ty::B64) {
            return Err(self.bad_type(ty));
        }
        let (at, len) = (self.src(3, Ty::U32)?, self.src(4, Ty::U32)?);
        let dst = self.dst(0, ty)?;
        Ok(Op::Insert { f: int::insert(ty), dst, src: [self.src(1, ty)?, self.src(2, ty)?], at, len })
    }

    fn bit_count(&mut self) -> Decoded {
        let op = self.opcode();
        let shift = op == "bfind" && self.accept("shiftamt");
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        let kind = if op == "bfind" { Kind::Int } else { Kind::Bits };
        let f = int::bits(op, ty).filter(|_| ty.kind() == kind && ty.bits() >= 32).ok_or_else(|| self.bad_type(ty))?;
        let mode = Mode { aux: u32::from(shift), ..Mode::default() };
        let out = if op == "brev" { ty } else { Ty::U32 };
        self.lane(f, mode, out, self.srcs(1, 1, ty)?)
    }

    fn lop3(&mut self) -> Decoded {
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[5])?;
        let table = u32::try_from(self.constant(4)?).ok().filter(|t| *t < 256);
        let aux = table.ok_or_else(|| self.misfit("the table has 8 bits"))?;
        if ty != Ty::B32 {
            return Err(self.bad_type(ty));
        }
        self.lane(int::lop3, Mode { aux, ..Mode::default() }, ty, self.srcs(1, 3, ty)?)
    }

    fn dot(&mut self) -> Decoded {
        let (a, b) = (self.ty()?, self.ty()?);
        self.end()?;
        self.n_operands(&[4])?;
        if ![a, b].iter().all(|t| matches!(t, Ty::U32 | Ty::S32)) {
            return Err(self.bad_type(a));
        }
        let mode = Mode { aux: u32::from(a.is_signed()) | u32::from(b.is_signed()) << 1, ..Mode::default() };
        self.lane(int::dot4, mode, Ty::B32, self.srcs(1, 3, Ty::B32)?)
    }

    /// Takes a rounding modifier such as `.rn`, if there is one.
    pub(super) fn rounding(&mut self) -> Option<Rnd> {
        Some(match self.one_of(&ROUNDINGS)? {
            "rz" => Rnd::Zero,
            "rm" => Rnd::Down,
            "rp" => Rnd::Up,
            _ => Rnd::Near,
        })
    }

    /// The modifiers may be in any order, as for the assembler.
    fn floating(&mut self, op: &str) -> Decoded {
        let (mut rnd, mut approx, mut full) = (None, false, false);
        let mut mode = Mode::default();
        let (extreme, sum) = (matches!(op, "min" | "max"), matches!(op, "add" | "sub" | "mul" | "mad" | "fma"));
        loop {
            let exact = !approx && !full;
            if rnd.is_none() && exact && self.peek().is_some_and(|part| ROUNDINGS.contains(&part)) {
                rnd = self.rounding();
            } else if rnd.is_none() && exact && self.accept("approx") {
                approx = true;
            } else if rnd.is_none() && exact && op == "div" && self.accept("full") {
                full = true;
            } else if !mode.ftz && self.accept("ftz") {
                mode.ftz = true;
            } else if extreme && !mode.nan && self.accept("NaN") {
                mode.nan = true;
            } else if extreme && !mode.xorsign && self.accept("xorsign") {
                self.words(&["abs"])?;
                mode.xorsign = true;
            } else if sum && !mode.sat && !mode.relu && self.accept("sat") {
                mode.sat = true;
            } else if op == "fma" && !mode.sat && !mode.relu && self.accept("relu") {
                mode.relu = true;
            } else {
                break;
            }
        }
        mode.rnd = rnd.unwrap_or_default();
        let ty = self.ty()?;
        self.end()?;
        self.check_float(op, ty, rnd, mode, approx)?;
        let n = match op {
            "fma" | "mad" => 3,
            "add" | "sub" | "mul" | "div" | "min" | "max" | "copysign" => 2,
            _ => 1,
        };
        self.n_operands(&[n + 1])?;
        let name = if op == "mad" { "fma" } else { op };
        let f = match ty {
            _ if approx => approx::function(op, ty),
            Ty::F32 | Ty::F64 => float::arithmetic(name, ty),
            _ => half::arithmetic(name, ty).filter(|_| !matches!(op, "ex2" | "tanh")),
        };
        let f = f.filter(|_| !full || ty == Ty::F32).ok_or_else(|| self.bad_type(ty))?;
        let all = warp::function(name, ty, mode).filter(|_| !approx && !full);
        Ok(Op::Lane { f, mode, all, dst: self.dst(0, ty)?, src: self.srcs(1, n, ty)? })
    }

    /// Checks that a floating-point instruction has the modifiers that it must have, and no others.
    fn check_float(&self, op: &str, ty: Ty, rnd: Option<Rnd>, mode: Mode, approx: bool) -> Result<(), EmuError> {
        let half = matches!(ty, Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2);
        let bf16 = matches!(ty, Ty::Bf16 | Ty::Bf16x2);
        let rounds = matches!(op, "add" | "sub" | "mul" | "fma" | "mad" | "div" | "rcp" | "sqrt");
        let need_round = (op == "fma" || (matches!(op, "div" | "rcp" | "sqrt" | "mad") && ty == Ty::F64)) && !approx
            || (matches!(op, "rcp" | "sqrt") && !approx)
            || (op == "mad" && ty == Ty::F32);
        let transcendental = matches!(op, "sin" | "cos" | "lg2" | "ex2" | "tanh" | "rsqrt");
        let wrong = if rnd.is_none() && need_round {
            Some("a rounding is needed")
        } else if rnd.is_some() && !rounds {
            Some("it does not round")
        } else if half && rnd.is_some_and(|r| r != Rnd::Near) {
            Some("halves round to nearest only")
        } else if transcendental && !approx {
            Some("`.approx` is needed")
        } else if mode.ftz && (ty == Ty::F64 && !approx || bf16 && op != "ex2") {
            Some("`.ftz` is for f32 and f16")
        } else if mode.sat && (ty == Ty::F64 || bf16) {
            Some("`.sat` is for f32 and f16")
        } else if mode.relu && !half {
            Some("`.relu` is for halves")
        } else if op == "mad" && half {
            Some("halves have `fma`")
        } else {
            None
        };
        wrong.map_or(Ok(()), |w| {
            Err(self.error(crate::emu::error::ErrorCode::Unknown, format!("`{}`: {w}", self.full())))
        })
    }
}

/// The result type of a widening multiplication.
const fn wide(ty: Ty) -> Option<Ty> {
    Some(match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::U32 => Ty::U64,
        Ty::S32 => Ty::S64,
        _ => return None,
    })
}
