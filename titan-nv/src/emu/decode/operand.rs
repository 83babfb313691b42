//! Checks operands against the requirements of an instruction.

use super::{Decoder, special};
use crate::emu::ast::{Base, Name, Operand};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::op::{Addr, Dst, PredSrc, Src};
use crate::emu::ty::{Kind, Space, Ty};

/// The permitted difference between the width of a register and that of the instruction's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The widths must be equal.
    Same,
    /// The register may be wider: `ld`, `st`, `cvt`.
    Wider,
}

impl Decoder<'_> {
    pub(super) fn n_operands(&self, wanted: &[usize]) -> Result<usize, EmuError> {
        let n = self.instr.operands.len();
        if wanted.contains(&n) {
            return Ok(n);
        }
        let text = wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        Err(self.error(ErrorCode::Operand, format!("`{}` takes {text} operands, not {n}", self.full())))
    }

    pub(super) fn operand(&self, i: usize) -> Result<&Operand, EmuError> {
        let missing = || self.error(ErrorCode::Operand, format!("`{}` needs operand {}", self.full(), i + 1));
        self.instr.operands.get(i).ok_or_else(missing)
    }

    pub(super) fn misfit(&self, what: &str) -> EmuError {
        self.error(ErrorCode::Operand, format!("`{}`: {what}", self.full()))
    }

    fn check_register(&self, reg: usize, ty: Ty, width: Width) -> Result<u32, EmuError> {
        let misfit = || self.misfit("an operand is no register");
        let declared = self.entry.regs.get(reg).ok_or_else(misfit)?;
        let wider = width == Width::Wider
            && declared.ty.bits() > ty.bits()
            && declared.ty.kind() != Kind::Pred
            && (!ty.is_float() || declared.ty.kind() == Kind::Bits);
        // There are no registers of 8 bits.
        let byte = width == Width::Wider && ty.bits() == 8 && declared.ty.kind() != Kind::Pred;
        if !(declared.ty.fits(ty) || wider || byte) {
            let (name, is) = (&declared.name, declared.ty.name());
            return Err(self.misfit(&format!("`{name}` is declared `.{is}`, which does not fit `.{}`", ty.name())));
        }
        self.slots.get(reg).copied().ok_or_else(misfit)
    }

    /// The declared type of a register operand.
    pub(super) fn declared(&self, operand: &Operand) -> Option<Ty> {
        match operand {
            Operand::Reg(r) => self.entry.regs.get(*r).map(|r| r.ty),
            _ => None,
        }
    }

    pub(super) fn dst_of(&self, operand: &Operand, ty: Ty, width: Width) -> Result<Dst, EmuError> {
        match operand {
            Operand::Sink => Ok(None),
            Operand::Reg(r) => self.check_register(*r, ty, width).map(Some),
            _ => Err(self.misfit("the destination is no register")),
        }
    }

    pub(super) fn dst(&self, i: usize, ty: Ty) -> Result<Dst, EmuError> {
        self.dst_of(self.operand(i)?, ty, Width::Same)
    }

    pub(super) fn src_of(&self, operand: &Operand, ty: Ty, width: Width) -> Result<Src, EmuError> {
        match operand {
            Operand::Reg(r) => self.check_register(*r, ty, width).map(Src::Reg),
            Operand::Special(name) => {
                special(name).map(Src::Special).ok_or_else(|| self.misfit(&format!("`{name}` is not known")))
            }
            Operand::Int(n) => self.integer(*n, ty).map(Src::Imm),
            Operand::F32(bits) if ty.is_float() || ty.kind() == Kind::Bits => self.single(*bits, ty),
            Operand::F64(bits) if ty.is_float() || ty.kind() == Kind::Bits => self.double(*bits, ty),
            Operand::Address(name, offset) => {
                if self.is_of_call(*name) {
                    return Err(self.unknown("the address of an argument or result of a call"));
                }
                let address = self.address_of(*name, *offset)?;
                if ty.bits() < 64 && matches!(address, Src::Symbol(..)) || ty.bits() < 32 {
                    return Err(self.misfit(&format!("an address does not fit `.{}`", ty.name())));
                }
                Ok(address)
            }
            _ => Err(self.misfit(&format!("an operand does not fit `.{}`", ty.name()))),
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to fit the width")]
    fn integer(&self, n: i128, ty: Ty) -> Result<u64, EmuError> {
        if ty.is_float() && n != 0 {
            return Err(self.misfit("an integer constant stands where a floating-point one is needed"));
        }
        let bits = ty.bits().min(64);
        // Constants have 64 bits: the upper half of the unsigned ones are negative numbers.
        let n = match u64::try_from(n) {
            Ok(unsigned) if bits < 64 => i128::from(unsigned.cast_signed()),
            Ok(_) | Err(_) => n,
        };
        let fits = n >= -(1 << (bits - 1)) && n < 1 << bits;
        // The assembler truncates constants that are too large; here losing set bits is an error.
        if !fits {
            return Err(self.misfit(&format!("the constant {n} does not fit `.{}`", ty.name())));
        }
        Ok(n as u64 & if bits == 64 { u64::MAX } else { (1 << bits) - 1 })
    }

    fn single(&self, bits: u32, ty: Ty) -> Result<Src, EmuError> {
        match ty.bits() {
            32 => Ok(Src::Imm(bits.into())),
            64 if ty == Ty::F64 => Ok(Src::Imm(f64::from(f32::from_bits(bits)).to_bits())),
            _ => Err(self.misfit(&format!("an f32 constant stands where `.{}` is needed", ty.name()))),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a constant is rounded to the instruction's type")]
    fn double(&self, bits: u64, ty: Ty) -> Result<Src, EmuError> {
        match ty {
            Ty::F64 | Ty::B64 => Ok(Src::Imm(bits)),
            Ty::F32 => Ok(Src::Imm((f64::from_bits(bits) as f32).to_bits().into())),
            _ => Err(self.misfit(&format!("an f64 constant stands where `.{}` is needed", ty.name()))),
        }
    }

    pub(super) fn src(&self, i: usize, ty: Ty) -> Result<Src, EmuError> {
        self.src_of(self.operand(i)?, ty, Width::Same)
    }

    /// The operands from index `from` on as up to three sources of one type; missing ones are 0.
    pub(super) fn srcs(&self, from: usize, n: usize, ty: Ty) -> Result<[Src; 3], EmuError> {
        let mut all = [Src::Imm(0); 3];
        for (i, src) in all.iter_mut().enumerate().take(n) {
            *src = self.src(from + i, ty)?;
        }
        Ok(all)
    }

    /// The operands `p` or `p|q`.
    pub(super) fn pair(&self, i: usize, first: Ty, second: Ty) -> Result<(Dst, Dst), EmuError> {
        match self.operand(i)? {
            Operand::Pair(a, b) => Ok((self.dst_of(a, first, Width::Same)?, self.dst_of(b, second, Width::Same)?)),
            one => Ok((self.dst_of(one, first, Width::Same)?, None)),
        }
    }

    pub(super) fn pred(&self, i: usize) -> Result<PredSrc, EmuError> {
        let slot = |r: usize| self.check_register(r, Ty::Pred, Width::Same);
        match self.operand(i)? {
            Operand::Reg(r) => Ok(PredSrc::Reg(slot(*r)?, false)),
            Operand::Not(r) => Ok(PredSrc::Reg(slot(*r)?, true)),
            Operand::Int(n @ -1..=1) => Ok(PredSrc::Const(*n != 0)),
            _ => Err(self.misfit("a predicate register is needed")),
        }
    }

    pub(super) fn guard(&self) -> Result<Option<(u32, bool)>, EmuError> {
        self.instr.guard.map(|(r, negated)| Ok((self.check_register(r, Ty::Pred, Width::Same)?, negated))).transpose()
    }

    /// The address of a variable or parameter, as an operand.
    fn address_of(&self, name: Name, offset: i64) -> Result<Src, EmuError> {
        let fixed = |base: u32| Src::Imm(i64::from(base).wrapping_add(offset).cast_unsigned());
        match name {
            Name::Param(i) => self.entry.params.get(i).map(|p| fixed(p.offset)),
            Name::Local(_) | Name::Global(_) => self
                .layout
                .fixed(name)
                .map(fixed)
                .or_else(|| self.layout.symbol(self.ast, self.entry, name).map(|s| Src::Symbol(s, offset))),
            Name::Reg(_) => None,
        }
        .ok_or_else(|| self.misfit("the name has no address"))
    }

    /// The state space of the variable or parameter that a name refers to.
    fn space_of(&self, name: Name) -> Option<Space> {
        match name {
            Name::Param(_) => Some(Space::Param),
            Name::Local(i) => self.entry.vars.get(i).map(|v| v.space),
            Name::Global(i) => self.ast.vars.get(i).map(|v| v.space),
            Name::Reg(_) => None,
        }
    }

    /// Whether a name is that of a variable in `.param` space inside a kernel.
    fn is_of_call(&self, name: Name) -> bool {
        matches!(name, Name::Local(_)) && self.space_of(name) == Some(Space::Param)
    }

    /// The operand `[address]` in a space.
    pub(super) fn address(&self, i: usize, space: Space) -> Result<Addr, EmuError> {
        let Operand::Mem(base, offset) = self.operand(i)? else {
            return Err(self.misfit("an address in brackets is needed"));
        };
        self.address_at(*base, *offset, space)
    }

    /// An address with this base and offset in a space.
    pub(super) fn address_at(&self, base: Base, offset: i64, space: Space) -> Result<Addr, EmuError> {
        let (src, narrow, offset) = match base {
            Base::Zero => (Src::Imm(0), false, offset),
            Base::Reg(r) => {
                let ty = self.entry.regs.get(r).map(|r| r.ty);
                let width = ty.map_or(0, Ty::bits);
                let near = matches!(space, Space::Shared | Space::Cluster | Space::Local | Space::Const | Space::Param);
                let int = ty.is_some_and(|t| matches!(t.kind(), Kind::Int | Kind::Bits));
                if !(int && (width == 64 || (width == 32 && near))) {
                    let name = self.entry.regs.get(r).map_or("?", |r| r.name.as_str());
                    return Err(self.misfit(&format!("`{name}` cannot hold a {} address", space.name())));
                }
                (Src::Reg(self.slots.get(r).copied().unwrap_or(0)), width == 32, offset)
            }
            Base::Name(name) => {
                let its = self.space_of(name);
                // The thread's own block is one of the cluster.
                let wanted = if space == Space::Cluster { Space::Shared } else { space };
                if space != Space::Generic && its != Some(wanted) {
                    let its = its.map_or("no", Space::name);
                    return Err(self.misfit(&format!("the variable is in {its} memory, not in {}", space.name())));
                }
                let base = self.address_of(name, offset)?;
                let space = match (space, its) {
                    // Without a state space, an access by a variable's name is in that variable's space.
                    (Space::Generic, Some(its @ (Space::Shared | Space::Local | Space::Global))) => its,
                    (Space::Param, _) if self.is_of_call(name) => Space::Local,
                    _ => space,
                };
                return Ok(Addr { base, offset: 0, space, narrow: false });
            }
        };
        Ok(Addr { base: src, offset, space, narrow })
    }

    /// The elements of a vector operand, or the operand itself.
    pub(super) fn elements(&self, i: usize) -> Result<Vec<&Operand>, EmuError> {
        Ok(match self.operand(i)? {
            Operand::Vector(all) => all.iter().collect(),
            one => vec![one],
        })
    }

    /// A vector operand of exactly `n` sources.
    pub(super) fn src_list(&self, i: usize, n: usize, ty: Ty) -> Result<Vec<Src>, EmuError> {
        let all = self.elements(i)?;
        if all.len() != n {
            return Err(self.misfit(&format!("operand {} has {} elements instead of {n}", i + 1, all.len())));
        }
        all.into_iter().map(|o| self.src_of(o, ty, Width::Same)).collect()
    }

    /// A vector operand of exactly `n` destinations.
    pub(super) fn dst_list(&self, i: usize, n: usize, ty: Ty) -> Result<Vec<Dst>, EmuError> {
        let all = self.elements(i)?;
        if all.len() != n {
            return Err(self.misfit(&format!("operand {} has {} elements instead of {n}", i + 1, all.len())));
        }
        all.into_iter().map(|o| self.dst_of(o, ty, Width::Same)).collect()
    }

    /// An operand that must be an integer constant.
    pub(super) fn constant(&self, i: usize) -> Result<u64, EmuError> {
        match self.operand(i)? {
            Operand::Int(n) => u64::try_from(*n).map_err(|_| self.misfit("the constant is negative")),
            _ => Err(self.misfit("an integer constant is needed")),
        }
    }
}
