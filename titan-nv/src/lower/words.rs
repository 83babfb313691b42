//! A thread's own indices, selection, and packing and unpacking of words.

use super::error::{Fault, first, three};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::isa::control::{MOVE_SHARED, MOVE_SPECIAL, PACK, PERMUTE, UNPACK};
use crate::ptx::isa::memory::LOAD_PARAM;
use crate::ptx::{Address, Base, Guard, Reg, Special};
use titan_core::lane::op::OpKind;
use titan_core::lane::{IntBin, Op, Ty, Value};

impl Lower<'_> {
    /// A thread's own indices.
    #[expect(clippy::wildcard_enum_match_arm, reason = "`op` names every operation")]
    pub(super) fn source(&mut self, op: &Op) -> Done {
        let result = first(&op.results)?;
        if let (OpKind::WarpId, Some(warp)) = (&op.kind, self.warp_id) {
            self.values[result.index()] = Some(warp);
            return Ok(());
        }
        let out = self.out(result);
        match op.kind {
            OpKind::Slot(n) => {
                let bytes = self.func.slots.get(n as usize).map_or(0, |slot| slot.bytes());
                let address = Address { base: Base::Param(n), offset: 0 };
                self.inst(form_of(LOAD_PARAM, &bytes)?, &[Arg::Reg(out), Arg::Address(address)])
            }
            OpKind::LaneId => {
                let thread = self.fresh(Ty::B32);
                self.inst(&MOVE_SPECIAL, &[Arg::Reg(thread), Arg::Special(Special::ThreadId)])?;
                self.int(IntBin::And, out, &[Arg::Reg(thread), Arg::Bits(31)])
            }
            OpKind::ThreadId => self.inst(&MOVE_SPECIAL, &[Arg::Reg(out), Arg::Special(Special::ThreadId)]),
            OpKind::ProgramId(axis @ 0..3) => {
                self.inst(&MOVE_SPECIAL, &[Arg::Reg(out), Arg::Special(Special::ProgramId(axis))])
            }
            OpKind::NumPrograms(axis @ 0..3) => {
                self.inst(&MOVE_SPECIAL, &[Arg::Reg(out), Arg::Special(Special::NumPrograms(axis))])
            }
            OpKind::SharedBase => {
                self.shared = true;
                self.inst(&MOVE_SHARED, &[Arg::Reg(out), Arg::SharedBase])
            }
            _ => Err(Fault::Refused("grids have three axes, 0 to 2".to_owned())),
        }
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

    pub(super) fn repack(&mut self, op: &Op) -> Done {
        let outs = self.outs(op);
        let source = first(&op.args)?;
        match (&op.kind, op.args.as_slice()) {
            (OpKind::Pack, [_, _]) => {
                let form = form_of(PACK, &self.func.ty(source))?;
                self.inst(form, &[Arg::Reg(first(&outs)?), Arg::Values(op.args.clone())])
            }
            (OpKind::Pack, [a, b, c, d]) => {
                if let (Some(low), Some(high)) = (self.pair([*a, *b]), self.pair([*c, *d])) {
                    let pairs = Arg::Regs(vec![low, high]);
                    return self.inst(form_of(PACK, &Ty::B16)?, &[Arg::Reg(first(&outs)?), pairs]);
                }
                let (low, high) = (self.fresh(Ty::B32), self.fresh(Ty::B32));
                self.low_bytes(low, Arg::Value(*a), Arg::Value(*b))?;
                self.low_bytes(high, Arg::Value(*c), Arg::Value(*d))?;
                self.permute(first(&outs)?, Arg::Reg(low), Arg::Reg(high), 0x5410)
            }
            (OpKind::Unpack, _) => {
                let form = form_of(UNPACK, &self.func.ty(source))?;
                self.inst(form, &[Arg::Regs(outs), Arg::Value(source)])
            }
            (OpKind::UnpackBytes { signed }, _) => {
                let source = self.reg(source)?;
                for (byte, out) in (0u64..).zip(outs) {
                    // The byte, then three times its sign (bit 3 of the selector) or a byte of the zero operand.
                    let fill = if *signed { 8 + byte } else { 4 };
                    self.permute(out, Arg::Reg(source), Arg::Bits(0), fill * 0x1110 + byte)?;
                }
                Ok(())
            }
            _ => Err(Fault::Refused("no such number of operands".to_owned())),
        }
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
