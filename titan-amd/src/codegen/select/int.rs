//! Integers of 32 bits and less, conditions, comparisons and extensions.
//!
//! Source: ISA §12.1 "SOP2 Instructions", §12.4 "SOPC Instructions", §12.7 "VOP2 Instructions", §12.9 "VOPC Instructions", §12.11.

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first, two};
use crate::codegen::machine_ir::{File, Part};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{IntBin, IntUn, Op, Ty, Value};

/// The scalar instruction for an operation on 32 bits, if there is one.
const fn scalar(bin: IntBin) -> Option<&'static str> {
    match bin {
        IntBin::Add => Some("s_add_u32"),
        IntBin::Sub => Some("s_sub_u32"),
        IntBin::Mul => Some("s_mul_i32"),
        IntBin::MulHi => Some("s_mul_hi_u32"),
        IntBin::And => Some("s_and_b32"),
        IntBin::Or => Some("s_or_b32"),
        IntBin::Xor => Some("s_xor_b32"),
        IntBin::Shl => Some("s_lshl_b32"),
        IntBin::ShrS => Some("s_ashr_i32"),
        IntBin::ShrU => Some("s_lshr_b32"),
        IntBin::MinS => Some("s_min_i32"),
        IntBin::MinU => Some("s_min_u32"),
        IntBin::MaxS => Some("s_max_i32"),
        IntBin::MaxU => Some("s_max_u32"),
        IntBin::DivS | IntBin::DivU | IntBin::RemS | IntBin::RemU => None,
    }
}

/// The vector instruction for an operation on 32 bits, and whether its sources are the other way around.
const fn vector(bin: IntBin) -> Option<(&'static str, bool)> {
    match bin {
        IntBin::Add => Some(("v_add_u32", false)),
        IntBin::Sub => Some(("v_sub_u32", false)),
        IntBin::Mul => Some(("v_mul_lo_u32", false)),
        IntBin::MulHi => Some(("v_mul_hi_u32", false)),
        IntBin::And => Some(("v_and_b32", false)),
        IntBin::Or => Some(("v_or_b32", false)),
        IntBin::Xor => Some(("v_xor_b32", false)),
        IntBin::Shl => Some(("v_lshlrev_b32", true)),
        IntBin::ShrS => Some(("v_ashrrev_i32", true)),
        IntBin::ShrU => Some(("v_lshrrev_b32", true)),
        IntBin::MinS => Some(("v_min_i32", false)),
        IntBin::MinU => Some(("v_min_u32", false)),
        IntBin::MaxS => Some(("v_max_i32", false)),
        IntBin::MaxU => Some(("v_max_u32", false)),
        IntBin::DivS | IntBin::DivU | IntBin::RemS | IntBin::RemU => None,
    }
}

/// The comparison of lanes.
const fn compare_lanes(pred: Cmp, signed: bool, wide: bool) -> &'static str {
    match (pred, signed, wide) {
        (Cmp::Eq, _, false) => "v_cmp_eq_u32",
        (Cmp::Ne, _, false) => "v_cmp_ne_u32",
        (Cmp::Eq, _, true) => "v_cmp_eq_u64",
        (Cmp::Ne, _, true) => "v_cmp_ne_u64",
        (Cmp::Lt, true, false) => "v_cmp_lt_i32",
        (Cmp::Le, true, false) => "v_cmp_le_i32",
        (Cmp::Gt, true, false) => "v_cmp_gt_i32",
        (Cmp::Ge, true, false) => "v_cmp_ge_i32",
        (Cmp::Lt, false, false) => "v_cmp_lt_u32",
        (Cmp::Le, false, false) => "v_cmp_le_u32",
        (Cmp::Gt, false, false) => "v_cmp_gt_u32",
        (Cmp::Ge, false, false) => "v_cmp_ge_u32",
        (Cmp::Lt, true, true) => "v_cmp_lt_i64",
        (Cmp::Le, true, true) => "v_cmp_le_i64",
        (Cmp::Gt, true, true) => "v_cmp_gt_i64",
        (Cmp::Ge, true, true) => "v_cmp_ge_i64",
        (Cmp::Lt, false, true) => "v_cmp_lt_u64",
        (Cmp::Le, false, true) => "v_cmp_le_u64",
        (Cmp::Gt, false, true) => "v_cmp_gt_u64",
        (Cmp::Ge, false, true) => "v_cmp_ge_u64",
    }
}

