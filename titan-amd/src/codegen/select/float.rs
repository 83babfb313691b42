//! Arithmetic on floats.
//!
//! | | |
//! |---|---|
//! | subnormals | are kept: the descriptor of the kernel says so |
//! | minimum, maximum | the other operand, if one is a NaN; so the kernel does not run in IEEE mode, in which they return a signalling NaN as a quiet one (ISA §12.7, `V_MIN_F32`) |
//! | `f16` quotients | those of `f32`, rounded again: 24 ≥ 2 · 11 + 2 bits keep a quotient away from ties (Figueroa, "When is double rounding innocuous?", 1995) |
//! | `bf16` | has only its sign: sums and products are done in `f32` by the lowering of tiles |

use super::{Select, Src};
use crate::codegen::error::{Done, Fault, first, three, two};
use crate::codegen::machine_ir::{File, Part};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{FloatBin, FloatTy, FloatUn, Op, Value};

fn no_bf16<T>() -> Result<T, Fault> {
    Err(Fault::Refused("there is no arithmetic on `bf16`, and the lowering of tiles makes none".to_owned()))
}

/// The instruction for an operation.
const fn binary(bin: FloatBin, ty: FloatTy) -> Option<&'static str> {
    match (bin, ty) {
        (FloatBin::Add, FloatTy::F16) => Some("v_add_f16"),
        (FloatBin::Sub, FloatTy::F16) => Some("v_sub_f16"),
        (FloatBin::Mul, FloatTy::F16) => Some("v_mul_f16"),
        (FloatBin::Min, FloatTy::F16) => Some("v_min_f16"),
        (FloatBin::Max, FloatTy::F16) => Some("v_max_f16"),
        (FloatBin::Add, FloatTy::F32) => Some("v_add_f32"),
        (FloatBin::Sub, FloatTy::F32) => Some("v_sub_f32"),
        (FloatBin::Mul, FloatTy::F32) => Some("v_mul_f32"),
        (FloatBin::Min, FloatTy::F32) => Some("v_min_f32"),
        (FloatBin::Max, FloatTy::F32) => Some("v_max_f32"),
        // A difference is a sum with a negated operand.
        (FloatBin::Add | FloatBin::Sub, FloatTy::F64) => Some("v_add_f64"),
        (FloatBin::Mul, FloatTy::F64) => Some("v_mul_f64"),
        (FloatBin::Min, FloatTy::F64) => Some("v_min_f64"),
        (FloatBin::Max, FloatTy::F64) => Some("v_max_f64"),
        (FloatBin::Div, _) | (_, FloatTy::Bf16) => None,
    }
}

/// The comparison: with a NaN only `neq` holds.
const fn comparison(pred: Cmp, ty: FloatTy) -> Option<&'static str> {
    Some(match (pred, ty) {
        (Cmp::Eq, FloatTy::F16) => "v_cmp_eq_f16",
        (Cmp::Ne, FloatTy::F16) => "v_cmp_neq_f16",
        (Cmp::Lt, FloatTy::F16) => "v_cmp_lt_f16",
        (Cmp::Le, FloatTy::F16) => "v_cmp_le_f16",
        (Cmp::Gt, FloatTy::F16) => "v_cmp_gt_f16",
        (Cmp::Ge, FloatTy::F16) => "v_cmp_ge_f16",
        (Cmp::Eq, FloatTy::F32) => "v_cmp_eq_f32",
        (Cmp::Ne, FloatTy::F32) => "v_cmp_neq_f32",
        (Cmp::Lt, FloatTy::F32) => "v_cmp_lt_f32",
        (Cmp::Le, FloatTy::F32) => "v_cmp_le_f32",
        (Cmp::Gt, FloatTy::F32) => "v_cmp_gt_f32",
        (Cmp::Ge, FloatTy::F32) => "v_cmp_ge_f32",
        (Cmp::Eq, FloatTy::F64) => "v_cmp_eq_f64",
        (Cmp::Ne, FloatTy::F64) => "v_cmp_neq_f64",
        (Cmp::Lt, FloatTy::F64) => "v_cmp_lt_f64",
        (Cmp::Le, FloatTy::F64) => "v_cmp_le_f64",
        (Cmp::Gt, FloatTy::F64) => "v_cmp_gt_f64",
        (Cmp::Ge, FloatTy::F64) => "v_cmp_ge_f64",
        (_, FloatTy::Bf16) => return None,
    })
}

/// The instruction for a function of one operand, if a single one has the contract's result.
const fn function(un: FloatUn, ty: FloatTy) -> Option<&'static str> {
    match (un, ty) {
        (FloatUn::Floor, FloatTy::F32) => Some("v_floor_f32"),
        (FloatUn::Ceil, FloatTy::F32) => Some("v_ceil_f32"),
        (FloatUn::Trunc, FloatTy::F32) => Some("v_trunc_f32"),
        (FloatUn::RoundEven, FloatTy::F32) => Some("v_rndne_f32"),
        (FloatUn::Floor, FloatTy::F64) => Some("v_floor_f64"),
        (FloatUn::Ceil, FloatTy::F64) => Some("v_ceil_f64"),
        (FloatUn::Trunc, FloatTy::F64) => Some("v_trunc_f64"),
        (FloatUn::RoundEven, FloatTy::F64) => Some("v_rndne_f64"),
        // ISA §12.8: within 1 unit, subnormal operands and results flushed.
        (FloatUn::Ex2Approx, FloatTy::F32) => Some("v_exp_f32"),
        (FloatUn::Lg2Approx, FloatTy::F32) => Some("v_log_f32"),
        (FloatUn::RcpApprox, FloatTy::F32) => Some("v_rcp_f32"),
        (FloatUn::RsqrtApprox, FloatTy::F32) => Some("v_rsq_f32"),
        (FloatUn::Neg | FloatUn::Abs | FloatUn::Sqrt, _)
        | (FloatUn::Floor | FloatUn::Ceil | FloatUn::Trunc | FloatUn::RoundEven, FloatTy::F16 | FloatTy::Bf16)
        | (
            FloatUn::Ex2Approx | FloatUn::Lg2Approx | FloatUn::RcpApprox | FloatUn::RsqrtApprox,
            FloatTy::F16 | FloatTy::Bf16 | FloatTy::F64,
        ) => None,
    }
}

