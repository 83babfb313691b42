//! Conversions between floats and integers of 64 bits, by the words of the integers.
//!
//! An integer in `f64` is h 2³² + l with words h and l, both of which `f64` has exactly: the sum rounds once. In `f32` it is shifted so
//! that its highest bit is the highest of a word, the bits below that word are collected in the word's last bit, which is below the digits of
//! an `f32`, and the word is converted, which rounds once.
//!
//! A float x, truncated to t, has the words h = ⌊t / 2³²⌋ and l = t − h 2³², both exact. The conversions of h and l saturate and turn
//! NaN to 0, so the high word is right for every x, and so is the low word but beyond the range, where it is set.

use super::{Select, Src};
use crate::codegen::error::Fault;
use crate::codegen::machine_ir::Part;

/// −32 in a word.
const MINUS_32: u64 = 0xffff_ffe0;

impl Select<'_> {
    /// An unsigned integer as an `f64`, rounded once.
    pub(super) fn double_of_unsigned(&mut self, x: Src) -> Result<Part, Fault> {
        self.double_of_words("v_cvt_f64_u32", x)
    }

    /// A signed integer as an `f64`, rounded once.
    pub(super) fn double_of_signed(&mut self, x: Src) -> Result<Part, Fault> {
        self.double_of_words("v_cvt_f64_i32", x)
    }

    fn double_of_words(&mut self, high: &'static str, x: Src) -> Result<Part, Fault> {
        let high = self.valu_new(high, 2, &[x.word(1)])?;
        let high = self.valu_new("v_ldexp_f64", 2, &[Src::V(high), Src::Bits(32)])?;
        let low = self.valu_new("v_cvt_f64_u32", 2, &[x.word(0)])?;
        self.valu_new("v_add_f64", 2, &[Src::V(high), Src::V(low)])
    }

    /// An unsigned integer as an `f32`, rounded once.
    pub(super) fn single_of_unsigned(&mut self, x: Src) -> Result<Part, Fault> {
        // Of a word that is 0, `v_ffbh_u32` gives −1 (ISA §12.8): the low word is then shifted into its place.
        let zeros = self.valu_new("v_ffbh_u32", 1, &[x.word(1)])?;
        let zeros = Src::V(self.valu_new("v_min_u32", 1, &[Src::Bits(32), Src::V(zeros)])?);
        let shifted = self.valu_new("v_lshlrev_b64", 2, &[zeros, x])?;
        let below = self.valu_new("v_min_u32", 1, &[Src::Bits(1), Src::V(shifted.word(0))])?;
        let word = self.valu_new("v_or_b32", 1, &[Src::V(below), Src::V(shifted.word(1))])?;
        let single = self.valu_new("v_cvt_f32_u32", 1, &[Src::V(word)])?;
        let power = self.valu_new("v_sub_u32", 1, &[Src::Bits(32), zeros])?;
        self.valu_new("v_ldexp_f32", 1, &[Src::V(single), Src::V(power)])
    }

    /// A signed integer as an `f32`, rounded once: its magnitude, with its sign.
    pub(super) fn single_of_signed(&mut self, x: Src) -> Result<Part, Fault> {
        let (sign, magnitude) = self.magnitude_wide(x)?;
        let single = self.single_of_unsigned(magnitude)?;
        let sign = self.valu_new("v_and_b32", 1, &[Src::Bits(0x8000_0000), Src::V(sign)])?;
        self.valu_new("v_or_b32", 1, &[Src::V(sign), Src::V(single)])
    }

    /// The words of a truncated float as floats: the low one, and the high one.
    fn words_of_double(&mut self, x: Src) -> Result<[Src; 2], Fault> {
        let whole = Src::V(self.valu_new("v_trunc_f64", 2, &[x])?);
        let high = self.valu_new("v_ldexp_f64", 2, &[whole, Src::Bits(MINUS_32)])?;
        let high = Src::V(self.valu_new("v_floor_f64", 2, &[Src::V(high)])?);
        let above = self.valu_new("v_ldexp_f64", 2, &[high, Src::Bits(32)])?;
        let low = self.minus_double(whole, Src::V(above))?;
        Ok([low, high])
    }

    /// An `f64` that is neither negative nor above the range as an unsigned integer.
    pub(super) fn unsigned_of_double(&mut self, x: Src) -> Result<Part, Fault> {
        let [low, high] = self.words_of_double(x)?;
        let low = self.valu_new("v_cvt_u32_f64", 1, &[low])?;
        let high = self.valu_new("v_cvt_u32_f64", 1, &[high])?;
        self.pair(Src::V(low), Src::V(high))
    }

    /// Any `f64` as an unsigned integer, saturated.
    pub(super) fn saturated_unsigned(&mut self, x: Src) -> Result<Part, Fault> {
        let x = Src::V(self.valu_new("v_max_f64", 2, &[x, Src::Bits(0)])?);
        let whole = self.unsigned_of_double(x)?;
        let beyond = self.compare_new("v_cmp_le_f64", [Src::Bits(2f64.powi(64).to_bits()), x])?;
        let low = self.choose(beyond, Src::Bits(0xffff_ffff), Src::V(whole.word(0)))?;
        self.pair(Src::V(low), Src::V(whole.word(1)))
    }

    /// Any `f64` as a signed integer, saturated.
    pub(super) fn saturated_signed(&mut self, x: Src) -> Result<Part, Fault> {
        let x = Src::V(self.in_vector(x, 2)?);
        let [low, high] = self.words_of_double(x)?;
        let low = self.valu_new("v_cvt_u32_f64", 1, &[low])?;
        let high = self.valu_new("v_cvt_i32_f64", 1, &[high])?;
        let (least, beyond) = (-(2f64.powi(63)), 2f64.powi(63));
        let above = self.compare_new("v_cmp_le_f64", [Src::Bits(beyond.to_bits()), x])?;
        let below = self.compare_new("v_cmp_gt_f64", [Src::Bits(least.to_bits()), x])?;
        let low = self.choose(above, Src::Bits(0xffff_ffff), Src::V(low))?;
        let low = self.choose(below, Src::Bits(0), Src::V(low))?;
        self.pair(Src::V(low), Src::V(high))
    }
}
