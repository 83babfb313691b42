//! Tensor memory: accesses that last as long as nothing waits for them, and begin as early as no fence keeps them.
//!
//! A load or store lasts until its thread has waited for it; for other threads, until the thread has executed the fence before a
//! synchronization. An access may begin as soon as its thread has executed the fence after a synchronization, so that it overlaps all
//! accesses of others since then.

use crate::run::{Access, By, Fault, Flight, Run};
use std::collections::BTreeSet;
use titan_core::ir::{BarrierTy, Class, Mma, Op, Tcgen05Op, Ty, Value};

/// What one thread starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Mma(Value, Mma),
    Copy,
    Shift,
}

impl Unit {
    /// Whether an operation of the same thread that is started later is executed later: the pairs of the PTX manual.
    pub(crate) fn comes_before(self, later: Unit) -> bool {
        match (self, later) {
            (Unit::Mma(d, a), Unit::Mma(e, b)) => {
                d == e && (a.shape, a.kind, a.stationary) == (b.shape, b.kind, b.stationary)
            }
            (Unit::Copy | Unit::Shift, Unit::Mma(..)) | (Unit::Mma(..), Unit::Shift) => true,
            (Unit::Mma(..) | Unit::Copy | Unit::Shift, Unit::Copy) | (Unit::Copy | Unit::Shift, Unit::Shift) => false,
        }
    }
}

impl Run<'_> {
    pub(crate) fn is_columns(&self, value: Value) -> bool {
        self.kernel.ty(value) == Ty::Barrier(BarrierTy::TensorMemory)
    }

    /// Whether an operation in flight comes before all others that its thread executes in order with it.
    pub(crate) fn is_first(&self, flight: usize, thread: usize, unit: Unit) -> bool {
        !self.flights[..flight].iter().any(
            |f| matches!(f, Flight::Tensor { thread: t, unit: earlier, .. } if *t == thread && earlier.comes_before(unit)),
        )
    }

    /// Accesses of others since the last fence of this thread.
    pub(crate) fn overlaps_others(&mut self, thread: usize, columns: Value, new: &Access) -> Result<(), Fault> {
        if self.freed.contains(&columns) {
            return Err("an access to columns that were freed".to_owned());
        }
        if self.threads[thread].around.iter().any(|a| a.lo == new.lo && (a.write || new.write)) {
            return Err("a race before a fence".to_owned());
        }
        for (i, other) in self.threads.iter_mut().enumerate() {
            if i != thread && !other.around.iter().any(|a| (a.lo, a.write) == (new.lo, new.write)) {
                other.around.push(new.clone());
            }
        }
        Ok(())
    }

    pub(crate) fn tensor(&mut self, thread: usize, op: &Op, tensor: Tcgen05Op) -> Result<(), Fault> {
        match tensor {
            Tcgen05Op::Mma(mma) => self.fly(thread, op, Unit::Mma(op.args[0], mma)),
            Tcgen05Op::Copy { .. } => self.fly(thread, op, Unit::Copy),
            Tcgen05Op::Shift { .. } => self.fly(thread, op, Unit::Shift),
            Tcgen05Op::Load { .. } | Tcgen05Op::Store { .. } => {
                let write = matches!(tensor, Tcgen05Op::Store { .. });
                self.begin_by(thread, op.args[0], write, &By { moves: true, ..By::default() })?;
                Ok(())
            }
            Tcgen05Op::WaitLoad | Tcgen05Op::WaitStore => {
                let write = tensor == Tcgen05Op::WaitStore;
                let mine = |a: &&mut Access| a.thread == thread && a.moves && a.write == write;
                self.accesses.values_mut().filter(mine).for_each(|a| a.lingers = true);
                Ok(())
            }
            Tcgen05Op::FenceBefore => {
                self.accesses.retain(|_, a| a.thread != thread || !a.lingers);
                Ok(())
            }
            Tcgen05Op::FenceAfter => {
                let others = self.accesses.values().filter(|a| a.thread != thread && a.lo >= 1 << 40);
                self.threads[thread].around = others.cloned().collect();
                Ok(())
            }
            Tcgen05Op::Commit { .. } => {
                let barrier = self.barrier(thread, op.args[0])?;
                let mine =
                    |(id, a): (&usize, &Access)| (a.thread == thread && a.class == Some(Class::Tcgen05)).then_some(*id);
                let of: BTreeSet<usize> = self.accesses.iter().filter_map(mine).collect();
                self.accesses.iter_mut().filter(|(id, _)| of.contains(id)).for_each(|(_, a)| a.told = true);
                self.flights.push(Flight::Arrivals { of, barrier, n: 1 });
                Ok(())
            }
            Tcgen05Op::Dealloc { .. } => {
                let access = self.begin(thread, op.args[0], true, None)?;
                self.threads[thread].during.push(access);
                self.freed.insert(op.args[0]);
                Ok(())
            }
            Tcgen05Op::Alloc { .. } | Tcgen05Op::Relinquish { .. } => Ok(()),
        }
    }

    /// Starts an operation whose completion a commit tells.
    fn fly(&mut self, thread: usize, op: &Op, unit: Unit) -> Result<(), Fault> {
        let mut by = By { class: Some(Class::Tcgen05), ..By::default() };
        let mut chain = vec![unit];
        for flight in self.flights.iter().rev() {
            if let Flight::Tensor { of, thread: t, unit } = flight
                && *t == thread
                && chain.iter().any(|later| unit.comes_before(*later))
            {
                by.earlier.extend(of);
                chain.push(*unit);
            }
        }
        let mut of = BTreeSet::new();
        // An MMA may read what it writes.
        for (i, operand) in op.args.iter().enumerate() {
            let access = self.begin_by(thread, *operand, i == 0, &by)?;
            by.earlier.insert(access);
            of.insert(access);
        }
        self.flights.push(Flight::Tensor { of, thread, unit });
        Ok(())
    }
}
