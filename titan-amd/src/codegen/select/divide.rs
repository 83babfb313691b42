//! Quotients and remainders of integers: there is no instruction for them.
//!
//! Let w be the width, n < 2ʷ the dividend, d ≥ 1 the divisor, and X = 2ʷ / d. An approximation z₀ ≤ X with z₀ ≥ X (1 − δ) is improved by
//! one step of Newton's in integers, z = z₀ + ⌊z₀ (2ʷ − d z₀) / 2ʷ⌋, and q₀ = ⌊n z / 2ʷ⌋ is the quotient, or less by at most 2. Two
//! corrections, each of which subtracts d from the remainder if that is at least d, complete it.
//!
//! **Why.** The step maps X (1 − δ) to X (1 − δ²), less what the floor cuts, so that z ≤ X and X − z < 1 + X δ². Of z₀, the
//! approximation has a relative error of at most a, and its floor costs 1 = X d / 2ʷ: so δ ≤ a + d / 2ʷ, and
//! X δ² ≤ a² 2ʷ / d + 2 a + d / 2ʷ. If d ≥ 2ʷ⁻¹, the quotient is 0 or 1, and one correction is enough. Otherwise d / 2ʷ < ½, and the two other
//! terms are below 2⁻⁸: X − z < 1.51, so n / d − n z / 2ʷ < 1.51, and with the floor of q₀ the quotient is less than 2.51 + 1 above it,
//! which in integers is at most 2 (`n / d − q₀ < 2.51` and `⌊n / d⌋ − q₀` is an integer).
//!
//! | | the approximation | a |
//! |---|---|---|
//! | w = 32 | `v_rcp_f32` of d as an `f32`, times 2³² (1 − 2⁻²¹) | 2⁻²¹ + 2⁻²²: conversion ½, reciprocal 1, product ½ units of 2⁻²³ |
//! | w = 64 | `v_rcp_f64` of d as an `f64`, two steps of Newton's, times 2⁶⁴ (1 − 2⁻⁴⁹) | 2⁻⁴⁹ + 2⁻⁵⁰ |
//!
//! The factor below 1 is greater than all errors, so that z₀ ≤ X. The reciprocal of `f64` is within 2²⁹ units (ISA §12.8), which is 2⁻²³;
//! each step squares that, up to the errors of its own two roundings, so that two steps leave at most 2⁻⁵¹.
//!
//! **Example**, w = 32, n = 100, d = 7: X = 613566756.57…, z₀ = 613566464, z = 613566756, q₀ = ⌊100 · 613566756 / 2³²⌋ = 14, the
//! remainder is 2, and no correction is needed.
//!
//! Signed quotients are those of the magnitudes, with the sign of the product of the signs; remainders have the sign of the dividend. The
//! magnitude of the least number is 2ʷ⁻¹ as an unsigned number, so its quotient by −1 is itself.

use super::{Select, Src};
use crate::codegen::error::Fault;
use crate::codegen::machine_ir::Part;
use titan_core::lane::IntBin;

/// 2³² (1 − 2⁻²¹) as an `f32`.
const SINGLE_SCALE: f32 = 4_294_965_248.0;
/// 2⁶⁴ (1 − 2⁻⁴⁹) as an `f64`.
const DOUBLE_SCALE: f64 = 18_446_744_073_709_551_616.0 - 32_768.0;

/// Whether an operation is signed, and whether its result is the remainder.
const fn kind(bin: IntBin) -> (bool, bool) {
    match bin {
        IntBin::DivS => (true, false),
        IntBin::RemS => (true, true),
        IntBin::RemU => (false, true),
        IntBin::DivU
        | IntBin::Add
        | IntBin::Sub
        | IntBin::Mul
        | IntBin::MulHi
        | IntBin::And
        | IntBin::Or
        | IntBin::Xor
        | IntBin::Shl
        | IntBin::ShrS
        | IntBin::ShrU
        | IntBin::MinS
        | IntBin::MinU
        | IntBin::MaxS
        | IntBin::MaxU => (false, false),
    }
}