/// The comparison of scalar registers, if there is one: of 64 bits only for equality.
const fn compare_scalars(pred: Cmp, signed: bool, wide: bool) -> Option<&'static str> {
    match (pred, signed, wide) {
        (Cmp::Eq, _, false) => Some("s_cmp_eq_u32"),
        (Cmp::Ne, _, false) => Some("s_cmp_lg_u32"),
        (Cmp::Eq, _, true) => Some("s_cmp_eq_u64"),
        (Cmp::Ne, _, true) => Some("s_cmp_lg_u64"),
        (Cmp::Lt, true, false) => Some("s_cmp_lt_i32"),
        (Cmp::Le, true, false) => Some("s_cmp_le_i32"),
        (Cmp::Gt, true, false) => Some("s_cmp_gt_i32"),
        (Cmp::Ge, true, false) => Some("s_cmp_ge_i32"),
        (Cmp::Lt, false, false) => Some("s_cmp_lt_u32"),
        (Cmp::Le, false, false) => Some("s_cmp_le_u32"),
        (Cmp::Gt, false, false) => Some("s_cmp_gt_u32"),
        (Cmp::Ge, false, false) => Some("s_cmp_ge_u32"),
        (Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge, _, true) => None,
    }
}

impl Select<'_> {
    /// Arithmetic, bit operations and shifts.
    pub(super) fn int_op(&mut self, bin: IntBin, op: &Op) -> Done {
        let [a, b] = two(&op.args)?;
        match self.func.ty(a) {
            Ty::Pred => self.mask_op(bin, op),
            Ty::B16 | Ty::B32 => self.narrow_op(bin, [a, b], op),
            Ty::B64 => self.wide_op(bin, [a, b], op),
        }
    }

    fn mask_op(&mut self, bin: IntBin, op: &Op) -> Done {
        let name = match bin {
            IntBin::And => "s_and_b64",
            IntBin::Or => "s_or_b64",
            IntBin::Xor => "s_xor_b64",
            IntBin::Add
            | IntBin::Sub
            | IntBin::Mul
            | IntBin::MulHi
            | IntBin::DivS
            | IntBin::DivU
            | IntBin::RemS
            | IntBin::RemU
            | IntBin::Shl
            | IntBin::ShrS
            | IntBin::ShrU
            | IntBin::MinS
            | IntBin::MinU
            | IntBin::MaxS
            | IntBin::MaxU => return Err(Fault::Refused("conditions have no arithmetic".to_owned())),
        };
        let srcs = self.srcs(two(&op.args)?)?;
        let out = self.out_mask(first(&op.results)?);
        self.salu(name, Some(out.into()), &srcs)
    }

    fn narrow_op(&mut self, bin: IntBin, args: [Value; 2], op: &Op) -> Done {
        let value = first(&op.results)?;
        let [a, b] = self.srcs(args)?;
        // The address of a buffer in shared memory, which begins at 0.
        match (bin, a, b) {
            (IntBin::Add, Src::Bits(a), Src::Bits(b)) => {
                self.set(value, Spot::Bits(a.wrapping_add(b) & 0xffff_ffff));
                return Ok(());
            }
            (IntBin::Add, rest, Src::Bits(0)) | (IntBin::Add, Src::Bits(0), rest) => return self.set_src(value, rest),
            (_, _, _) => {}
        }
        if let (true, Some(name)) = (self.is_scalar(op)?, scalar(bin)) {
            let out = self.out_s(value);
            return self.salu(name, Some(out.into()), &[a, b]);
        }
        if let Some((name, reversed)) = vector(bin) {
            let out = self.out_v(value);
            let srcs = if reversed { [b, a] } else { self.constant_first(bin, a, b) };
            return self.valu(name, &[out.into()], &srcs, &[]);
        }
        let out = self.divide(bin, a, b)?;
        // What is computed from it can then be computed by scalar instructions.
        let spot = if self.is_uniform(value) { Spot::S(self.first_lane(out)?) } else { Spot::V(out) };
        self.set(value, spot);
        Ok(())
    }

    /// The sources of an operation in the order in which a constant costs no register, if the order means nothing.
    fn constant_first(&self, bin: IntBin, a: Src, b: Src) -> [Src; 2] {
        let commutes = match bin {
            IntBin::Add
            | IntBin::Mul
            | IntBin::MulHi
            | IntBin::And
            | IntBin::Or
            | IntBin::Xor
            | IntBin::MinS
            | IntBin::MinU
            | IntBin::MaxS
            | IntBin::MaxU => true,
            IntBin::Sub
            | IntBin::DivS
            | IntBin::DivU
            | IntBin::RemS
            | IntBin::RemU
            | IntBin::Shl
            | IntBin::ShrS
            | IntBin::ShrU => false,
        };
        if commutes && matches!(a, Src::V(_)) { [b, a] } else { [a, b] }
    }

    /// Numbers of bits. `v_bcnt_u32_b32` adds them to its second source; of 0, `v_ffbh_u32` gives −1, the greatest unsigned number.
    pub(super) fn int_function(&mut self, un: IntUn, op: &Op) -> Done {
        let (value, a) = (first(&op.results)?, self.src(first(&op.args)?)?);
        match un {
            IntUn::CountOnes => {
                let out = self.out_v(value);
                self.valu("v_bcnt_u32_b32", &[out.into()], &[a, Src::Bits(0)], &[])
            }
            IntUn::LeadingZeros => {
                let zeros = self.valu_new("v_ffbh_u32", 1, &[a])?;
                let out = self.out_v(value);
                self.valu("v_min_u32", &[out.into()], &[Src::Bits(32), Src::V(zeros)], &[])
            }
        }
    }

    pub(super) fn int_compare(&mut self, pred: Cmp, signed: bool, op: &Op) -> Done {
        let [x, y] = two(&op.args)?;
        let [a, b] = self.srcs([x, y])?;
        let (value, ty) = (first(&op.results)?, self.func.ty(x));
        if ty == Ty::Pred {
            let out = self.out_mask(value);
            let name = if pred == Cmp::Eq { "s_xnor_b64" } else { "s_xor_b64" };
            if !matches!(pred, Cmp::Eq | Cmp::Ne) {
                return Err(Fault::Refused("conditions have no order".to_owned()));
            }
            return self.salu(name, Some(out.into()), &[a, b]);
        }
        let wide = ty == Ty::B64;
        if let (true, Some(name)) = (self.is_scalar(op)?, compare_scalars(pred, signed, wide)) {
            self.salu(name, None, &[a, b])?;
            let out = self.out_mask(value);
            return self.salu("s_cselect_b64", Some(out.into()), &[Src::Bits(u64::MAX), Src::Bits(0)]);
        }
        let out = self.out_mask(value);
        self.valu(compare_lanes(pred, signed, wide), &[out.into()], &[a, b], &[])
    }

    pub(super) fn extend(&mut self, from: u8, signed: bool, to: Ty, op: &Op) -> Done {
        let (value, src) = (first(&op.results)?, self.src(first(&op.args)?)?);
        let scalar = self.is_scalar(op)?;
        let low = match (from, scalar) {
            (32, _) => src,
            (_, true) => Src::S(self.extend_scalar(from, signed, src)?),
            (_, false) => {
                let name = if signed { "v_bfe_i32" } else { "v_bfe_u32" };
                Src::V(self.valu_new(name, 1, &[src, Src::Bits(0), Src::Bits(from.into())])?)
            }
        };
        if to != Ty::B64 {
            return self.set_src(value, low);
        }
        let out = self.out_pieces(value, if scalar { File::S } else { File::V });
        let [first, second] = [out.word(0), out.word(1)];
        if scalar {
            self.move_scalar(first, low)?;
            return match signed {
                true => self.salu("s_ashr_i32", Some(second.into()), &[low, Src::Bits(31)]),
                false => self.move_scalar(second, Src::Bits(0)),
            };
        }
        self.move_word(first, low)?;
        match signed {
            true => self.valu("v_ashrrev_i32", &[second.into()], &[Src::Bits(31), low], &[]),
            false => self.move_word(second, Src::Bits(0)),
        }
    }

    fn extend_scalar(&mut self, from: u8, signed: bool, src: Src) -> Result<Part, Fault> {
        match (from, signed) {
            (8, true) => self.salu_new("s_sext_i32_i8", 1, &[src]),
            (_, true) => self.salu_new("s_sext_i32_i16", 1, &[src]),
            (_, false) => self.salu_new("s_and_b32", 1, &[src, Src::Bits((1 << from) - 1)]),
        }
    }
}
