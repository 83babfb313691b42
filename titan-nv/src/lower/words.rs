//! A thread's own indices, selection, and packing and unpacking of words.

use super::error::{Fault, first, three};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::isa::control::{MOVE_SHARED, MOVE_SPECIAL, PACK, PERMUTE, UNPACK};
use crate::ptx::isa::memory::LOAD_PARAM;
use crate::ptx::{Address, Base, Guard, Reg, Special};
use titan_core::lane::op::OpKind;
use titan_core::lane::{IntBin, Op, Ty, Value};

impl Lower<'_> {
    /// A word of the parameter block.
    pub(super) fn slot(&mut self, slot: u32, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let bytes = self.func.slots.get(slot as usize).map_or(0, |slot| slot.bytes());
        let address = Address { base: Base::Param(slot), offset: 0 };
        self.inst(form_of(LOAD_PARAM, &bytes)?, &[Arg::Reg(out), Arg::Address(address)])
    }

    pub(super) fn thread_id(&mut self, op: &Op) -> Done {
        self.special(Special::ThreadId, op)
    }

    pub(super) fn lane_id(&mut self, op: &Op) -> Done {
        let (out, thread) = (self.out(first(&op.results)?), self.fresh(Ty::B32));
        self.inst(&MOVE_SPECIAL, &[Arg::Reg(thread), Arg::Special(Special::ThreadId)])?;
        self.int(IntBin::And, out, &[Arg::Reg(thread), Arg::Bits(31)])
    }

    /// The number of the warp, which the prologue has computed.
    pub(super) fn warp_number(&mut self, op: &Op) -> Done {
        let Some(warp) = self.warp_id else { return Err(Fault::Defect("the warp's number is not there".to_owned())) };
        self.values[first(&op.results)?.index()] = Some(warp);
        Ok(())
    }

    pub(super) fn program_id(&mut self, axis: u8, op: &Op) -> Done {
        self.special(Special::ProgramId(grid_axis(axis)?), op)
    }

    pub(super) fn num_programs(&mut self, axis: u8, op: &Op) -> Done {
        self.special(Special::NumPrograms(grid_axis(axis)?), op)
    }

    fn special(&mut self, special: Special, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        self.inst(&MOVE_SPECIAL, &[Arg::Reg(out), Arg::Special(special)])
    }

    pub(super) fn shared_base(&mut self, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        self.shared = true;
        self.inst(&MOVE_SHARED, &[Arg::Reg(out), Arg::SharedBase])
    }

    pub(super) fn select(&mut self, op: &Op) -> Done {
        let [cond, yes, no] = three(&op.args)?;
        let out = self.out(first(&op.results)?);
        let Guard { reg, negated } = self.guard(cond)?;
        let [yes, no] = if negated { [no, yes] } else { [yes, no] }.map(Arg::Value);
        if out.class != Ty::Pred {
            return self.choose(out, reg, yes, no);
        }
        // A selection between predicates: `(c ∧ a) ∨ (¬c ∧ b)`.
        let [first, not, second] = [(); 3].map(|()| self.fresh(Ty::Pred));
        self.int(IntBin::And, first, &[Arg::Reg(reg), yes])?;
        self.not(not, Arg::Reg(reg))?;
        self.int(IntBin::And, second, &[Arg::Reg(not), no])?;
        self.int(IntBin::Or, out, &[Arg::Reg(first), Arg::Reg(second)])
    }

    pub(super) fn pack(&mut self, op: &Op) -> Done {
        let outs = self.outs(op);
        let out = first(&outs)?;
        if let [a, _] = op.args[..] {
            let form = form_of(PACK, &self.func.ty(a))?;
            return self.inst(form, &[Arg::Reg(out), Arg::Values(op.args.clone())]);
        }
        let [a, b, c, d] = op.args[..] else {
            return Err(Fault::Refused("no such number of operands".to_owned()));
        };
        if let (Some(low), Some(high)) = (self.pair([a, b]), self.pair([c, d])) {
            let pairs = Arg::Regs(vec![low, high]);
            return self.inst(form_of(PACK, &Ty::B16)?, &[Arg::Reg(out), pairs]);
        }
        let (low, high) = (self.fresh(Ty::B32), self.fresh(Ty::B32));
        self.low_bytes(low, Arg::Value(a), Arg::Value(b))?;
        self.low_bytes(high, Arg::Value(c), Arg::Value(d))?;
        self.permute(out, Arg::Reg(low), Arg::Reg(high), 0x5410)
    }

    pub(super) fn unpack(&mut self, op: &Op) -> Done {
        let outs = self.outs(op);
        let source = first(&op.args)?;
        let form = form_of(UNPACK, &self.func.ty(source))?;
        self.inst(form, &[Arg::Regs(outs), Arg::Value(source)])
    }

    pub(super) fn unpack_bytes(&mut self, signed: bool, op: &Op) -> Done {
        let outs = self.outs(op);
        let source = self.reg(first(&op.args)?)?;
        for (byte, out) in (0u64..).zip(outs) {
            // The byte, then three times its sign (bit 3 of the selector) or a byte of the zero operand.
            let fill = if signed { 8 + byte } else { 4 };
            self.permute(out, Arg::Reg(source), Arg::Bits(0), fill * 0x1110 + byte)?;
        }
        Ok(())
    }

    /// The 16-bit register in which one instruction produced both bytes, before they were unpacked.
    fn pair(&self, bytes: [Value; 2]) -> Option<Reg> {
        let op = self.func.def_op(bytes[0])?;
        let made = op.results == bytes && matches!(op.kind, OpKind::Convert { .. });
        self.pairs.get(&self.values[bytes[0].index()]?).filter(|_| made).copied()
    }

    /// Packs the low bytes of two words, the first one lowest; the upper half is arbitrary.
    pub(super) fn low_bytes(&mut self, out: Reg, a: Arg, b: Arg) -> Done {
        self.permute(out, a, b, 0x0040)
    }

    pub(super) fn permute(&mut self, out: Reg, a: Arg, b: Arg, selectors: u64) -> Done {
        self.inst(&PERMUTE, &[Arg::Reg(out), a, b, Arg::Bits(selectors)])
    }
}

/// The axis of the grid, if it has that axis.
fn grid_axis(axis: u8) -> Result<u8, Fault> {
    if axis < 3 { Ok(axis) } else { Err(Fault::Refused("grids have three axes, 0 to 2".to_owned())) }
}
