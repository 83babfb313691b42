//! Conversions: a table of single instructions, and sequences of them.
//!
//! A sequence has at most one step that rounds. Where the target format has no instruction from the source, the value is first
//! rounded to odd in `f32`: toward zero, and the last bit set if something was lost. A second rounding to a format of at
//! most 22 bits then sees whether there was a tie (Boldo and Melquiond, *Emulation of a FMA and correctly rounded sums*, 2008).
//!
//! | to | from | path |
//! |---|---|---|
//! | any | `bf16` | its bits are the upper half of an `f32` |
//! | any | fp8 | `f16`, two at once |
//! | `bf16`, `tf32`, fp8 | `f64`, integers | `f32`, rounded to odd |
//! | 64-bit integers, or any from `f64` | floats | NaN gives 0 by a selection |

use super::error::{Fault, first};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::Reg;
use crate::ptx::isa::control::{PACK, UNPACK};
use crate::ptx::isa::convert::{CONVERT, CONVERT_RZ, FROM_FP8, TO_FP8};
use crate::ptx::isa::find;
use crate::ptx::isa::float::{COMPARE_FLOAT, IS_NAN};
use crate::ptx::isa::int::{EXTEND, TRUNCATE};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{FloatTy, IntBin, Num, Op, OpKind, Ty, Value};

/// The bits of an `f32` that `tf32` lacks.
const TF32_CUT: u64 = 0x1fff;

const fn is_fp8(num: Num) -> bool {
    matches!(num, Num::E4m3 | Num::E5m2)
}

