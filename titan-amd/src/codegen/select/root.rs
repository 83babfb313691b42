//! Correctly rounded quotients and square roots.
//!
//! **Quotients** n / d are computed by the machine's own steps (ISA §12.11, `V_DIV_SCALE`, `V_DIV_FMAS`, `V_DIV_FIXUP`): the operands
//! are scaled so that nothing over- or underflows, the reciprocal is refined by Newton's iteration, the quotient is corrected by its
//! remainder, the last step of which rounds and undoes the scaling, and special operands are fixed up. `vcc` carries from the first step
//! to the third whether the scaling is undone.
//!
//! **Square roots.** Let s be within one unit of √x, and s₋ and s₊ the numbers below and above s. Of the three, s₋ is nearest to √x if
//! and only if √x < (s₋ + s) / 2, which is x < s₋ s + ((s − s₋) / 2)². All of x, s₋ and s are multiples of the unit u of s₋, and x of u²:
//! so x − s₋ s is a multiple of u², and is less than u² / 4 if and only if it is at most 0. A fused multiply-add has the sign of the exact
//! difference. Likewise s₊ is nearest if and only if x − s₊ s > 0. There are no ties, since (s₋ + s) / 2 squared has too many digits.
//! Operands so small that u² would underflow are scaled by an even power of two. The root of ±0 and of +∞ is the operand.
//!
//! `v_sqrt_f32` is within one unit (ISA §12.8). For `f64` s comes from `v_rsq_f64`, whose relative error ε is about 2⁻²³: one step of
//! Goldschmidt's gives g ≈ √x and h ≈ 1 / (2 √x) with errors of 3/2 ε² ≈ 2⁻⁴⁵, and g + (x − g²) h has an error of about 2⁻⁹⁰ before it is rounded.
//!
//! **Example** in numbers of three digits: x = 2.00, s = 1.42 (one unit too much). s₋ s = 1.41 · 1.42 = 2.0022 > x, so the root is 1.41.

use super::{Select, Src};
use crate::codegen::error::Fault;
use crate::codegen::machine_ir::{File, Part};
use crate::isa::{Field, Operand as Isa};

/// Bits of `v_cmp_class`: −0, +0 and +∞ (ISA §12.9, `V_CMP_CLASS_F32`).
const OWN_ROOT: u64 = 0x260;

/// The instructions for a width.
struct Names {
    words: u8,
    one: u64,
    scale: &'static str,
    reciprocal: &'static str,
    fma: &'static str,
    mul: &'static str,
    fmas: &'static str,
    fixup: &'static str,
    /// The number of steps that refine the reciprocal.
    steps: u32,
    /// Whether the quotient is corrected once more before the last step.
    corrected: bool,
}

const SINGLE: Names = Names {
    words: 1,
    one: 0x3f80_0000,
    scale: "v_div_scale_f32",
    reciprocal: "v_rcp_f32",
    fma: "v_fma_f32",
    mul: "v_mul_f32",
    fmas: "v_div_fmas_f32",
    fixup: "v_div_fixup_f32",
    steps: 1,
    corrected: true,
};

const DOUBLE: Names = Names {
    words: 2,
    one: 0x3ff0_0000_0000_0000,
    scale: "v_div_scale_f64",
    reciprocal: "v_rcp_f64",
    fma: "v_fma_f64",
    mul: "v_mul_f64",
    fmas: "v_div_fmas_f64",
    fixup: "v_div_fixup_f64",
    steps: 2,
    corrected: false,
};

