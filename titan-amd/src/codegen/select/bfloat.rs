//! `f32` as `bf16`, rounded to nearest even, by integer arithmetic: half a unit is added, less one where the result would be even.
//!
//! ```text
//! even ← bit 16 of x
//! sum  ← x + 0x7fff + even              the result is its upper half
//! ```
//!
//! The sum of a NaN may be that of no NaN, since a carry changes its sign and its exponent. Alone, a conversion replaces it by a NaN. Many
//! conversions of a region are guarded by one comparison instead: a sum, difference or product of numbers is a NaN if one of them is.
//! So if the operands of the conversions are terms of sums that the program computes in any case (as the probabilities of attention are), and
//! these sums are numbers, no operand is a NaN. If one is a NaN, a block outside of the loop replaces the NaNs among the operands by one whose
//! sum is a NaN, `0x7fc0_0000`. The sum may be a part of an accumulator to which a matrix instruction has added more in the same register since: that
//! is a NaN wherever it was one.
//!
//! The upper half is shifted down only for those who need it there; two of them are packed where they are.

use super::{Select, Src};
use crate::codegen::error::{Done, Fault};
use crate::codegen::machine_ir::{Block, Inst, Kind, Operand, Part};
use crate::isa::Access;
use titan_core::lane::op::OpKind;
use titan_core::lane::{FloatBin, FloatTy, Num, Op, Value};

/// A quiet NaN that half a unit more does not change.
const NAN: u64 = 0x7fc0_0000;
/// The number of conversions that a value must show to be of numbers, so that the comparison costs less than theirs.
const WORTH: usize = 4;

const fn is_conversion(op: &Op) -> bool {
    matches!(op.kind, OpKind::Convert { from: Num::F32, to: Num::Bf16 })
}

/// Whether the result of an operation is a NaN if one of its operands is.
const fn keeps_nan(op: &Op) -> bool {
    matches!(
        op.kind,
        OpKind::Float(FloatBin::Add | FloatBin::Sub | FloatBin::Mul, FloatTy::F32) | OpKind::Fma(FloatTy::F32)
    )
}

/// Whether an operation reads any NaN alike.
const fn reads_number(op: &Op) -> bool {
    matches!(op.kind, OpKind::Float(..) | OpKind::Fma(_) | OpKind::FloatCmp(..)) || is_conversion(op)
}

