//! Bulk copies, and MMAs of warpgroups.
//!
//! The accumulator registers of an MMA in flight stay the same, from the MMA that starts from other values to the wait that defines its
//! results: operations that pass an accumulator on reuse its registers. So no instruction copies them while they are in flight, for which
//! ptxas would insert a wait.

use super::error::{Fault, first};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::Reg;
use crate::ptx::isa::group::{
    BULK_LOAD, BULK_LOAD_MULTICAST, BULK_STORE, ELECT, EXPECT, GROUP_FENCE, GROUP_WAIT, PARAM_ADDRESS,
    PARAM_TO_GENERIC, mma,
};
use titan_core::lane::{GroupMma, GroupOperand, Op, Ty};

impl Lower<'_> {
    /// The address of a tensor map, which is a parameter.
    pub(super) fn tensor_map(&mut self, map: u32, op: &Op) -> Done {
        let (out, own) = (self.out(first(&op.results)?), self.fresh(Ty::B64));
        let number = u32::try_from(self.func.slots.len()).unwrap_or(u32::MAX).saturating_add(map);
        self.inst(&PARAM_ADDRESS, &[Arg::Reg(own), Arg::Param(number)])?;
        self.inst(&PARAM_TO_GENERIC, &[Arg::Reg(out), Arg::Reg(own)])
    }

    pub(super) fn expect(&mut self, bytes: u32, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let at = self.address(first(args)?, 0)?;
        let state = Arg::Reg(self.fresh(Ty::B64));
        self.guarded(guard, &EXPECT, &[state, Arg::Address(at), Arg::Bits(u64::from(bytes))])
    }

    pub(super) fn bulk_load(&mut self, (rank, multicast): (u8, u16), masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let [map, to, barrier, coords @ ..] = args else {
            return Err(Fault::Defect("a bulk copy without operands".to_owned()));
        };
        let map = self.reg(*map)?;
        let (to, barrier) = (self.address(*to, 0)?, self.address(*barrier, 0)?);
        let mut args = vec![Arg::Address(to), Arg::Box(map, coords.to_vec()), Arg::Address(barrier)];
        if multicast == 0 {
            return self.guarded(guard, form_of(BULK_LOAD, &rank)?, &args);
        }
        args.push(Arg::Bits(u64::from(multicast)));
        self.guarded(guard, form_of(BULK_LOAD_MULTICAST, &rank)?, &args)
    }

    pub(super) fn bulk_store(&mut self, rank: u8, op: &Op) -> Done {
        let [map, from, coords @ ..] = &op.args[..] else {
            return Err(Fault::Defect("a bulk copy without operands".to_owned()));
        };
        let (map, from) = (self.reg(*map)?, self.address(*from, 0)?);
        self.inst(form_of(BULK_STORE, &rank)?, &[Arg::Box(map, coords.to_vec()), Arg::Address(from)])
    }

    pub(super) fn elect(&mut self, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        self.inst(&ELECT, &[Arg::Reg(out), Arg::Bits(super::warp::MEMBERS)])
    }

    /// The results of a wait are the registers of its operands.
    pub(super) fn group_wait(&mut self, n: u32, op: &Op) -> Done {
        for (result, arg) in op.results.iter().zip(&op.args) {
            self.values[result.index()] = Some(self.reg(*arg)?);
        }
        self.inst(&GROUP_WAIT, &[Arg::Bits(u64::from(n))])
    }

    pub(super) fn group_mma(&mut self, group: &GroupMma, op: &Op) -> Done {
        let in_registers = group.a == GroupOperand::Registers;
        let key = (group.atom.n, group.atom.a, group.atom.b, in_registers);
        let Some(form) = mma(key) else {
            return Err(Fault::Refused(format!("PTX has no `wgmma` for {key:?}")));
        };
        let (a, rest) = op.args.split_at(if in_registers { 4 } else { 1 });
        let [b, c @ ..] = rest else { return Err(Fault::Defect("an MMA without operand B".to_owned())) };
        let d = self.accumulators(op, c)?;
        let mut args = vec![Arg::Regs(d)];
        args.push(if in_registers { Arg::Values(a.to_vec()) } else { Arg::Value(first(a)?) });
        args.extend([Arg::Value(*b), Arg::Bits(u64::from(!group.fresh))]);
        // The signs of A and B, then the memory order of the operands in shared memory.
        let turned = |operand: bool| Arg::Bits(u64::from(operand));
        args.extend(match (form.slots.len() - 4, group.a) {
            (0, _) => vec![],
            (2, _) => vec![Arg::Bits(1), Arg::Bits(1)],
            (_, GroupOperand::Registers) => vec![Arg::Bits(1), Arg::Bits(1), turned(group.b_transposed)],
            (_, GroupOperand::Shared { transposed }) => {
                vec![Arg::Bits(1), Arg::Bits(1), turned(transposed), turned(group.b_transposed)]
            }
        });
        self.inst(form, &args)
    }

    /// The registers of D: those of C if it is in flight, otherwise new ones, initialized with C if it is given.
    fn accumulators(&mut self, op: &Op, c: &[titan_core::lane::Value]) -> Result<Vec<Reg>, Fault> {
        let mut copied = false;
        for (i, result) in op.results.iter().enumerate() {
            match c.get(i) {
                Some(value) if self.in_flight.contains(value) => {
                    self.values[result.index()] = Some(self.reg(*value)?);
                }
                Some(value) => {
                    let out = self.out(*result);
                    self.copy(out, &Arg::Value(*value))?;
                    copied = true;
                }
                None => drop(self.out(*result)),
            }
        }
        if copied {
            // Registers that were written since the last fence must be fenced before the MMA reads them.
            self.inst(&GROUP_FENCE, &[])?;
        }
        Ok(self.outs(op))
    }
}
