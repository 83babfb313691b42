//! Bulk copies, and MMAs of warpgroups.
//!
//! The accumulator registers of an MMA in flight stay the same, from the MMA that starts from other values to the wait that defines its
//! results: operations that pass an accumulator on reuse its registers. So no instruction copies them while they are in flight, for which
//! ptxas would insert a wait.

use super::error::{Fault, first};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::isa::group::{
    BULK_LOAD, BULK_LOAD_MULTICAST, BULK_STORE, ELECT, EXPECT, GROUP_FENCE, GROUP_WAIT, MAP_ACQUIRE, MAP_RELEASE,
    PARAM_ADDRESS, PARAM_TO_GENERIC, REPLACE_EXTENT, mma,
};
use crate::ptx::isa::int::MUL_WIDE;
use crate::ptx::isa::memory::{LOAD_PARAM, STORE};
use crate::ptx::{Address, Base, Reg};
use titan_core::lane::{GroupMma, GroupOperand, IntBin, Op, Space, Ty, Value};
use titan_core::launch::abi::{MapParam, PartMap};

impl Lower<'_> {
    /// The address of a tensor map, which is a parameter.
    pub(super) fn tensor_map(&mut self, map: u32, op: &Op) -> Done {
        let (out, own) = (self.out(first(&op.results)?), self.fresh(Ty::B64));
        self.inst(&PARAM_ADDRESS, &[Arg::Reg(own), Arg::Param(self.map_param(map))])?;
        self.inst(&PARAM_TO_GENERIC, &[Arg::Reg(out), Arg::Reg(own)])
    }

    /// The parameter that is a tensor map.
    fn map_param(&self, map: u32) -> u32 {
        u32::try_from(self.func.slots.len()).unwrap_or(u32::MAX).saturating_add(map)
    }

    /// The parameter with the address of the table of a tensor map. The addresses of tables follow the maps.
    fn table_param(&self, map: u32) -> u32 {
        let has_table = |map: &&MapParam| matches!(map.part, PartMap::Ending { .. });
        let before = self.func.maps.iter().take(map as usize).filter(has_table).count();
        self.map_param(u32::try_from(self.func.maps.len() + before).unwrap_or(u32::MAX))
    }

    /// The address of an entry of the table of a tensor map.
    fn entry_address(&mut self, map: u32, entry: Value, out: Reg) -> Done {
        let (table, offset) = (self.fresh(Ty::B64), self.fresh(Ty::B64));
        let address = Address { base: Base::Param(self.table_param(map)), offset: 0 };
        self.inst(form_of(LOAD_PARAM, &8)?, &[Arg::Reg(table), Arg::Address(address)])?;
        let bytes = Arg::Bits(u64::from(MapParam::BYTES));
        self.inst(form_of(MUL_WIDE, &false)?, &[Arg::Reg(offset), Arg::Value(entry), bytes])?;
        self.int(IntBin::Add, out, &[Arg::Reg(table), Arg::Reg(offset)])
    }

    /// The address of an entry, which this thread acquires, because a kernel that ran before wrote it.
    pub(super) fn map_entry(&mut self, map: u32, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        self.entry_address(map, first(&op.args)?, out)?;
        let address = Address { base: Base::Reg(out), offset: 0 };
        self.inst(&MAP_ACQUIRE, &[Arg::Address(address), Arg::Bits(u64::from(MapParam::BYTES))])
    }

    /// Copies a tensor map to an entry of its table, and replaces extents there.
    pub(super) fn make_map(&mut self, map: u32, axes: &[u8], op: &Op) -> Done {
        let (entry, ends) =
            op.args.split_first().ok_or_else(|| Fault::Defect("an entry without a number".to_owned()))?;
        let to = self.fresh(Ty::B64);
        self.entry_address(map, *entry, to)?;
        let rank = self.func.maps.get(map as usize).map_or(0, |map| map.extents.len());
        for offset in (0..MapParam::BYTES.cast_signed()).step_by(8) {
            let word = self.fresh(Ty::B64);
            let from = Address { base: Base::Param(self.map_param(map)), offset };
            self.inst(form_of(LOAD_PARAM, &8)?, &[Arg::Reg(word), Arg::Address(from)])?;
            let to = Address { base: Base::Reg(to), offset };
            self.inst(form_of(STORE, &(Space::Global, 8, 1))?, &[Arg::Address(to), Arg::Reg(word)])?;
        }
        for (axis, end) in axes.iter().zip(ends) {
            // Dimensions are counted from the innermost.
            let dim = rank.saturating_sub(usize::from(*axis) + 1);
            let to = Address { base: Base::Reg(to), offset: 0 };
            self.inst(&REPLACE_EXTENT, &[Arg::Address(to), Arg::Bits(dim as u64), Arg::Value(*end)])?;
        }
        self.inst(&MAP_RELEASE, &[])
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
    fn accumulators(&mut self, op: &Op, c: &[Value]) -> Result<Vec<Reg>, Fault> {
        let mut copied = false;
        for (i, result) in op.results.iter().enumerate() {
            match c.get(i) {
                // It is in the register of the result already.
                Some(value) if self.homes.contains_key(value) => drop(self.out(*result)),
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
