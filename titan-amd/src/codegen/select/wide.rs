//! Integers of 64 bits, and products of two of 32 bits.
//!
//! A product of 64 bits is made of those of its words a₁a₀ and b₁b₀, by `v_mad_u64_u32`, which adds a product of 64 bits to a number of
//! 64 bits. The high half is a₁b₁ plus the carries of the two products in the middle; no sum exceeds 64 bits, because
//! (2³² − 1)² + 2 (2³² − 1) = 2⁶⁴ − 1.

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first, two};
use crate::codegen::machine_ir::{File, Part};
use titan_core::lane::{IntBin, Op, Value};

impl Select<'_> {
    pub(super) fn wide_op(&mut self, bin: IntBin, args: [Value; 2], op: &Op) -> Done {
        let value = first(&op.results)?;
        let [a, b] = self.srcs(args)?;
        if self.is_scalar(op)? && self.wide_scalar(bin, value, [a, b])? {
            return Ok(());
        }
        let out = match bin {
            IntBin::Add => self.add_wide(a, b)?,
            IntBin::Sub => self.sub_wide(a, b)?,
            IntBin::Mul => self.mul_low(a, b)?,
            IntBin::MulHi => self.mul_high(a, b)?,
            IntBin::And => self.each_word("v_and_b32", a, b)?,
            IntBin::Or => self.each_word("v_or_b32", a, b)?,
            IntBin::Xor => self.each_word("v_xor_b32", a, b)?,
            IntBin::Shl => self.valu_new("v_lshlrev_b64", 2, &[b, a])?,
            IntBin::ShrS => self.valu_new("v_ashrrev_i64", 2, &[b, a])?,
            IntBin::ShrU => self.valu_new("v_lshrrev_b64", 2, &[b, a])?,
            IntBin::MinS => self.less_of("v_cmp_lt_i64", a, b)?,
            IntBin::MinU => self.less_of("v_cmp_lt_u64", a, b)?,
            IntBin::MaxS => self.less_of("v_cmp_gt_i64", a, b)?,
            IntBin::MaxU => self.less_of("v_cmp_gt_u64", a, b)?,
            IntBin::DivS | IntBin::DivU | IntBin::RemS | IntBin::RemU => self.divide_wide(bin, a, b)?,
        };
        self.set(value, Spot::V(out));
        Ok(())
    }

    /// Selects scalar instructions if there are some for an operation.
    fn wide_scalar(&mut self, bin: IntBin, value: Value, [a, b]: [Src; 2]) -> Result<bool, Fault> {
        let whole = match bin {
            IntBin::And => "s_and_b64",
            IntBin::Or => "s_or_b64",
            IntBin::Xor => "s_xor_b64",
            IntBin::Shl => "s_lshl_b64",
            IntBin::ShrS => "s_ashr_i64",
            IntBin::ShrU => "s_lshr_b64",
            // The condition code carries from the first to the second: what constants need is moved before, and moves keep it.
            IntBin::Add => return self.two_words(value, ["s_add_u32", "s_addc_u32"], [a, b]),
            IntBin::Sub => return self.two_words(value, ["s_sub_u32", "s_subb_u32"], [a, b]),
            IntBin::Mul => return self.mul_scalar(value, [a, b]),
            IntBin::MulHi
            | IntBin::DivS
            | IntBin::DivU
            | IntBin::RemS
            | IntBin::RemU
            | IntBin::MinS
            | IntBin::MinU
            | IntBin::MaxS
            | IntBin::MaxU => return Ok(false),
        };
        let out = self.out_s(value);
        self.salu(whole, Some(out.into()), &[a, b])?;
        Ok(true)
    }

    fn two_words(&mut self, value: Value, names: [&'static str; 2], [a, b]: [Src; 2]) -> Result<bool, Fault> {
        let out = self.out_pieces(value, File::S);
        for (n, name) in (0..2).zip(names) {
            self.salu(name, Some(out.word(n).into()), &[a.word(n), b.word(n)])?;
        }
        Ok(true)
    }

    fn mul_scalar(&mut self, value: Value, [a, b]: [Src; 2]) -> Result<bool, Fault> {
        let out = self.out_pieces(value, File::S);
        let ([a0, a1], [b0, b1]) = (a.halves(), b.halves());
        let carry = self.salu_new("s_mul_hi_u32", 1, &[a0, b0])?;
        let first = self.salu_new("s_mul_i32", 1, &[a0, b1])?;
        let second = self.salu_new("s_mul_i32", 1, &[a1, b0])?;
        let sum = self.salu_new("s_add_u32", 1, &[Src::S(carry), Src::S(first)])?;
        self.salu("s_mul_i32", Some(out.word(0).into()), &[a0, b0])?;
        self.salu("s_add_u32", Some(out.word(1).into()), &[Src::S(sum), Src::S(second)])?;
        Ok(true)
    }

    pub(super) fn add_wide(&mut self, a: Src, b: Src) -> Result<Part, Fault> {
        self.valu_new("v_lshl_add_u64", 2, &[a, Src::Bits(0), b])
    }

    /// The carry is a mask of lanes, as an operand and as a result: ISA §12.7, `V_SUB_CO_U32`, `V_SUBB_CO_U32`.
    pub(super) fn sub_wide(&mut self, a: Src, b: Src) -> Result<Part, Fault> {
        let (out, borrow, unused) = (self.pieces(File::V, 2), self.fresh(File::S, 2), self.fresh(File::S, 2));
        let ([a0, a1], [b0, b1]) = (a.halves(), b.halves());
        self.valu("v_sub_co_u32", &[out.word(0).into(), borrow.into()], &[a0, b0], &[])?;
        self.valu("v_subb_co_u32", &[out.word(1).into(), unused.into()], &[a1, b1, Src::S(borrow)], &[])?;
        Ok(out)
    }

    /// The product of two words, plus a number of 64 bits.
    fn mad(&mut self, a: Src, b: Src, c: Src) -> Result<Part, Fault> {
        let (out, unused) = (self.fresh(File::V, 2), self.fresh(File::S, 2));
        self.valu("v_mad_u64_u32", &[out.into(), unused.into()], &[a, b, c], &[])?;
        Ok(out)
    }

    pub(super) fn mul_low(&mut self, a: Src, b: Src) -> Result<Part, Fault> {
        let ([a0, a1], [b0, b1]) = (a.halves(), b.halves());
        let first = self.valu_new("v_mul_lo_u32", 1, &[a0, b1])?;
        let second = self.valu_new("v_mul_lo_u32", 1, &[a1, b0])?;
        let sum = self.valu_new("v_add_u32", 1, &[Src::V(first), Src::V(second)])?;
        let high = self.pair(Src::Bits(0), Src::V(sum))?;
        self.mad(a0, b0, Src::V(high))
    }

    /// The high half of the unsigned product.
    pub(super) fn mul_high(&mut self, a: Src, b: Src) -> Result<Part, Fault> {
        let ([a0, a1], [b0, b1]) = (a.halves(), b.halves());
        let low = self.valu_new("v_mul_hi_u32", 1, &[a0, b0])?;
        let carry = self.pair(Src::V(low), Src::Bits(0))?;
        let middle = self.mad(a1, b0, Src::V(carry))?;
        let below = self.pair(Src::V(middle.word(0)), Src::Bits(0))?;
        let other = self.mad(a0, b1, Src::V(below))?;
        let [above, more] = [middle, other].map(|m| Src::V(m.word(1)));
        let (above, more) = (self.pair(above, Src::Bits(0))?, self.pair(more, Src::Bits(0))?);
        let sum = self.add_wide(Src::V(above), Src::V(more))?;
        self.mad(a1, b1, Src::V(sum))
    }

    fn each_word(&mut self, name: &'static str, a: Src, b: Src) -> Result<Part, Fault> {
        let out = self.pieces(File::V, 2);
        for n in 0..2 {
            self.valu(name, &[out.word(n).into()], &[a.word(n), b.word(n)], &[])?;
        }
        Ok(out)
    }

    /// `a` where a comparison holds, else `b`.
    fn less_of(&mut self, compare: &'static str, a: Src, b: Src) -> Result<Part, Fault> {
        let mask = self.compare_new(compare, [a, b])?;
        self.choose_wide(mask, a, b)
    }

    /// `yes` in the lanes of a mask, else `no`: two words in a new register.
    pub(super) fn choose_wide(&mut self, mask: Part, yes: Src, no: Src) -> Result<Part, Fault> {
        let out = self.pieces(File::V, 2);
        for n in 0..2 {
            self.valu("v_cndmask_b32", &[out.word(n).into()], &[no.word(n), yes.word(n), Src::S(mask)], &[])?;
        }
        Ok(out)
    }

    pub(super) fn mul_wide(&mut self, signed: bool, op: &Op) -> Done {
        let value = first(&op.results)?;
        let [a, b] = self.srcs(two(&op.args)?)?;
        if self.is_scalar(op)? {
            let out = self.out_pieces(value, File::S);
            let high = if signed { "s_mul_hi_i32" } else { "s_mul_hi_u32" };
            self.salu("s_mul_i32", Some(out.word(0).into()), &[a, b])?;
            return self.salu(high, Some(out.word(1).into()), &[a, b]);
        }
        let out = self.out_v(value);
        let unused = self.fresh(File::S, 2);
        let name = if signed { "v_mad_i64_i32" } else { "v_mad_u64_u32" };
        self.valu(name, &[out.into(), unused.into()], &[a, b, Src::Bits(0)], &[])
    }
}
