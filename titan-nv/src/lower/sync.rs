//! Synchronization: barriers, mbarriers, sequence counters. Polling is a loop of one instruction that tests, and a branch.
//!
//! Each lane of a warp polls for itself, so the branch is not `.uni`; behind it, ptxas makes the lanes reconverge.

use super::error::{first, two};
use super::{Arg, Done, Lower};
use crate::ptx::isa::sync::{ARRIVE, ARRIVE_MANY, INIT, LOAD_ACQUIRE, MAP, STORE_RELEASE, TEST_WAIT, TRY_WAIT};
use crate::ptx::{Form, Guard, Label, Reg};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::{IntBin, Op, Ty};

impl Lower<'_> {
    /// An operation on the mbarrier at its first operand that has no other operands.
    pub(super) fn at_barrier(&mut self, form: &'static Form, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let at = self.address(first(args)?, 0)?;
        self.guarded(guard, form, &[Arg::Address(at)])
    }

    pub(super) fn init(&mut self, count: u32, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let at = self.address(first(args)?, 0)?;
        self.guarded(guard, &INIT, &[Arg::Address(at), Arg::Bits(u64::from(count))])
    }

    pub(super) fn arrive(&mut self, count: u32, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let at = Arg::Address(self.address(first(args)?, 0)?);
        // The returned state identifies the phase by more than its parity; it is not used.
        let state = Arg::Reg(self.fresh(Ty::B64));
        match count {
            1 => self.guarded(guard, &ARRIVE, &[state, at]),
            count => self.guarded(guard, &ARRIVE_MANY, &[state, at, Arg::Bits(u64::from(count))]),
        }
    }

    pub(super) fn map_cluster(&mut self, op: &Op) -> Done {
        let out = self.out(first(&op.results)?);
        let [at, rank] = two(&op.args)?;
        self.inst(&MAP, &[Arg::Reg(out), Arg::Value(at), Arg::Value(rank)])
    }

    pub(super) fn store_release(&mut self, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let [at, value] = two(args)?;
        let at = self.address(at, 0)?;
        self.guarded(guard, &STORE_RELEASE, &[Arg::Address(at), Arg::Value(value)])
    }

    pub(super) fn load_acquire(&mut self, op: &Op) -> Done {
        let (out, at) = (self.out(first(&op.results)?), self.address(first(&op.args)?, 0)?);
        self.inst(&LOAD_ACQUIRE, &[Arg::Reg(out), Arg::Address(at)])
    }

    /// `test_wait` tests once; `try_wait`, where the machine has it, lets the thread sleep for a while before it returns false.
    pub(super) fn mbarrier_wait(&mut self, op: &Op) -> Done {
        let [at, parity] = two(&op.args)?;
        let (at, done) = (self.address(at, 0)?, self.fresh(Ty::Pred));
        let form = if self.has(&TRY_WAIT) { &TRY_WAIT } else { &TEST_WAIT };
        let again = self.poll();
        self.inst(form, &[Arg::Reg(done), Arg::Address(at), Arg::Value(parity)])?;
        self.unless(done, again)
    }

    /// The numbers wrap around, and so does their difference.
    pub(super) fn sequence_wait(&mut self, op: &Op) -> Done {
        let [at, target] = two(&op.args)?;
        let (at, word, ahead) = (self.address(at, 0)?, self.fresh(Ty::B32), self.fresh(Ty::B32));
        let target = Arg::Reg(self.reg(target)?);
        let again = self.poll();
        self.inst(&LOAD_ACQUIRE, &[Arg::Reg(word), Arg::Address(at)])?;
        self.int(IntBin::Sub, ahead, &[Arg::Reg(word), target])?;
        let done = self.compare((Cmp::Ge, true, Ty::B32), Arg::Reg(ahead), Arg::Bits(0))?;
        self.unless(done, again)
    }

    fn poll(&mut self) -> Label {
        let again = self.label();
        self.place(again, true);
        again
    }

    fn unless(&mut self, done: Reg, again: Label) -> Done {
        self.branch_to(Some(Guard { reg: done, negated: true }), false, again)
    }
}
