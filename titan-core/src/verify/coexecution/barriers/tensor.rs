//! Accesses to tensor memory (rules 54, 75 and 80): which of them execute in order, what waits and fences they need, and their errors.
//!
//! All operations that access tensor memory are asynchronous, and only these pairs of one thread execute in the order in which they were
//! started: MMAs with the same accumulator, kind and shape; a copy or a shift, and an MMA after it; an MMA, and a shift after it. All
//! others must be waited for, loads and stores by `wait_ld` and `wait_st`, the rest by the barrier of a commit.
//!
//! Barriers order accesses of other threads only with *fences*: after a thread has waited for its loads and stores, `fence_before` in the
//! thread itself, before it arrives; and `fence_after` in the thread that has waited for the barrier, before its own accesses. A commit
//! needs no `fence_before`. So a record ([`super::machine::Record`]) of a load or store is *held* until the role has executed
//! `fence_before`: arrivals do not carry it. A role that observes a record by a wait still misses `fence_after`. Source: PTX ISA, "Memory
//! Consistency Model for 5th generation of TensorCore operations".
//!
//! # An example
//!
//! Role `e` reads the result `d` of an MMA of role `m`, which then starts the next one.
//!
//! | step | the record of the step's access |
//! |---|---|
//! | `m` starts the MMA | write {}, in flight |
//! | `m` commits to `done` | write {}, in flight, complete with `done` 0 |
//! | `e` waits for `done` 0 | write {e}, `e` misses `fence_after` |
//! | `e` executes `fence_after`, and loads | read {}, in flight |
//! | `e` waits for its loads | read {e}, held |
//! | `e` executes `fence_before`, and arrives at `free` | read {e} → free 0 |
//! | `m` waits for `free` 0, and executes `fence_after` | read {e, m}: dropped; the next MMA is right |
//!
//! Deliberately absent: parts of allocations, because operations do not state the columns that they access; operations of two blocks, which
//! also access the memory of the other one, and are refused; pairs that different threads start in order (`cp`, and after a fence and a
//! barrier an MMA), which need a commit here; `cp` of the shape `4x256b`, which alone is executed after an earlier shift. A copy after an MMA
//! that reads the same columns is not among the pairs of the manual, although some compilers rely on its order.

use super::super::run::{Fault, Run};
use super::super::state::State;
use super::event::{At, refuse};
use super::machine::{By, Machine, Pending, Record, Roles, What, bit};
use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::{BarrierTy, Class, Kernel, MmaKind, NvOp, OpId, OpKind, Tcgen05Op, Ty, Value};
use crate::verify::Error;

/// What determines the order of an operation among those of the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Mma {
        accumulator: Value,
        kind: MmaKind,
        shape: [u32; 3],
        stationary: bool,
    },
    Copy,
    Shift,
    /// Loads, stores and the release of columns, which are executed by warps.
    Warps,
}

/// The operations of a kernel on tensor memory.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Units {
    all: Vec<Unit>,
    of: SortedMap<OpId, usize>,
}

impl Units {
    pub(super) fn new(kernel: &Kernel) -> Units {
        let mut units = Units::default();
        kernel.walk(&mut |id, op| {
            let OpKind::Nv(NvOp::Tcgen05(tensor)) = &op.kind else { return };
            let unit = match tensor {
                Tcgen05Op::Mma(mma) => op.args.first().map(|accumulator| Unit::Mma {
                    accumulator: *accumulator,
                    kind: mma.kind,
                    shape: mma.shape,
                    stationary: mma.stationary,
                }),
                Tcgen05Op::Copy { .. } => Some(Unit::Copy),
                Tcgen05Op::Shift { .. } => Some(Unit::Shift),
                Tcgen05Op::Load { .. } | Tcgen05Op::Store { .. } | Tcgen05Op::Dealloc { .. } => Some(Unit::Warps),
                Tcgen05Op::Alloc { .. }
                | Tcgen05Op::Relinquish { .. }
                | Tcgen05Op::Commit { .. }
                | Tcgen05Op::WaitLoad
                | Tcgen05Op::WaitStore
                | Tcgen05Op::FenceBefore
                | Tcgen05Op::FenceAfter => None,
            };
            let Some(unit) = unit else { return };
            let index = units.all.iter().position(|u| *u == unit).unwrap_or(units.all.len());
            if index == units.all.len() {
                units.all.push(unit);
            }
            units.of.insert(id, index);
        });
        units
    }

    /// The index of an operation's unit, if it accesses tensor memory.
    pub(super) fn of(&self, op: OpId) -> Option<usize> {
        self.of.get(&op).copied()
    }

