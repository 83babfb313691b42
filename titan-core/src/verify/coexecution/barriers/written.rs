//! Rule 83: shared memory and tensor memory are written before they are read.
//!
//! The state has what has been written *at least*. Accesses that conflict are ordered (rule 54), so a read finds what was written before it
//! in this order of steps, and the same in every other one. A copy counts as written when it is started, since rule 54 asks for its wait.
//!
//! | memory | what is known of it |
//! |---|---|
//! | a region, or a part that a constant selects | the bytes that were written, by their addresses: regions may share bytes |
//! | parts that take turns | how many of the latest times were written; once that is all parts, it stays so |
//! | columns of tensor memory | how many were written, from the first one on, with which every operation begins |
//!
//! # Loops
//!
//! What is written stays written. So an arbitrary round that needs no more than what was written before the loop shows it for every round,
//! although more is written at the start of the later ones: the two states count as equal ([`Written::covers`]). Behind the loop, what
//! every round writes has been written if there is a round. Whether there is one is a case of its own only where the proof fails without it
//! ([`super::super::run::Run::at_least_once`]).
//!
//! A read of what may not have been written is recorded, and is an error only if nothing else is: a read that no barrier orders behind its
//! write would be reported twice.
//!
//! Deliberately absent: the contents. A region that shares bytes with another one may be read after a write through that one, which is for
//! programs written by hand; generated ones are checked by [`crate::verify::barriers`] (`threads`). Opaque code is taken to need nothing.
//! Lanes of tensor memory; an accumulator that an MMA adds to without scaling it, because an MMA does not state whether it adds or overwrites.

use super::super::linear::Linear;
use super::super::run::Run;
use super::super::state::State;
use super::event::At;
use super::messages::bytes_of;
use super::objects::{Memory, Place};
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::{BarrierTy, NvOp, OpId, OpKind, RegionOp, Tcgen05Op, Ty, Value};
use crate::verify::Error;

/// What has been written, at least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Written {
    /// The bytes of shared memory: ranges in ascending order, with others between them.
    bytes: Vec<(u64, u64)>,
    /// Of allocations of tensor memory, by the index of the memory, the number of columns.
    columns: SortedMap<usize, u64>,
    /// Of memories whose parts take turns, and numbers of bytes: how many of the latest times were written with so many bytes.
    turns: SortedMap<(usize, u64), i64>,
}

/// An access to a part of a memory, from its beginning on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) memory: usize,
    /// The number of bytes, or of columns.
    pub(super) size: u64,
    /// By how many times it is older than the latest time that was written.
    pub(super) age: i64,
    /// By how many times the latest time has advanced by this write.
    pub(super) advanced: i64,
}

impl Written {
    /// Whether everything is written that is written in another state.
    pub(super) fn covers(&self, other: &Written) -> bool {
        other.bytes.iter().all(|(first, end)| self.has_bytes(*first, *end))
            && other.columns.iter().all(|(memory, n)| self.columns.get(memory).is_some_and(|own| own >= n))
            && other.turns.iter().all(|((memory, size), n)| self.times(*memory, *size) >= *n)
    }

    /// What is written in both.
    pub(in crate::verify) fn meet(&self, other: &Written) -> Written {
        let mut met = Written::default();
        for (first, end) in &self.bytes {
            let common = other.bytes.iter().map(|(start, last)| (*first.max(start), *end.min(last)));
            met.bytes.extend(common.filter(|(first, end)| first < end));
        }
        for (memory, n) in &self.columns {
            met.columns.extend(other.columns.get(memory).map(|other| (*memory, *n.min(other))));
        }
        for (memory, size) in self.turns.keys().chain(other.turns.keys()) {
            let n = self.times(*memory, *size).min(other.times(*memory, *size));
            if n > 0 {
                met.turns.insert((*memory, *size), n);
            }
        }
        met
    }

    fn has_bytes(&self, first: u64, end: u64) -> bool {
        first >= end || self.bytes.iter().any(|(start, last)| *start <= first && end <= *last)
    }

    /// The number of the latest times of which so many bytes were written.
    fn times(&self, memory: usize, size: u64) -> i64 {
        let with = self.turns.iter().filter(|((m, s), _)| *m == memory && *s >= size);
        with.map(|(_, n)| *n).max().unwrap_or(0)
    }

    /// Whether an access finds everything written.
    fn has(&self, own: &Memory, access: Extent) -> bool {
        match own.place {
            Place::Shared(first, _) if own.n == 1 => self.has_bytes(first, first + access.size),
            Place::Shared(first, end) => {
                let times = self.times(access.memory, access.size);
                times > access.age || times >= own.n || self.has_bytes(first, end)
            }
            Place::Tensor => self.columns.get(&access.memory).is_some_and(|n| *n >= access.size),
            Place::Output => true,
        }
    }

    fn add(&mut self, own: &Memory, access: Extent) {
        match own.place {
            Place::Shared(first, _) if own.n == 1 => self.add_bytes(first, first + access.size),
            Place::Shared(first, end) => {
                self.take_turns(own.n, access);
                if self.times(access.memory, own.part()) >= own.n {
                    self.add_bytes(first, end);
                }
            }
            Place::Tensor => {
                let n = self.columns.entry(access.memory).or_default();
                *n = access.size.max(*n);
            }
            Place::Output => {}
        }
    }