impl Select<'_> {
    pub(super) fn divide_single(&mut self, n: Src, d: Src) -> Result<Part, Fault> {
        self.quotient(&SINGLE, n, d)
    }

    pub(super) fn divide_double(&mut self, n: Src, d: Src) -> Result<Part, Fault> {
        self.quotient(&DOUBLE, n, d)
    }

    fn quotient(&mut self, names: &Names, n: Src, d: Src) -> Result<Part, Fault> {
        let words = names.words;
        let (n, d) = (Src::V(self.in_vector(n, words)?), Src::V(self.in_vector(d, words)?));
        let (scaled_d, unused) = (self.fresh(File::V, words), self.fresh(File::S, 2));
        self.valu(names.scale, &[scaled_d.into(), unused.into()], &[d, d, n], &[])?;
        let scaled_n = self.fresh(File::V, words);
        self.valu(names.scale, &[scaled_n.into(), Isa::VCC.into()], &[n, d, n], &[])?;
        let (scaled_d, scaled_n) = (Src::V(scaled_d), Src::V(scaled_n));
        let mut inverse = Src::V(self.valu_new(names.reciprocal, words, &[scaled_d])?);
        for _ in 0..names.steps {
            let error = self.negated(names.fma, words, &[scaled_d, inverse, Src::Bits(names.one)], 1)?;
            inverse = Src::V(self.valu_new(names.fma, words, &[Src::V(error), inverse, inverse])?);
        }
        let mut quotient = Src::V(self.valu_new(names.mul, words, &[scaled_n, inverse])?);
        if names.corrected {
            let rest = self.negated(names.fma, words, &[scaled_d, quotient, scaled_n], 1)?;
            quotient = Src::V(self.valu_new(names.fma, words, &[Src::V(rest), inverse, quotient])?);
        }
        let rest = self.negated(names.fma, words, &[scaled_d, quotient, scaled_n], 1)?;
        let last = self.valu_new(names.fmas, words, &[Src::V(rest), inverse, quotient])?;
        self.valu_new(names.fixup, words, &[Src::V(last), d, n])
    }

    pub(super) fn root_single(&mut self, x: Src) -> Result<Part, Fault> {
        let x = Src::V(self.in_vector(x, 1)?);
        let power = |n: i32| Src::Bits(2f32.powi(n).to_bits().into());
        let small = self.compare_new("v_cmp_gt_f32", [power(-96), x])?;
        let scaled = self.valu_new("v_mul_f32", 1, &[power(32), x])?;
        let x = Src::V(self.choose(small, Src::V(scaled), x)?);
        let near = Src::V(self.valu_new("v_sqrt_f32", 1, &[x])?);
        let below = Src::V(self.valu_new("v_add_u32", 1, &[Src::Bits(0xffff_ffff), near])?);
        let above = Src::V(self.valu_new("v_add_u32", 1, &[Src::Bits(1), near])?);
        let from_below = self.negated("v_fma_f32", 1, &[below, near, x], 1)?;
        let from_above = self.negated("v_fma_f32", 1, &[above, near, x], 1)?;
        let down = self.compare_new("v_cmp_ge_f32", [Src::Bits(0), Src::V(from_below)])?;
        let up = self.compare_new("v_cmp_lt_f32", [Src::Bits(0), Src::V(from_above)])?;
        let root = self.choose(down, below, near)?;
        let root = Src::V(self.choose(up, above, Src::V(root))?);
        let back = self.valu_new("v_mul_f32", 1, &[power(-16), root])?;
        let root = self.choose(small, Src::V(back), root)?;
        let own = self.compare_new("v_cmp_class_f32", [x, Src::Bits(OWN_ROOT)])?;
        self.choose(own, x, Src::V(root))
    }

    pub(super) fn root_double(&mut self, x: Src) -> Result<Part, Fault> {
        let x = Src::V(self.in_vector(x, 2)?);
        let half = Src::Bits(0.5f64.to_bits());
        let small = self.compare_new("v_cmp_gt_f64", [Src::Bits(2f64.powi(-767).to_bits()), x])?;
        let up_by = self.choose(small, Src::Bits(256), Src::Bits(0))?;
        let x = Src::V(self.valu_new("v_ldexp_f64", 2, &[x, Src::V(up_by)])?);
        let fma = |s: &mut Self, a: Src, b: Src, c: Src| s.valu_new("v_fma_f64", 2, &[a, b, c]).map(Src::V);
        let minus = |s: &mut Self, a: Src, b: Src, c: Src| s.negated("v_fma_f64", 2, &[a, b, c], 1).map(Src::V);
        let inverse = Src::V(self.valu_new("v_rsq_f64", 2, &[x])?);
        let g = Src::V(self.valu_new("v_mul_f64", 2, &[x, inverse])?);
        let h = Src::V(self.valu_new("v_mul_f64", 2, &[inverse, half])?);
        let error = minus(self, h, g, half)?;
        let (g, h) = (fma(self, g, error, g)?, fma(self, h, error, h)?);
        let rest = minus(self, g, g, x)?;
        let near = fma(self, rest, h, g)?;
        let below = Src::V(self.add_wide(near, Src::Bits(u64::MAX))?);
        let above = Src::V(self.add_wide(near, Src::Bits(1))?);
        let (from_below, from_above) = (minus(self, below, near, x)?, minus(self, above, near, x)?);
        let down = self.compare_new("v_cmp_ge_f64", [Src::Bits(0), from_below])?;
        let up = self.compare_new("v_cmp_lt_f64", [Src::Bits(0), from_above])?;
        let root = self.choose_wide(down, below, near)?;
        let root = self.choose_wide(up, above, Src::V(root))?;
        let down_by = self.choose(small, Src::Bits((-128i64).cast_unsigned() & 0xffff_ffff), Src::Bits(0))?;
        let root = self.valu_new("v_ldexp_f64", 2, &[Src::V(root), Src::V(down_by)])?;
        let own = self.compare_new("v_cmp_class_f64", [x, Src::Bits(OWN_ROOT)])?;
        self.choose_wide(own, x, Src::V(root))
    }

    /// The sum of a number of 64 bits and a negated one.
    pub(super) fn minus_double(&mut self, a: Src, b: Src) -> Result<Src, Fault> {
        let out = self.fresh(File::V, 2);
        self.valu("v_add_f64", &[out.into()], &[a, b], &[(Field::Neg, 2)])?;
        Ok(Src::V(out))
    }
}