/// The number of words of a float.
const fn words(ty: FloatTy) -> u8 {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 | FloatTy::F32 => 1,
        FloatTy::F64 => 2,
    }
}

impl Select<'_> {
    pub(super) fn float_op(&mut self, bin: FloatBin, ty: FloatTy, op: &Op) -> Done {
        if matches!(bin, FloatBin::Min | FloatBin::Max) && ty == FloatTy::F32 {
            return self.extreme(bin, op);
        }
        let (value, [a, b]) = (first(&op.results)?, self.srcs(two(&op.args)?)?);
        let part = match (bin, ty) {
            (_, FloatTy::Bf16) => return no_bf16(),
            (FloatBin::Div, FloatTy::F32) => self.divide_single(a, b)?,
            (FloatBin::Div, FloatTy::F64) => self.divide_double(a, b)?,
            (FloatBin::Div, FloatTy::F16) => {
                let a = self.valu_new("v_cvt_f32_f16", 1, &[a])?;
                let b = self.valu_new("v_cvt_f32_f16", 1, &[b])?;
                let quotient = self.divide_single(Src::V(a), Src::V(b))?;
                self.valu_new("v_cvt_f16_f32", 1, &[Src::V(quotient)])?
            }
            (FloatBin::Sub, FloatTy::F64) => self.negated("v_add_f64", 2, &[a, b], 2)?,
            (FloatBin::Add | FloatBin::Mul | FloatBin::Min | FloatBin::Max, _)
            | (FloatBin::Sub, FloatTy::F16 | FloatTy::F32) => self.plain(bin, ty, [a, b])?,
        };
        self.set(value, super::Spot::V(part));
        Ok(())
    }

    fn plain(&mut self, bin: FloatBin, ty: FloatTy, srcs: [Src; 2]) -> Result<Part, Fault> {
        match binary(bin, ty) {
            Some(name) => self.valu_new(name, words(ty), &srcs),
            None => no_bf16(),
        }
    }

    pub(super) fn float_function(&mut self, un: FloatUn, ty: FloatTy, op: &Op) -> Done {
        let (value, src) = (first(&op.results)?, self.src(first(&op.args)?)?);
        if matches!(un, FloatUn::Neg | FloatUn::Abs) {
            return self.sign(un == FloatUn::Neg, ty, value, src);
        }
        let part = match (un, ty) {
            (FloatUn::Sqrt, FloatTy::F32) => self.root_single(src)?,
            (FloatUn::Sqrt, FloatTy::F64) => self.root_double(src)?,
            (_, _) => match function(un, ty) {
                Some(name) => self.valu_new(name, words(ty), &[src])?,
                None => {
                    let why = format!("it is done in `f32` or `f64`, not in `{ty}`");
                    return Err(Fault::Refused(why));
                }
            },
        };
        self.set(value, super::Spot::V(part));
        Ok(())
    }

    /// Inverts or clears the sign, also of a NaN.
    fn sign(&mut self, invert: bool, ty: FloatTy, value: Value, src: Src) -> Done {
        let name = if invert { "v_xor_b32" } else { "v_and_b32" };
        let bits = match ty {
            FloatTy::F16 | FloatTy::Bf16 => 0x8000,
            FloatTy::F32 | FloatTy::F64 => 0x8000_0000,
        };
        let bits = Src::Bits(if invert { bits } else { bits - 1 });
        if ty != FloatTy::F64 {
            let out = self.out_v(value);
            return self.valu(name, &[out.into()], &[bits, src], &[]);
        }
        let out = self.out_pieces(value, File::V);
        self.move_word(out.word(0), src.word(0))?;
        self.valu(name, &[out.word(1).into()], &[bits, src.word(1)], &[])
    }

    pub(super) fn fma(&mut self, ty: FloatTy, op: &Op) -> Done {
        let srcs = self.srcs(three(&op.args)?)?;
        let name = match ty {
            FloatTy::F16 => "v_fma_f16",
            FloatTy::F32 => "v_fma_f32",
            FloatTy::F64 => "v_fma_f64",
            FloatTy::Bf16 => return no_bf16(),
        };
        let out = self.out_v(first(&op.results)?);
        self.valu(name, &[out.into()], &srcs, &[])
    }

    pub(super) fn float_compare(&mut self, pred: Cmp, ty: FloatTy, op: &Op) -> Done {
        let srcs = self.srcs(two(&op.args)?)?;
        let Some(name) = comparison(pred, ty) else { return no_bf16() };
        let out = self.out_mask(first(&op.results)?);
        self.valu(name, &[out.into()], &srcs, &[])
    }
}
