//! The accesses of barrier programs to the slots of rings: a role accesses only stages that it holds, its threads access each byte in order,
//! and what is read has been filled.
//!
//! Which slot a stage has follows from its time, which the co-execution knows, so that accesses of the same threads to the slots of a ring are
//! compared here, and not by rule 66. Of two accesses to the same bytes, of which one writes, one must come after a barrier of the threads
//! that comes after the other; for a ring between roles, this is so in different rounds, because its barriers order them.
//!
//! ```text
//! ttg.claim.acquired %ring, %s          stage t
//! ttg.local.copy_async .. %a of %s      the bytes of a are written; in flight
//! ttg.claim.filled %ring, %s            the stage is filled with the bytes of a
//! ttg.nv.cp_async.wait_group {n = 0}    the copy is complete: it has written at some time since the last barrier
//! ttg.claim.ready %ring, %s
//! ttg.nv.barrier.sync ..                no access since the last barrier
//! ttg.local.load .. of %s               stage t is read; nothing else has accessed it since
//! ```
//!
//! That a fill writes the bytes that are read is checked at the end, for each claim on each path that reached it: a copy in one arm of a branch
//! fills the stage on one path only. A stage that is marked as one without contents may be filled with nothing.
//!
//! Deliberately absent: whether a reader asks for the mark before it reads, which the rules of rings have checked for the kernel's tokens.

use super::super::fault::Fault;
use super::super::run::Run;
use super::super::state::State;
use super::find::{Access, OF_RING, When};
use super::pairs::{Accesses, Pairs, Piece, Side, Stage};
use crate::collections::SortedSet;
use crate::diag::Code;
use crate::ir::{BarrierTy, Class, Kernel, NvGroup, NvOp, Op, OpId, OpKind, Pipe, Ty};
use crate::verify::Error;

/// The title of an error about accesses of the threads of one role.
pub(in crate::verify) const UNORDERED: &str =
    "threads of one role may access the same memory here without a barrier between them";