    /// Whether an access is by an operation whose completion a commit signals.
    pub(super) fn is_tracked(&self, what: &What) -> bool {
        let What::Access { by: By::Tensor(unit), .. } = what else { return false };
        match self.all.get(*unit) {
            Some(Unit::Mma { .. } | Unit::Copy | Unit::Shift) => true,
            Some(Unit::Warps) | None => false,
        }
    }

    /// Whether two operations that one thread starts in this order are executed in this order.
    pub(super) fn in_order(&self, before: By, after: By) -> bool {
        let unit = |by: By| if let By::Tensor(unit) = by { self.all.get(unit) } else { None };
        match (unit(before), unit(after)) {
            // Same accumulator, kind and shape, as the unit has all three.
            (Some(before @ Unit::Mma { .. }), Some(after @ Unit::Mma { .. })) => before == after,
            (Some(Unit::Copy | Unit::Shift), Some(Unit::Mma { .. })) | (Some(Unit::Mma { .. }), Some(Unit::Shift)) => {
                true
            }
            (Some(Unit::Mma { .. } | Unit::Copy | Unit::Shift), Some(Unit::Copy | Unit::Warps))
            | (Some(Unit::Copy | Unit::Shift), Some(Unit::Shift))
            | (Some(Unit::Warps), Some(Unit::Mma { .. } | Unit::Copy | Unit::Shift | Unit::Warps))
            | (None, _)
            | (_, None) => false,
        }
    }
}

/// The fences of tensor memory that are missing for an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) struct Fences {
    /// The role has waited for it, but not executed `fence_before` since.
    pub(in crate::verify) held: bool,
    /// The role has arrived at a barrier meanwhile. Only messages depend on this.
    pub(in crate::verify) skipped: bool,
    /// The roles that have observed it by a wait, and not executed `fence_after` since.
    pub(in crate::verify) missing: Roles,
}

impl Fences {
    /// Whether whatever misses no fence of these misses none of the others.
    pub(super) const fn stricter_than(self, other: Fences) -> bool {
        (self.held || !other.held) && other.missing & !self.missing == 0
    }
}

impl Machine {
    /// Records that a role has waited for its loads or stores of tensor memory.
    fn moved(&mut self, role: usize, which: Pending) {
        for record in self.records.iter_mut().filter(|r| r.role == role) {
            if let What::Access { pending, .. } = &mut record.what
                // All loads, or all stores, of the role at once: the wait has no number.
                && *pending == which
            {
                *pending = Pending::Done;
                record.known |= bit(role);
                record.fences.held = true;
            }
        }
    }

    /// `fence_before` of a role: its arrivals from now on carry its complete loads and stores.
    fn fence_before(&mut self, role: usize) {
        self.records.iter_mut().filter(|r| r.role == role).for_each(|r| r.fences.held = false);
        self.forget();
    }

    /// `fence_after` of a role: its accesses from now on are ordered after those that it has observed.
    fn fence_after(&mut self, role: usize) {
        self.records.iter_mut().for_each(|r| r.fences.missing &= !bit(role));
        self.forget();
    }
}

impl<'k> Run<'k> {
    /// The effect of an operation on tensor memory, except commits.
    pub(super) fn tensor(&mut self, state: &mut State, at: At<'k>, op: Tcgen05Op) -> Result<(), Fault> {
        let tracked = Pending::Group(Class::Tcgen05, None);
        if op.cta_group() == Some(2) {
            let title = "operations of two blocks (`cta_group = 2`) could not be verified";
            return refuse(Error::new(Code::NotShown, at.op.loc, title).help("`cta_group = 1` in all operations"));
        }
        match op {
            Tcgen05Op::Mma(_) | Tcgen05Op::Copy { .. } => {
                // The operands are read, and then the first one is written.
                let is_memory = |v: &&Value| {
                    matches!(self.kernel.ty(**v), Ty::Barrier(BarrierTy::Region | BarrierTy::TensorMemory))
                };
                let read: Vec<Value> = at.op.args.iter().skip(1).filter(is_memory).copied().collect();
                // Reads first: the MMA reads its operands, and then updates the accumulator.
                for operand in read {
                    self.access(state, at, operand, false, tracked)?;
                }
                self.columns(state, at, true, tracked)
            }
            Tcgen05Op::Shift { .. } => self.columns(state, at, true, tracked),
            Tcgen05Op::Load { .. } => self.columns(state, at, false, Pending::Loads),
            Tcgen05Op::Store { .. } => self.columns(state, at, true, Pending::Stores),
            Tcgen05Op::Dealloc { .. } => {
                self.columns(state, at, true, Pending::Done)?;
                let freed = at.op.args.first().and_then(|v| self.objects.memory(*v));
                // An access that comes later in this order of steps is refused, and one that may come later in another
                // is a conflict with this write.
                state.machine.gone.extend(freed.map(|m| (state.machine.memory_object(m.object), at.id)));
                Ok(())
            }
            Tcgen05Op::WaitLoad => {
                state.machine.moved(at.role, Pending::Loads);
                Ok(())
            }
            Tcgen05Op::WaitStore => {
                state.machine.moved(at.role, Pending::Stores);
                Ok(())
            }
            Tcgen05Op::FenceBefore => {
                state.machine.fence_before(at.role);
                Ok(())
            }
            Tcgen05Op::FenceAfter => {
                state.machine.fence_after(at.role);
                Ok(())
            }
            Tcgen05Op::Commit { .. } => self.arrive_after(state, at, Class::Tcgen05, (true, 1)),
            // They access nothing.
            Tcgen05Op::Alloc { .. } | Tcgen05Op::Relinquish { .. } => Ok(()),
        }
    }

