//! Floating-point operations. Where a machine lacks one, it is computed in another format and rounded once at the end:
//!
//! * `bf16` sums and products before `sm_90` are `fma`: `a · 1 + b`, `b · −1 + a`, `a · b + (−0)`. The added operation is
//!   exact, and −0 is the neutral element of addition, so value and sign are the same.
//! * Quotients of `f16` and `bf16` are quotients of `f32`, rounded again. The second rounding changes nothing: 24 ≥ 2 p + 2
//!   bits (p = 11, 8) keep a quotient away from ties (Figueroa, *When is double rounding innocuous?*, 1995). Subnormal `bf16`,
//!   where `f32` is subnormal too, lose to 2⁻¹⁵⁰, but a quotient that is no tie is at least 2⁻¹⁴³ from one: a/b − m is a
//!   multiple of 2⁻¹³⁵ over b's significand, which is below 2⁸.
//! * `bf16` comparisons before `sm_90` are those of `f32`, which are the same numbers.

use super::error::{Fault, first, three, two};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::Reg;
use crate::ptx::isa::find;
use crate::ptx::isa::float::{COMPARE_FLOAT, FLOAT, FMA, FUNCTION};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{FloatBin, FloatTy, FloatUn, IntBin, Num, Op, Ty, Value};

const BF16_ONE: u64 = 0x3f80;
const BF16_MINUS_ONE: u64 = 0xbf80;
const BF16_MINUS_ZERO: u64 = 0x8000;

/// The sign bit of a format.
const fn sign(ty: FloatTy) -> u64 {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 => 1 << 15,
        FloatTy::F32 => 1 << 31,
        FloatTy::F64 => 1 << 63,
    }
}

pub(super) const fn num(ty: FloatTy) -> Num {
    match ty {
        FloatTy::F16 => Num::F16,
        FloatTy::Bf16 => Num::Bf16,
        FloatTy::F32 => Num::F32,
        FloatTy::F64 => Num::F64,
    }
}

impl Lower<'_> {
    pub(super) fn float_op(&mut self, bin: FloatBin, ty: FloatTy, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let args = two(&op.args)?;
        self.float(bin, ty, out, args)
    }

    pub(super) fn float_function(&mut self, un: FloatUn, ty: FloatTy, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        match un {
            FloatUn::Neg | FloatUn::Abs => {
                let free = !self.uses.bits_matter(first(&op.results)?);
                self.sign(un, ty, out, first(&op.args)?, free)
            }
            FloatUn::Sqrt
            | FloatUn::Floor
            | FloatUn::Ceil
            | FloatUn::Trunc
            | FloatUn::RoundEven
            | FloatUn::Ex2Approx
            | FloatUn::Lg2Approx
            | FloatUn::RcpApprox
            | FloatUn::RsqrtApprox => {
                let form = form_of(FUNCTION, &(un, ty))?;
                self.inst(form, &[Arg::Reg(out), Arg::Value(first(&op.args)?)])
            }
        }
    }

    pub(super) fn fma(&mut self, ty: FloatTy, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let [a, b, c] = three(&op.args)?.map(Arg::Value);
        self.inst(form_of(FMA, &ty)?, &[Arg::Reg(out), a, b, c])
    }

    pub(super) fn float_condition(&mut self, cmp: Cmp, ty: FloatTy, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let args = two(&op.args)?;
        self.float_compare(cmp, ty, out, args)
    }

    fn float(&mut self, bin: FloatBin, ty: FloatTy, out: Reg, args: [Value; 2]) -> Done {
        let [a, b] = args.map(Arg::Value);
        if let Some(form) = find(FLOAT, &(bin, ty)).filter(|form| self.has(form)) {
            return self.inst(form, &[Arg::Reg(out), a, b]);
        }
        let fused = match (bin, ty) {
            (FloatBin::Add, FloatTy::Bf16) => [a, Arg::Bits(BF16_ONE), b],
            (FloatBin::Sub, FloatTy::Bf16) => [b, Arg::Bits(BF16_MINUS_ONE), a],
            (FloatBin::Mul, FloatTy::Bf16) => [a, b, Arg::Bits(BF16_MINUS_ZERO)],
            (FloatBin::Div, FloatTy::F16 | FloatTy::Bf16) => return self.divide_half(ty, out, args),
            (FloatBin::Add | FloatBin::Sub | FloatBin::Mul | FloatBin::Div | FloatBin::Min | FloatBin::Max, _) => {
                return form_of(FLOAT, &(bin, ty)).and_then(|form| Err(Fault::Missing(form)));
            }
        };
        let [x, y, z] = fused;
        self.inst(form_of(FMA, &ty)?, &[Arg::Reg(out), x, y, z])
    }

    fn divide_half(&mut self, ty: FloatTy, out: Reg, args: [Value; 2]) -> Done {
        let mut wide = Vec::new();
        for arg in args {
            wide.push(Arg::Reg(self.convert(num(ty), Num::F32, Arg::Value(arg))?));
        }
        let quotient = self.fresh(Ty::B32);
        let form = form_of(FLOAT, &(FloatBin::Div, FloatTy::F32))?;
        self.inst(form, &[vec![Arg::Reg(quotient)], wide].concat())?;
        self.convert_into(Num::F32, num(ty), Arg::Reg(quotient), out)
    }

    /// Inverts or clears the sign. The instructions leave the sign of NaN unspecified; where it is observable, the bits are changed.
    fn sign(&mut self, un: FloatUn, ty: FloatTy, out: Reg, a: Value, free: bool) -> Done {
        if let Some(form) = find(FUNCTION, &(un, ty)).filter(|_| free) {
            return self.inst(form, &[Arg::Reg(out), Arg::Value(a)]);
        }
        let (bin, mask) = match un {
            FloatUn::Neg => (IntBin::Xor, sign(ty)),
            FloatUn::Abs
            | FloatUn::Sqrt
            | FloatUn::Floor
            | FloatUn::Ceil
            | FloatUn::Trunc
            | FloatUn::RoundEven
            | FloatUn::Ex2Approx
            | FloatUn::Lg2Approx
            | FloatUn::RcpApprox
            | FloatUn::RsqrtApprox => (IntBin::And, sign(ty) - 1),
        };
        self.int(bin, out, &[Arg::Value(a), Arg::Bits(mask)])
    }

    fn float_compare(&mut self, cmp: Cmp, ty: FloatTy, out: Reg, args: [Value; 2]) -> Done {
        let form = form_of(COMPARE_FLOAT, &(cmp, ty))?;
        let [a, b] = args;
        if ty != FloatTy::Bf16 || self.has(form) {
            return self.inst(form, &[Arg::Reg(out), Arg::Value(a), Arg::Value(b)]);
        }
        let a = self.convert(Num::Bf16, Num::F32, Arg::Value(a))?;
        let b = self.convert(Num::Bf16, Num::F32, Arg::Value(b))?;
        self.inst(form_of(COMPARE_FLOAT, &(cmp, FloatTy::F32))?, &[Arg::Reg(out), Arg::Reg(a), Arg::Reg(b)])
    }
}