impl Run<'_> {
    /// Checks the accesses of an operation to rings: its role must hold the stage.
    pub(in crate::verify::coexecution) fn touched(
        &mut self,
        state: &mut State,
        role: usize,
        id: OpId,
    ) -> Result<(), Fault> {
        for ring in self.claims.under.get(&id).into_iter().flatten() {
            let own = &state.rings[ring.index()];
            // Nothing acquired and not filled, nothing filled and not released, no wait pending: then no role holds a
            // stage of it, and none is in flight below.
            let idle = own.filled.low == own.acquired
                && own.readers.iter().all(|r| r.claimed == own.acquired && r.released.low == own.acquired);
            if !idle || state.roles.iter().any(|r| r.pairs.copying.keys().any(|(p, ..)| p == ring)) {
                return Self::breaks(id, "this accesses the memory of a ring that is in use");
            }
        }
        // All other operations access no slot.
        let Some(accesses) = self.claims.accesses.get(&id).cloned() else { return Ok(()) };
        for access in accesses {
            let Access { region, slot, writes, .. } = access;
            let own = self.claims.ring_of.get(&region).copied();
            let pairs = &mut state.roles[role].pairs;
            let found = pairs.stages.iter().find(|(((pipe, fills), pair), stage)| {
                // A fill may write its stage until it claims that it is filled, and a reader may read after its wait:
                // the states InFlight and Reading of docs/protocol.md.
                let held = if writes { *fills && !stage.usable } else { stage.usable };
                pair.0 == slot && held && own.is_none_or(|own| own == *pipe)
            });
            let Some(((side, _), stage)) = found.map(|(key, stage)| (*key, *stage)) else {
                return Self::breaks(id, "this accesses a stage that its role does not hold");
            };
            if own.is_none() && *self.claims.companions.entry(region).or_insert(side.0) != side.0 {
                return Self::breaks(id, "this memory belongs to two rings");
            }
            if self.claims.companions.iter().any(|(other, pipe)| own.is_none() && *pipe == side.0 && *other != region) {
                return Self::breaks(id, "a ring has two regions of words beside it");
            }
            self.in_order(state, (role, id), (side, stage), access)?;
            self.accessed(state, (role, id), (side, stage), access)?;
        }
        Ok(())
    }

    /// Checks that the earlier accesses of the threads of a role to the same bytes are ordered before this one.
    fn in_order(
        &self,
        state: &State,
        (role, id): (usize, OpId),
        (side, stage): (Side, Stage),
        access: Access,
    ) -> Result<(), Fault> {
        let (pipe, time) = (side.0, stage.time);
        let refuse =
            |title: &str| Err(Fault::Barrier(Box::new(Error::new(Code::InFlight, self.kernel.op(id).loc, title))));
        let Some(pieces) = self.claims.pieces.get(&access.region) else {
            return Self::breaks(id, "this accesses bytes that are not known");
        };
        let overlapping = pieces.overlapping(access.piece);
        let is_copy = access.when != When::Now;
        // Stores are compared with stores by the barriers between them (below). A copy is in order with no other write
        // to the same bytes, whichever comes first.
        let twice = if is_copy { stage.had.may_be_written } else { stage.had.copied_to };
        if access.writes && twice & overlapping != 0 {
            return refuse("bytes of a stage are written twice here, and nothing orders the two writes");
        }
        let slots = self.kernel.pipe(pipe).map_or(1, |p| i64::from(p.slots)).max(1);
        let joined = self.claims.joined.contains(&pipe);
        let meets = |((p, t, region, piece), wrote): &(Piece, bool)| {
            // Time t and t + D are the same bytes. Between roles, R(t) and A(t + D) order them; in a ring of one role
            // only barriers of its threads do.
            let same_slot = if joined { *t == time } else { (t - time).rem_euclid(slots) == 0 };
            *p == pipe
                && *region == access.region
                && same_slot
                && (overlapping >> piece) & 1 == 1
                && (*wrote || access.writes)
        };
        if state.roles[role].pairs.since.iter().any(meets) { refuse(UNORDERED) } else { Ok(()) }
    }

    /// Records an access to a stage.
    fn accessed(
        &mut self,
        state: &mut State,
        (role, id): (usize, OpId),
        (side, stage): (Side, Stage),
        access: Access,
    ) -> Result<(), Fault> {
        let pairs = &mut state.roles[role].pairs;
        let (piece, time): (Piece, i64) = ((side.0, stage.time, access.region, access.piece), stage.time);
        match (access.writes, access.when) {
            // In flight in the open group, until a commit gives it a number and a wait completes it.
            (true, When::Group(Class::CpAsync)) => {
                pairs.copying.insert(piece, None);
                pairs.change(side, time, |s| s.had.copied = true);
            }
            (true, When::Phase) => pairs.change(side, time, |s| s.had.bulk = true),
            (true, When::Now) => pairs.change(side, time, |s| s.had.stored = true),
            (false, When::Group(Class::Wgmma)) => drop(pairs.reading.insert(piece, None)),
            (false, When::Now) => pairs.change(side, time, |s| s.had.loaded = true),
            (_, When::Group(_)) | (false, When::Phase) => {
                return Self::breaks(id, "this accesses a stage in a way that no claim covers");
            }
        }
        self.note(&mut state.roles[role].pairs, piece, access.writes);
        let pairs = &mut state.roles[role].pairs;
        if access.writes {
            let own = 1u64 << access.piece.min(63);
            pairs.change(side, time, |s| {
                s.had.may_be_written |= own;
                // What is certainly written counts whole tiles only; what may be written counts parts of them as well.
                s.had.written |= if access.whole { own } else { 0 };
                s.had.copied_to |= if access.when == When::Now { 0 } else { own };
                s.had.poisoned |= access.poisons;
            });
        } else {
            self.claims.reads.insert((side.0, access.region, access.piece, id));
        }
        Ok(())
    }

    /// Records what is written in a stage that is claimed to be filled.
    pub(super) fn note_filled(&mut self, (id, pipe): (OpId, Pipe), had: Accesses) {
        let of_words = u64::MAX << OF_RING;
        // A stage without contents has its mark alone.
        // Readers of such a stage must have asked for the mark, which the rules of tokens show.
        let written = if had.poisoned { had.written | !of_words } else { had.written };
        self.claims.fills.insert((pipe, id, written));
    }

    /// The claims that a stage is filled on some path without bytes that are read; known when all roles have been executed.
    pub(in crate::verify) fn unfilled(&self) -> Vec<Error> {
        let kernel = self.kernel;
        let mut told = SortedSet::new();
        let mut errors = Vec::new();
        for (pipe, fill, written) in &self.claims.fills {
            let missing = self.claims.reads.iter().find(|(of, region, piece, _)| {
                of == pipe && !self.claims.pieces.get(region).is_some_and(|own| own.cover(*written, *piece))
            });
            let Some((.., read)) = missing.filter(|_| told.insert(*fill)) else { continue };
            let title = format!(
                "a stage of `{}` is claimed to be filled, but on some path nothing has written bytes that are read",
                kernel.pipe_name(*pipe)
            );
            let error = Error::new(Code::NeverWritten, kernel.op(*fill).loc, title);
            errors.push(error.related(kernel.op(*read).loc, "they are read here"));
        }
        errors
    }

    /// Commits a group, or waits for groups; other operations have no effect on groups.
    pub(in crate::verify::coexecution) fn grouped(&self, state: &mut State, role: usize, nv: NvOp) {
        let pairs = &mut state.roles[role].pairs;
        if let NvOp::Commit { group, .. } = nv {
            pairs.commit(group);
        } else if let NvOp::WaitGroup { group, n, .. } = nv {
            // The copy may have written at any time until now, so that it counts as an access since the last barrier:
            // of other threads, their waits say nothing here, and only the next barrier does.
            for piece in pairs.wait(group, n) {
                self.note(pairs, piece, group == NvGroup::CpAsync);
            }
        }
    }

    /// Records that the threads of a role access a stage now. Reads of a ring between roles are not recorded: its readers never write, and its
    /// barriers order them with the writes of the next round.
    fn note(&self, pairs: &mut Pairs, piece: Piece, writes: bool) {
        // A read of a ring between roles is ordered before the next write of its slot by the release, for which the
        // other role waits.
        if writes || !self.claims.joined.contains(&piece.0) {
            let slots = self.kernel.pipe(piece.0).map_or(1, |p| i64::from(p.slots));
            pairs.note(piece, writes, slots);
        }
    }

    /// Passes a barrier of all threads of a role, if this is one. A print whose warps share a region has such barriers in it.
    pub(in crate::verify::coexecution) fn met(kernel: &Kernel, state: &mut State, role: usize, op: &Op) {
        let Some(laid) = kernel.laid_out.as_deref() else { return };
        let warps = kernel.roles.get(role).map_or(laid.warps, |own| own.warps);
        let in_print = matches!(op.kind, OpKind::Print(_))
            && op.args.iter().any(|v| kernel.ty(*v) == Ty::Barrier(BarrierTy::Region));
        let of_lanes = op.kind == OpKind::Nv(NvOp::WarpSync) && warps == 1;
        let threads = warps.saturating_mul(laid.lanes);
        let of_all = matches!(op.kind, OpKind::Nv(NvOp::BarrierSync { threads: all, .. }) if all == threads);
        if of_all || of_lanes || in_print {
            state.roles[role].pairs.since.clear();
        }
    }
}