    /// An access to the columns that are the first operand.
    fn columns(&mut self, state: &mut State, at: At<'k>, write: bool, pending: Pending) -> Result<(), Fault> {
        let Some(columns) = at.op.args.first() else { return Ok(()) };
        self.access(state, at, *columns, write, pending)
    }

    /// Checks that columns are not used when they may be freed already.
    pub(super) fn allocated(&self, state: &State, at: At<'_>, memory: usize) -> Result<(), Fault> {
        let Some(op) = state.machine.gone.get(&state.machine.memory_object(memory)) else { return Ok(()) };
        let title = format!("{} is used when its columns may have been freed", self.objects.memories[memory].name);
        refuse(
            Error::new(Code::TensorColumns, at.op.loc, title)
                .related(self.kernel.op(*op).loc, "they are freed here")
                .help("wait for an event that comes after the last use before `ttg.nv.tcgen05.dealloc`"),
        )
    }

    /// What fence is missing between two accesses to tensor memory that barriers order, and where it belongs.
    pub(super) fn missing_fence(&self, role: usize, other: &Record) -> Option<(String, String)> {
        let (own, theirs) = (self.role_name(role), self.role_name(other.role));
        if other.fences.held && other.fences.skipped && other.role != role {
            Some((
                format!("{theirs} has no `fence_before_thread_sync` between its wait for that and its arrival"),
                format!(
                    "`ttg.nv.tcgen05.fence_before_thread_sync` in {theirs}, after that wait and before it arrives at a barrier"
                ),
            ))
        } else if other.fences.missing & other.known & bit(role) != 0 {
            Some((
                format!("{own} has no `fence_after_thread_sync` after its wait for the barrier that orders them"),
                "`ttg.nv.tcgen05.fence_after_thread_sync` before this".to_owned(),
            ))
        } else {
            None
        }
    }
}

/// The words for an access to tensor memory.
pub(super) struct Words {
    /// The verb of which the columns are the subject.
    pub(super) does: &'static str,
    noun: &'static str,
    /// What connects the noun with the columns.
    on: &'static str,
    /// What the access does to the columns.
    effect: &'static str,
}

impl Words {
    pub(super) const fn of(kind: &OpKind, write: bool) -> Words {
        let tensor = if let OpKind::Nv(NvOp::Tcgen05(tensor)) = kind { Some(tensor) } else { None };
        let (does, noun, on, effect) = match tensor {
            Some(Tcgen05Op::Load { .. }) => ("is loaded", "a load", "from", "read"),
            Some(Tcgen05Op::Store { .. }) => ("is stored to", "a store", "to", "write"),
            Some(Tcgen05Op::Copy { .. }) => ("is copied to", "a copy", "to", "write"),
            Some(Tcgen05Op::Shift { .. }) => ("is shifted", "a shift", "of", "change"),
            Some(Tcgen05Op::Dealloc { .. }) => ("is freed", "the release", "of", "free"),
            Some(Tcgen05Op::Mma(_)) if write => ("is updated by an MMA", "an MMA", "that updates", "update"),
            // The others access nothing.
            Some(
                Tcgen05Op::Mma(_)
                | Tcgen05Op::Alloc { .. }
                | Tcgen05Op::Relinquish { .. }
                | Tcgen05Op::Commit { .. }
                | Tcgen05Op::WaitLoad
                | Tcgen05Op::WaitStore
                | Tcgen05Op::FenceBefore
                | Tcgen05Op::FenceAfter,
            )
            | None => ("is read by an MMA", "an MMA", "that reads", "read"),
        };
        Words { does, noun, on, effect }
    }

    /// The access as a noun.
    pub(super) fn access(&self, name: &str) -> String {
        format!("{} {} {name}", self.noun, self.on)
    }

    /// That it may not be complete, with its role if that is another one.
    pub(super) fn may(&self, role: Option<&str>) -> String {
        let of = role.map_or(String::new(), |r| format!(" of {r}"));
        format!("{}{of} may still {} it", self.noun, self.effect)
    }
}