impl Select<'_> {
    /// An `f32` as a `bf16` in the lower half of a register.
    pub(super) fn bfloat(&mut self, op: &Op, x: Src) -> Result<Part, Fault> {
        let x = Src::V(self.in_vector(x, 1)?);
        let arg = op.args.first().copied().filter(|_| is_conversion(op));
        if let Some(arg) = arg.filter(|arg| self.guards && !self.numbers.contains_key(arg)) {
            self.guard(arg)?;
        }
        let guarded = arg.is_some_and(|arg| self.numbers.get(&arg) == Some(&true));
        let even = self.valu_new("v_bfe_u32", 1, &[x, Src::Bits(16), Src::Bits(1)])?;
        let half = Src::S(self.kept_constant(0x7fff)?);
        let mut word = self.valu_new("v_add3_u32", 1, &[x, Src::V(even), half])?;
        if !guarded {
            let nan = self.compare_new("v_cmp_u_f32", [x, x])?;
            word = self.choose(nan, Src::Bits(u64::MAX), Src::V(word))?;
        }
        if let (Some(_), Some(value)) = (arg, op.results.first()) {
            self.uppers.insert(*value, word);
        }
        self.valu_new("v_lshrrev_b32", 1, &[Src::Bits(16), Src::V(word)])
    }

    /// Makes all operands of conversions of this region that are there numbers, or NaNs whose sum is a NaN; or notes that this is
    /// not worth a comparison.
    fn guard(&mut self, arg: Value) -> Done {
        let func = self.func;
        let ops = func.block(self.region).ops.iter().map(|id| func.op(*id));
        let mut args: Vec<(Value, Part)> = Vec::new();
        let mut witnesses: Vec<Value> = Vec::new();
        for op in ops.filter(|op| is_conversion(op)) {
            let ([value], [result]) = (op.args.as_slice(), op.results.as_slice()) else { continue };
            let fresh = self.spots[result.index()].is_none() && !self.numbers.contains_key(value);
            let Some(part) = self.own_register(*value).filter(|_| fresh) else { continue };
            let Some(witness) = self.witness(*value) else { continue };
            if args.iter().all(|(known, _)| known != value) {
                args.push((*value, part));
            }
            if !witnesses.contains(&witness) {
                witnesses.push(witness);
            }
        }
        if args.len() < WORTH * witnesses.len().max(1) || args.iter().all(|(value, _)| *value != arg) {
            self.numbers.insert(arg, false);
            return Ok(());
        }
        self.begin_earlier(&args)?;
        self.replace_nans(&args, &witnesses)?;
        self.numbers.extend(args.into_iter().map(|(value, _)| (value, true)));
        Ok(())
    }

    /// The register of a value that is its own: an operation of this region computes it, and all others read it as a number.
    fn own_register(&self, value: Value) -> Option<Part> {
        let computed =
            self.func.def_op(value).is_some_and(|op| matches!(op.kind, OpKind::FloatUn(..)) || keeps_nan(op));
        let plain = self.uses.of_value(self.func, value).all(reads_number);
        match self.spots[value.index()] {
            Some(super::Spot::V(part)) if computed && plain && self.uses.home(value) == Some(self.region) => {
                let register = self.code.register(part.reg);
                (register.words == 1 && !register.pieces).then_some(part)
            }
            Some(_) | None => None,
        }
    }

    /// A value that is there and is a NaN if the given one is: the last one of a chain of sums and products.
    fn witness(&self, value: Value) -> Option<Value> {
        let (func, mut last) = (self.func, value);
        loop {
            let there = |op: &&Op| {
                let is_there = |v: &Value| self.spots[v.index()].is_some() && self.uses.home(*v) == Some(self.region);
                keeps_nan(op) && op.results.first().is_some_and(is_there)
            };
            let next = self.uses.of_value(func, last).find(there).and_then(|op| op.results.first().copied());
            match next {
                Some(next) => last = next,
                None => return (last != value).then_some(last),
            }
        }
    }

    /// Makes registers, each of which one instruction defines, ones that are defined in several places.
    fn begin_earlier(&mut self, args: &[(Value, Part)]) -> Done {
        for (_, part) in args {
            let writes = |inst: &Inst| {
                let mut written = inst.accesses().filter(|(access, _)| *access != Access::Read);
                written.any(|(_, operand)| matches!(operand, Operand::Part(p) if p.reg == part.reg))
            };
            let found = self.code.order.iter().rev().find_map(|block| {
                let at = self.code.insts(*block).iter().rposition(writes)?;
                Some((*block, at))
            });
            let Some((block, at)) = found else {
                return Err(Fault::Defect("a register that nothing defines".to_owned()));
            };
            let start = Inst { kind: Kind::Start, operands: vec![(*part).into()], loc: self.loc, added: false };
            self.code.blocks[block.index()].insts.insert(at, start);
            self.code.registers[part.reg.index()].pieces = true;
        }
        Ok(())
    }

    /// Branches to a block that replaces NaNs if one of the witnesses is a NaN, and continues behind it.
    fn replace_nans(&mut self, args: &[(Value, Part)], witnesses: &[Value]) -> Done {
        let mut any: Option<Part> = None;
        for pair in witnesses.chunks(2) {
            let first = self.src(pair[0])?;
            let second = self.src(pair.get(1).copied().unwrap_or(pair[0]))?;
            let second = Src::V(self.in_vector(second, 1)?);
            let nan = self.compare_new("v_cmp_u_f32", [first, second])?;
            any = Some(match any {
                Some(any) => self.salu_new("s_or_b64", 2, &[Src::S(any), Src::S(nan)])?,
                None => nan,
            });
        }
        let Some(any) = any else { return Ok(()) };
        self.test(Src::S(any))?;
        let (cold, back) = (self.new_block(), self.new_block());
        self.row("s_cbranch_scc1", &[Operand::To(cold)])?;
        let hot: Block = std::mem::replace(&mut self.block, cold);
        let nan = Src::V(self.in_vector(Src::Bits(NAN), 1)?);
        for (_, part) in args {
            let own = Src::V(*part);
            let is_nan = self.compare_new("v_cmp_u_f32", [own, own])?;
            self.valu("v_cndmask_b32", &[(*part).into()], &[own, nan, Src::S(is_nan)], &[])?;
        }
        self.jump(back)?;
        self.outside.push(cold);
        self.block = hot;
        self.place(back);
        Ok(())
    }
}