impl Lower<'_> {
    pub(super) fn convert_op(&mut self, from: Num, to: Num, op: &Op) -> Done {
        let outs = self.outs(op);
        if let (true, &[a, b]) = (is_fp8(from) && from != to, op.args.as_slice())
            && let Some(half) = self.bytes_of_word([a, b])?
        {
            return self.widen_pair(from, to, half, &outs);
        }
        if outs.len() == 2 {
            let args: Vec<Arg> = op.args.iter().map(|a| Arg::Value(*a)).collect();
            return self.convert_fp8(from, to, &args, &outs);
        }
        let (a, out) = (Arg::Value(first(&op.args)?), first(&outs)?);
        if to != Num::Tf32 || matches!(from, Num::F16 | Num::Bf16 | Num::E4m3 | Num::E5m2) {
            return self.convert_into(from, to, a, out);
        }
        let single = self.single(from, a)?;
        self.round_tf32(Arg::Reg(single), out, op.results.first().copied())
    }

    pub(super) fn convert(&mut self, from: Num, to: Num, a: Arg) -> Result<Reg, Fault> {
        let out = self.fresh(to.ty());
        self.convert_into(from, to, a, out)?;
        Ok(out)
    }

    pub(super) fn convert_into(&mut self, from: Num, to: Num, a: Arg, out: Reg) -> Done {
        let from = if from == Num::Tf32 { Num::F32 } else { from };
        if from == to {
            return self.copy(out, &a);
        }
        if from.is_int() && to.is_int() {
            return self.clamp(from, to, a, out);
        }
        if is_fp8(from) || is_fp8(to) {
            return self.convert_fp8(from, to, &[a], &[out]);
        }
        match (from, to) {
            (Num::Bf16, Num::F32) => {
                let zero = self.constant(Ty::B16, 0)?;
                let half = self.in_register(a, Ty::B16)?;
                self.inst(form_of(PACK, &Ty::B16)?, &[Arg::Reg(out), Arg::Regs(vec![zero, half])])
            }
            (Num::F32, Num::Tf32) => self.round_tf32(a, out, None),
            (Num::F16 | Num::Bf16, Num::Tf32) => self.convert_into(from, Num::F32, a, out),
            (Num::F32 | Num::F16 | Num::F64, to) if to.is_int() => self.truncate_float(from, to, a, out),
            (from, to) => match find(CONVERT, &(from, to)) {
                Some(form) => {
                    let a = self.in_register(a, from.ty())?;
                    self.inst(form, &[Arg::Reg(out), Arg::Reg(a)])
                }
                None => {
                    let single = self.single(from, a)?;
                    self.convert_into(Num::F32, to, Arg::Reg(single), out)
                }
            },
        }
    }

    fn in_register(&mut self, a: Arg, ty: Ty) -> Result<Reg, Fault> {
        match a {
            Arg::Reg(reg) => Ok(reg),
            Arg::Value(value) => self.reg(value),
            Arg::Bits(bits) => self.constant(ty, bits),
            Arg::Values(_)
            | Arg::Regs(_)
            | Arg::Address(_)
            | Arg::Special(_)
            | Arg::SharedBase
            | Arg::Param(_)
            | Arg::Box(..)
            | Arg::Label(_) => Err(Fault::Defect("no number".to_owned())),
        }
    }

    /// Converts to an `f32` from which one more rounding gives the same result as a rounding of the original number.
    fn single(&mut self, from: Num, a: Arg) -> Result<Reg, Fault> {
        match from {
            Num::F32 | Num::Tf32 => self.in_register(a, Ty::B32),
            Num::F16 | Num::Bf16 | Num::E4m3 | Num::E5m2 => self.convert(from, Num::F32, a),
            Num::F64 | Num::S32 | Num::U32 | Num::S64 | Num::U64 => self.round_to_odd(from, a),
        }
    }

    fn round_to_odd(&mut self, from: Num, a: Arg) -> Result<Reg, Fault> {
        let a = self.in_register(a, from.ty())?;
        let (cut, odd, back, out) =
            (self.fresh(Ty::B32), self.fresh(Ty::B32), self.fresh(from.ty()), self.fresh(Ty::B32));
        self.inst(form_of(CONVERT_RZ, &from)?, &[Arg::Reg(cut), Arg::Reg(a)])?;
        self.inst(form_of(CONVERT, &(Num::F32, from))?, &[Arg::Reg(back), Arg::Reg(cut)])?;
        let lost = if from == Num::F64 {
            let lost = self.fresh(Ty::Pred);
            let form = form_of(COMPARE_FLOAT, &(Cmp::Ne, FloatTy::F64))?;
            self.inst(form, &[Arg::Reg(lost), Arg::Reg(back), Arg::Reg(a)])?;
            lost
        } else {
            self.compare((Cmp::Ne, false, from.ty()), Arg::Reg(back), Arg::Reg(a))?
        };
        self.int(IntBin::Or, odd, &[Arg::Reg(cut), Arg::Bits(1)])?;
        self.choose(out, lost, Arg::Reg(odd), Arg::Reg(cut))?;
        Ok(out)
    }

    /// Rounds to `tf32`. The manual leaves the bits open that a `tf32` does not have; only MMAs ignore them.
    fn round_tf32(&mut self, a: Arg, out: Reg, value: Option<Value>) -> Done {
        let a = self.in_register(a, Ty::B32)?;
        let form = form_of(CONVERT, &(Num::F32, Num::Tf32))?;
        if value.is_some_and(|value| self.uses.only_matrices(value)) {
            return self.inst(form, &[Arg::Reg(out), Arg::Reg(a)]);
        }
        let rounded = self.fresh(Ty::B32);
        self.inst(form, &[Arg::Reg(rounded), Arg::Reg(a)])?;
        self.int(IntBin::And, out, &[Arg::Reg(rounded), Arg::Bits(!TF32_CUT)])
    }

    fn is_nan(&mut self, ty: FloatTy, a: Reg) -> Result<Reg, Fault> {
        let nan = self.fresh(Ty::Pred);
        self.inst(form_of(IS_NAN, &ty)?, &[Arg::Reg(nan), Arg::Reg(a), Arg::Reg(a)])?;
        Ok(nan)
    }

    fn truncate_float(&mut self, from: Num, to: Num, a: Arg, out: Reg) -> Done {
        let a = self.in_register(a, from.ty())?;
        let form = form_of(CONVERT, &(from, to))?;
        let ty = match from {
            Num::F64 => FloatTy::F64,
            Num::F16 => FloatTy::F16,
            Num::F32 | Num::Tf32 | Num::Bf16 | Num::E4m3 | Num::E5m2 | Num::S32 | Num::U32 | Num::S64 | Num::U64 => {
                FloatTy::F32
            }
        };
        if from != Num::F64 && to.ty() == Ty::B32 {
            return self.inst(form, &[Arg::Reg(out), Arg::Reg(a)]);
        }
        let clamped = self.fresh(to.ty());
        self.inst(form, &[Arg::Reg(clamped), Arg::Reg(a)])?;
        let nan = self.is_nan(ty, a)?;
        self.choose(out, nan, Arg::Bits(0), Arg::Reg(clamped))
    }

    /// Saturates integers: first to the range that both types share, then to the width of the result.
    fn clamp(&mut self, from: Num, to: Num, a: Arg, out: Reg) -> Done {
        let signed = |num| matches!(num, Num::S32 | Num::S64);
        let wide = |num: Num| num.ty() == Ty::B64;
        let mut a = self.in_register(a, from.ty())?;
        if signed(from) && !signed(to) {
            a = self.limited(IntBin::MaxS, a, 0)?;
        }
        // The largest value of the target type, where the source type has larger ones.
        let high = match (from, to) {
            (Num::S64 | Num::U64, Num::S32) | (Num::U32, Num::S32) => Some(u64::from(u32::MAX >> 1)),
            (Num::S64 | Num::U64, Num::U32) => Some(u64::from(u32::MAX)),
            (Num::U64, Num::S64) => Some(u64::MAX >> 1),
            (_, _) => None,
        };
        if let Some(high) = high {
            a = self.limited(if signed(from) { IntBin::MinS } else { IntBin::MinU }, a, high)?;
        }
        if from == Num::S64 && to == Num::S32 {
            a = self.limited(IntBin::MaxS, a, i64::from(i32::MIN).cast_unsigned())?;
        }
        match (wide(from), wide(to)) {
            (false, true) => {
                let form = form_of(EXTEND, &(32, Ty::B32, signed(from), Ty::B64))?;
                self.inst(form, &[Arg::Reg(out), Arg::Reg(a)])
            }
            (true, false) => self.inst(form_of(TRUNCATE, &Ty::B32)?, &[Arg::Reg(out), Arg::Reg(a)]),
            (true, true) | (false, false) => self.copy(out, &Arg::Reg(a)),
        }
    }

    fn limited(&mut self, bin: IntBin, a: Reg, limit: u64) -> Result<Reg, Fault> {
        let out = self.fresh(a.class);
        self.int(bin, out, &[Arg::Reg(a), Arg::Bits(limit)])?;
        Ok(out)
    }

    /// Converts one or two numbers from or to an 8-bit float; each instruction converts two.
    fn convert_fp8(&mut self, from: Num, to: Num, args: &[Arg], outs: &[Reg]) -> Done {
        if from == to {
            return args.iter().zip(outs).try_for_each(|(a, out)| self.copy(*out, a));
        }
        if is_fp8(from) {
            return self.widen_fp8(from, to, args, outs);
        }
        if from == Num::F16 {
            let mut halves = Vec::new();
            for arg in args {
                halves.push(self.in_register(arg.clone(), Ty::B16)?);
            }
            if let [half] = halves.as_slice() {
                halves.push(*half);
            }
            let word = self.fresh(Ty::B32);
            self.inst(form_of(PACK, &Ty::B16)?, &[Arg::Reg(word), Arg::Regs(halves)])?;
            return self.narrow_fp8((Num::F16, to), vec![Arg::Reg(word)], outs);
        }
        // The first operand becomes the upper element.
        let mut singles = vec![Arg::Bits(0)];
        for (i, arg) in args.iter().enumerate() {
            let single = Arg::Reg(self.single(from, arg.clone())?);
            if i == 0 { singles.push(single) } else { singles[0] = single }
        }
        self.narrow_fp8((Num::F32, to), singles, outs)
    }

    fn widen_fp8(&mut self, from: Num, to: Num, args: &[Arg], outs: &[Reg]) -> Done {
        let mut word = self.in_register(first_of(args)?, Ty::B32)?;
        if let [_, b] = args {
            let both = self.fresh(Ty::B32);
            self.low_bytes(both, Arg::Reg(word), b.clone())?;
            word = both;
        }
        let narrow = self.fresh(Ty::B16);
        self.inst(form_of(TRUNCATE, &Ty::B16)?, &[Arg::Reg(narrow), Arg::Reg(word)])?;
        self.widen_pair(from, to, narrow, outs)
    }

    /// The 16-bit half of a word that contains both bytes, if they were extracted from one: then they need not be packed again.
    fn bytes_of_word(&mut self, bytes: [Value; 2]) -> Result<Option<Reg>, Fault> {
        let func = self.func;
        let Some(op) = func.def_op(bytes[0]).filter(|op| op.kind == OpKind::UnpackBytes { signed: false }) else {
            return Ok(None);
        };
        let Some(half) = op.results.chunks(2).position(|pair| pair == bytes) else { return Ok(None) };
        let halves = [self.fresh(Ty::B16), self.fresh(Ty::B16)];
        let word = Arg::Value(first(&op.args)?);
        self.inst(form_of(UNPACK, &Ty::B32)?, &[Arg::Regs(halves.to_vec()), word])?;
        Ok(halves.get(half).copied())
    }

    fn widen_pair(&mut self, from: Num, to: Num, pair: Reg, outs: &[Reg]) -> Done {
        let halves = self.fresh(Ty::B32);
        self.inst(form_of(FROM_FP8, &from)?, &[Arg::Reg(halves), Arg::Reg(pair)])?;
        if is_fp8(to) {
            return self.narrow_fp8((Num::F16, to), vec![Arg::Reg(halves)], outs);
        }
        let split = [self.fresh(Ty::B16), self.fresh(Ty::B16)];
        self.inst(form_of(UNPACK, &Ty::B32)?, &[Arg::Regs(split.to_vec()), Arg::Reg(halves)])?;
        split.into_iter().zip(outs).try_for_each(|(half, out)| self.convert_into(Num::F16, to, Arg::Reg(half), *out))
    }

    /// Converts two numbers, in a format that the instruction accepts, to the low bytes of registers.
    fn narrow_fp8(&mut self, key: (Num, Num), args: Vec<Arg>, outs: &[Reg]) -> Done {
        let (pair, word) = (self.fresh(Ty::B16), self.fresh(Ty::B32));
        if let [first, _] = outs {
            self.pairs.insert(*first, pair);
        }
        self.inst(form_of(TO_FP8, &key)?, &[vec![Arg::Reg(pair)], args].concat())?;
        self.inst(form_of(EXTEND, &(16, Ty::B16, false, Ty::B32))?, &[Arg::Reg(word), Arg::Reg(pair)])?;
        for (i, out) in outs.iter().enumerate() {
            let (bin, by) = if i == 0 { (IntBin::And, 0xff) } else { (IntBin::ShrU, 8) };
            self.int(bin, *out, &[Arg::Reg(word), Arg::Bits(by)])?;
        }
        Ok(())
    }
}

fn first_of(args: &[Arg]) -> Result<Arg, Fault> {
    args.first().cloned().ok_or_else(|| Fault::Defect("an operand is missing".to_owned()))
}