    fn add_bytes(&mut self, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let (apart, touching): (Vec<_>, Vec<_>) =
            self.bytes.iter().copied().partition(|(start, last)| *last < first || end < *start);
        let first = touching.iter().map(|(start, _)| *start).min().unwrap_or(first).min(first);
        let end = touching.iter().map(|(_, last)| *last).max().unwrap_or(end).max(end);
        self.bytes = apart;
        self.bytes.push((first, end));
        self.bytes.sort_unstable();
    }

    /// A write to the latest time of a memory of `n` parts, which may be a new one.
    fn take_turns(&mut self, n: i64, access: Extent) {
        let memory = access.memory;
        let known = self.turns.keys().filter(|(m, _)| *m == memory).map(|(_, size)| *size);
        let sizes: SortedSet<u64> = known.chain([access.size]).collect();
        let before: Vec<(u64, i64)> = sizes.iter().map(|size| (*size, self.times(memory, *size))).collect();
        for (size, times) in before {
            let times = match (size <= access.size, access.advanced) {
                // All parts: which of them was written last does not matter any more.
                _ if times >= n => n,
                (true, 0) => times.max(1),
                (true, 1) => (times + 1).min(n),
                // Times between them were not written.
                (true, _) => 1,
                (false, 0) => times,
                (false, _) => 0,
            };
            self.turns.insert((memory, size), times);
        }
        self.turns.retain(|_, times| *times > 0);
    }
}

impl Run<'_> {
    /// Records what an access to a memory writes, and whether it needs what may not have been written.
    pub(super) fn note_written(
        &self,
        state: &mut State,
        at: At<'_>,
        (region, write): (Value, bool),
        (memory, time, before): (usize, i64, i64),
    ) {
        let own = &self.objects.memories[memory];
        let latest = state.machine.latest_of(memory);
        let extent =
            Extent { memory, size: self.extent(at, region, own), age: latest - 1 - time, advanced: latest - before };
        if needs(&at.op.kind, write) && !state.machine.written.has(own, extent) {
            state.machine.unwritten.entry(at.id).or_insert(memory);
        }
        let frees = matches!(at.op.kind, OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Dealloc { .. })));
        if write && !frees {
            state.machine.written.add(own, extent);
        }
    }

    /// The number of bytes of a part, or of columns, that an operation accesses of one of its operands.
    fn extent(&self, at: At<'_>, region: Value, own: &Memory) -> u64 {
        let whole = match (&own.place, self.kernel.def_op(region).map(|op| &op.kind)) {
            (Place::Tensor, Some(OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Alloc { columns, .. })))) => u64::from(*columns),
            (Place::Tensor | Place::Shared(..) | Place::Output, _) => own.part(),
        };
        let stated = if let OpKind::Nv(NvOp::Tcgen05(tensor)) = &at.op.kind {
            let in_tensor_memory = self.kernel.ty(region) == Ty::Barrier(BarrierTy::TensorMemory);
            let of = |i: usize| if in_tensor_memory { tensor.columns(i) } else { tensor.shared_bytes(i) };
            let operands = at.op.args.iter().enumerate().filter(|(_, v)| **v == region);
            operands.map(|(i, _)| of(i).map_or(whole, u64::from)).max()
        } else {
            bytes_of(&at.op.kind)
        };
        stated.unwrap_or(whole).min(whole)
    }

    /// What the rounds of a loop have written and read, of which these are the ends.
    pub(in crate::verify) fn hand_written_on(next: &mut State, ends: &[State], times: &Linear) {
        ends.iter().for_each(|end| next.machine.add_unwritten(&end.machine.unwritten));
        // What was written before the loop is written behind it anyway.
        if next.facts.decide(&Self::at_least_once(times)) == Some(true) {
            let each = ends.iter().map(|end| end.machine.written.clone()).reduce(|a, b| a.meet(&b));
            next.machine.written = each.unwrap_or_default();
        }
    }

    /// The error for the first read of a case that finds memory which may not have been written.
    pub(in crate::verify) fn unwritten(&self, state: &State) -> Option<Error> {
        let (id, memory) = state.machine.unwritten.first_key_value()?;
        let (op, own) = (self.kernel.op(*id), &self.objects.memories[*memory]);
        let (what, help) = match own.place {
            Place::Tensor => ("columns", "write them before, by an MMA, `ttg.nv.tcgen05.st` or `ttg.nv.tcgen05.cp`"),
            Place::Shared(..) | Place::Output => {
                ("bytes", "write them before, in every case in which this is executed")
            }
        };
        let title = format!("{what} of {} are read here that nothing has written", own.name);
        Some(Error::new(Code::NeverWritten, op.loc, title).help(help))
    }
}

impl super::machine::Machine {
    /// The reads that find memory which may not have been written.
    pub(in crate::verify) fn add_unwritten(&mut self, others: &SortedMap<OpId, usize>) {
        for (op, memory) in others {
            self.unwritten.entry(*op).or_insert(*memory);
        }
    }
}

/// Whether an operation needs what is in memory: where it reads, and where it writes what it computes from that.
fn needs(kind: &OpKind, write: bool) -> bool {
    let is_opaque = matches!(kind, OpKind::Region(RegionOp::Call(_)));
    let scales = matches!(kind, OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Mma(mma))) if mma.scaled_input);
    let changes = scales || matches!(kind, OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Shift { .. })));
    !is_opaque && (!write || changes)
}