impl Select<'_> {
    /// A quotient or remainder of 32 bits.
    pub(super) fn divide(&mut self, bin: IntBin, n: Src, d: Src) -> Result<Part, Fault> {
        let (signed, remainder) = kind(bin);
        if !signed {
            let both = self.divide_magnitudes(n, d)?;
            return Ok(both[usize::from(remainder)]);
        }
        let (sign_n, n) = self.magnitude(n)?;
        let (sign_d, d) = self.magnitude(d)?;
        let both = self.divide_magnitudes(n, d)?;
        let sign = if remainder { sign_n } else { self.valu_new("v_xor_b32", 1, &[Src::V(sign_n), Src::V(sign_d)])? };
        let flipped = self.valu_new("v_xor_b32", 1, &[Src::V(sign), Src::V(both[usize::from(remainder)])])?;
        self.valu_new("v_sub_u32", 1, &[Src::V(flipped), Src::V(sign)])
    }

    /// The sign of a number, as all ones or zero, and its magnitude.
    fn magnitude(&mut self, x: Src) -> Result<(Part, Src), Fault> {
        let sign = self.valu_new("v_ashrrev_i32", 1, &[Src::Bits(31), x])?;
        let flipped = self.valu_new("v_xor_b32", 1, &[x, Src::V(sign)])?;
        let magnitude = self.valu_new("v_sub_u32", 1, &[Src::V(flipped), Src::V(sign)])?;
        Ok((sign, Src::V(magnitude)))
    }

    /// The unsigned quotient and remainder.
    fn divide_magnitudes(&mut self, n: Src, d: Src) -> Result<[Part; 2], Fault> {
        let float = self.valu_new("v_cvt_f32_u32", 1, &[d])?;
        let reciprocal = self.valu_new("v_rcp_f32", 1, &[Src::V(float)])?;
        let scale = Src::Bits(SINGLE_SCALE.to_bits().into());
        let scaled = self.valu_new("v_mul_f32", 1, &[scale, Src::V(reciprocal)])?;
        let near = Src::V(self.valu_new("v_cvt_u32_f32", 1, &[Src::V(scaled)])?);
        let product = self.valu_new("v_mul_lo_u32", 1, &[near, d])?;
        let error = self.valu_new("v_sub_u32", 1, &[Src::Bits(0), Src::V(product)])?;
        let more = self.valu_new("v_mul_hi_u32", 1, &[near, Src::V(error)])?;
        let inverse = self.valu_new("v_add_u32", 1, &[near, Src::V(more)])?;
        let mut quotient = self.valu_new("v_mul_hi_u32", 1, &[n, Src::V(inverse)])?;
        let product = self.valu_new("v_mul_lo_u32", 1, &[Src::V(quotient), d])?;
        let mut rest = self.valu_new("v_sub_u32", 1, &[n, Src::V(product)])?;
        for _ in 0..2 {
            let more = self.compare_new("v_cmp_ge_u32", [Src::V(rest), d])?;
            let next = self.valu_new("v_add_u32", 1, &[Src::Bits(1), Src::V(quotient)])?;
            let less = self.valu_new("v_sub_u32", 1, &[Src::V(rest), d])?;
            quotient = self.choose(more, Src::V(next), Src::V(quotient))?;
            rest = self.choose(more, Src::V(less), Src::V(rest))?;
        }
        Ok([quotient, rest])
    }

    /// A quotient or remainder of 64 bits.
    pub(super) fn divide_wide(&mut self, bin: IntBin, n: Src, d: Src) -> Result<Part, Fault> {
        let (signed, remainder) = kind(bin);
        if !signed {
            let both = self.divide_wide_magnitudes(n, d)?;
            return Ok(both[usize::from(remainder)]);
        }
        let (sign_n, n) = self.magnitude_wide(n)?;
        let (sign_d, d) = self.magnitude_wide(d)?;
        let both = self.divide_wide_magnitudes(n, d)?;
        let sign = if remainder { sign_n } else { self.valu_new("v_xor_b32", 1, &[Src::V(sign_n), Src::V(sign_d)])? };
        self.with_sign_wide(Src::V(both[usize::from(remainder)]), sign)
    }

    /// The negated number if `sign` is all ones, the number itself if it is zero.
    pub(super) fn with_sign_wide(&mut self, x: Src, sign: Part) -> Result<Part, Fault> {
        let mut flipped = [Src::Bits(0); 2];
        for (word, out) in x.halves().into_iter().zip(&mut flipped) {
            *out = Src::V(self.valu_new("v_xor_b32", 1, &[Src::V(sign), word])?);
        }
        let flipped = self.pair(flipped[0], flipped[1])?;
        let signs = self.pair(Src::V(sign), Src::V(sign))?;
        self.sub_wide(Src::V(flipped), Src::V(signs))
    }

    /// The sign of a number, as all ones or zero in one word, and its magnitude.
    pub(super) fn magnitude_wide(&mut self, x: Src) -> Result<(Part, Src), Fault> {
        let sign = self.valu_new("v_ashrrev_i32", 1, &[Src::Bits(31), x.word(1)])?;
        Ok((sign, Src::V(self.with_sign_wide(x, sign)?)))
    }

    fn divide_wide_magnitudes(&mut self, n: Src, d: Src) -> Result<[Part; 2], Fault> {
        let inverse = self.inverse_wide(d)?;
        let mut quotient = self.mul_high(n, Src::V(inverse))?;
        let product = self.mul_low(Src::V(quotient), d)?;
        let mut rest = self.sub_wide(n, Src::V(product))?;
        for _ in 0..2 {
            let more = self.compare_new("v_cmp_ge_u64", [Src::V(rest), d])?;
            let next = self.add_wide(Src::V(quotient), Src::Bits(1))?;
            let less = self.sub_wide(Src::V(rest), d)?;
            quotient = self.choose_wide(more, Src::V(next), Src::V(quotient))?;
            rest = self.choose_wide(more, Src::V(less), Src::V(rest))?;
        }
        Ok([quotient, rest])
    }

    /// A number that is at most 2⁶⁴ / d, and near it.
    fn inverse_wide(&mut self, d: Src) -> Result<Part, Fault> {
        let float = Src::V(self.double_of_unsigned(d)?);
        let mut near = Src::V(self.valu_new("v_rcp_f64", 2, &[float])?);
        for _ in 0..2 {
            let error = self.negated("v_fma_f64", 2, &[float, near, Src::Bits(1f64.to_bits())], 1)?;
            near = Src::V(self.valu_new("v_fma_f64", 2, &[near, Src::V(error), near])?);
        }
        let scaled = self.valu_new("v_mul_f64", 2, &[near, Src::Bits(DOUBLE_SCALE.to_bits())])?;
        let near = Src::V(self.unsigned_of_double(Src::V(scaled))?);
        let product = self.mul_low(near, d)?;
        let error = self.sub_wide(Src::Bits(0), Src::V(product))?;
        let more = self.mul_high(near, Src::V(error))?;
        self.add_wide(near, Src::V(more))
    }
}
