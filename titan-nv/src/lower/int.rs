//! Integer operations.

use super::error::{Fault, first, two};
use super::{Arg, Done, Lower, form_of, uses};
use crate::ptx::Reg;
use crate::ptx::isa::control::SELECT;
use crate::ptx::isa::int::{COMPARE_INT, EXTEND, INT, INT_UN, MUL_WIDE, NOT, TRUNCATE};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{IntBin, IntUn, Op, Ty};

impl Lower<'_> {
    /// Emits integer arithmetic on operands that are already lowered.
    pub(super) fn int(&mut self, op: IntBin, out: Reg, args: &[Arg]) -> Done {
        let mut all = vec![Arg::Reg(out)];
        all.extend_from_slice(args);
        self.inst(form_of(INT, &(op, out.class))?, &all)
    }

    /// Emits a comparison of operands that are already lowered.
    pub(super) fn compare(&mut self, key: (Cmp, bool, Ty), a: Arg, b: Arg) -> Result<Reg, Fault> {
        let out = self.fresh(Ty::Pred);
        self.inst(form_of(COMPARE_INT, &key)?, &[Arg::Reg(out), a, b])?;
        Ok(out)
    }

    /// Selects `yes` where `cond` holds, else `no`.
    pub(super) fn choose(&mut self, out: Reg, cond: Reg, yes: Arg, no: Arg) -> Done {
        self.inst(form_of(SELECT, &out.class)?, &[Arg::Reg(out), yes, no, Arg::Reg(cond)])
    }

    /// Emits the negation of a condition.
    pub(super) fn not(&mut self, out: Reg, cond: Arg) -> Done {
        self.inst(&NOT, &[Arg::Reg(out), cond])
    }

    /// Arithmetic, bit operations and shifts.
    pub(super) fn int_op(&mut self, bin: IntBin, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        match bin {
            IntBin::DivS | IntBin::RemS => self.divide(bin, out, op),
            IntBin::Xor if out.class == Ty::Pred => self.xor_pred(out, op),
            IntBin::Add
            | IntBin::Sub
            | IntBin::Mul
            | IntBin::MulHi
            | IntBin::DivU
            | IntBin::RemU
            | IntBin::And
            | IntBin::Or
            | IntBin::Xor
            | IntBin::Shl
            | IntBin::ShrS
            | IntBin::ShrU
            | IntBin::MinS
            | IntBin::MinU
            | IntBin::MaxS
            | IntBin::MaxU => {
                let [a, b] = two(&op.args)?;
                self.int(bin, out, &[Arg::Value(a), Arg::Value(b)])
            }
        }
    }

    /// Numbers of bits.
    pub(super) fn int_function(&mut self, un: IntUn, op: &Op) -> Done {
        let (out, a) = (self.out(first(&op.results)?), first(&op.args)?);
        self.inst(form_of(INT_UN, &un)?, &[Arg::Reg(out), Arg::Value(a)])
    }

    pub(super) fn mul_wide(&mut self, signed: bool, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let [a, b] = two(&op.args)?;
        self.inst(form_of(MUL_WIDE, &signed)?, &[Arg::Reg(out), Arg::Value(a), Arg::Value(b)])
    }

    pub(super) fn int_compare(&mut self, pred: Cmp, signed: bool, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let [a, b] = two(&op.args)?;
        match (self.func.ty(a), pred) {
            (Ty::Pred, Cmp::Ne) => self.int(IntBin::Xor, out, &[Arg::Value(a), Arg::Value(b)]),
            (Ty::Pred, Cmp::Eq) => {
                let differ = self.fresh(Ty::Pred);
                self.int(IntBin::Xor, differ, &[Arg::Value(a), Arg::Value(b)])?;
                self.not(out, Arg::Reg(differ))
            }
            (ty, _) => {
                let form = form_of(COMPARE_INT, &(pred, signed, ty))?;
                self.inst(form, &[Arg::Reg(out), Arg::Value(a), Arg::Value(b)])
            }
        }
    }

    pub(super) fn extend(&mut self, from: u8, signed: bool, to: Ty, op: &Op) -> Done {
        let (out, a) = (self.out(first(&op.results)?), first(&op.args)?);
        let form = form_of(EXTEND, &(from, self.func.ty(a), signed, to))?;
        self.inst(form, &[Arg::Reg(out), Arg::Value(a)])
    }

    pub(super) fn truncate(&mut self, to: Ty, op: &Op) -> Done {
        let (out, a) = (self.out(first(&op.results)?), first(&op.args)?);
        self.inst(form_of(TRUNCATE, &to)?, &[Arg::Reg(out), Arg::Value(a)])
    }

    pub(super) fn pred_to_int(&mut self, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let guard = self.guard(first(&op.args)?)?;
        let (one, zero) = if guard.negated { (0, 1) } else { (1, 0) };
        self.choose(out, guard.reg, Arg::Bits(one), Arg::Bits(zero))
    }

    fn xor_pred(&mut self, out: Reg, op: &Op) -> Done {
        let [a, b] = two(&op.args)?;
        match (self.func.constant(a), self.func.constant(b)) {
            (None, Some(1)) => self.not(out, Arg::Value(a)),
            (Some(1), None) => self.not(out, Arg::Value(b)),
            (None | Some(_), _) => self.int(IntBin::Xor, out, &[Arg::Value(a), Arg::Value(b)]),
        }
    }

    /// Signed division. The manual does not specify the least number divided by −1; here the quotient is −a, and the remainder 0.
    fn divide(&mut self, bin: IntBin, out: Reg, op: &Op) -> Done {
        let [a, b] = two(&op.args)?;
        let args = [Arg::Value(a), Arg::Value(b)];
        match self.func.constant(b).map(|bits| uses::signed(out.class, bits)) {
            Some(-1) => return self.by_minus_one(bin, out, Arg::Value(a)),
            Some(_) => return self.int(bin, out, &args),
            None => {}
        }
        let (divided, special) = (self.fresh(out.class), self.fresh(out.class));
        self.int(bin, divided, &args)?;
        self.by_minus_one(bin, special, Arg::Value(a))?;
        let minus_one = self.compare((Cmp::Eq, true, out.class), Arg::Value(b), Arg::Bits(u64::MAX))?;
        self.choose(out, minus_one, Arg::Reg(special), Arg::Reg(divided))
    }

    fn by_minus_one(&mut self, bin: IntBin, out: Reg, a: Arg) -> Done {
        if bin == IntBin::RemS {
            return self.copy(out, &Arg::Bits(0));
        }
        self.int(IntBin::Sub, out, &[Arg::Bits(0), a])
    }
}
