//! Co-execution of barrier programs by their claims about rings.
//!
//! A program that was lowered from rings states, next to its waits and arrivals, their effect on a ring ([`Claim`]): for which slot, and
//! after how many rounds of the ring. This module co-executes the roles by these claims alone, with the rules of rings: an acquisition
//! waits until the readers have released the slot, and so on. [`crate::verify::barriers`] checks for each claim that the operations
//! implement it.
//!
//! A slot and a number of rounds are two values, a *pair*. The time for which a pair stands is tracked through loops and branches:
//!
//! * The *clock* of a side of a ring, the pair that it takes next, starts at (0, 0), and advances by one slot whenever the
//!   side takes a stage. The pair that a loop carries for it is the clock inside of the loop.
//! * A *stage* is a pair from its acquisition or wait until its release. It stands for the same time wherever the values are passed.
//!
//! ```text
//! for .. carry(%s = 0, %r = 0)              the clock of the filling side of `ring`: (%s, %r)
//!     ttg.claim.acquired<0> %ring, %s, %r   the stage (%s, %r) stands for the current time t of the side
//!     .. copies to slot %s ..               allowed: that stage is acquired, and not filled yet
//!     ttg.claim.filled<0> %ring, %s, %r     time t is filled, and the stage ends
//!     %n = add %s, 1   %w = eq %n, 3        the clock is the successor of (%s, %r): the loop must carry such a pair
//!     continue select(%w, 0, %n), select(%w, %r + 1, %r)
//! ```

use super::super::fault::{Fault, On, Wait, defect};
use super::super::run::Run;
use super::super::state::State;
use super::find::{Arrival, Claims};
use super::pairs::{Accesses, Pair, Side, Stage, is_after};
use crate::collections::SortedSet;
use crate::ir::{Claim, Kernel, Op, OpId, Pipe, Value};

impl Run<'_> {
    /// A run of a barrier program by its claims alone.
    pub(in crate::verify) fn of_claims<'k>(kernel: &'k Kernel, claims: Claims) -> Run<'k> {
        let mut run = Run::without_barriers(kernel, claims.events.clone());
        run.staging = claims.staging.clone();
        run.claims = claims;
        run
    }

    pub(super) fn breaks<T>(op: OpId, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::Claim { op, what: what.into() })
    }

    /// The effect of a claim; or the wait that blocks it.
    pub(in crate::verify::coexecution) fn claimed(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &Op),
        (claim, pipe): (Claim, Pipe),
    ) -> Result<Option<Wait>, Fault> {
        let Some(slot) = op.args.get(1) else { return Self::breaks(id, "a claim without a slot") };
        let pair = (*slot, op.args.get(2).copied());
        let staging = self.staging.contains(&pipe);
        let side = (pipe, matches!(claim, Claim::Acquired | Claim::Filled) || staging);
        // A stage is found by the pair of values, not by numbers: two pairs with equal numbers are different stages
        // unless `Pairs::hand_on` has passed one to the other.
        let taken = state.roles[role].pairs.stage(side, pair);
        let time = match (claim, taken) {
            (Claim::Acquired | Claim::Next, _) => return self.take(state, role, (id, claim), (side, pair)),
            (Claim::Filled | Claim::Ready | Claim::Released, None) => {
                return Self::breaks(id, "the role holds no stage of the ring with this slot and round");
            }
            (Claim::Filled | Claim::Ready, Some(stage)) if stage.usable => {
                return Self::breaks(id, "this stage has been filled or waited for before");
            }
            (Claim::Released, Some(stage)) if !stage.usable => {
                return Self::breaks(id, "this stage is released before it was waited for");
            }
            (Claim::Filled, Some(stage)) => {
                let by = self.claims.filled_by.get(&id).copied();
                // The arrival must come after everything that fills the stage. Copies by threads are covered by an
                // arrival that their completion triggers, stores by one that follows them, bulk copies by the bytes
                // that the barrier expects; a stage filled in two ways needs both.
                let covered = by.is_none_or(|by| match by.threads {
                    Some(Arrival::Copies) => !stage.had.stored,
                    Some(Arrival::Stores) => !stage.had.copied,
                    // Copies that were waited for are complete; other rules check the waits for groups within a role.
                    Some(Arrival::All) => true,
                    None => !stage.had.stored && !stage.had.copied,
                });
                let covered = covered && (!stage.had.bulk || by.is_some_and(|by| by.bulk));
                if !covered {
                    return Self::breaks(id, "the arrival does not cover everything that fills the stage");
                }
                if self.claims.filled_by.contains_key(&id) {
                    // A wait at the barrier includes the copies.
                    state.roles[role].pairs.copying.retain(|(p, t, ..), _| (*p, *t) != (pipe, stage.time));
                }
                self.note_filled((id, pipe), stage.had);
                stage.time
            }
            (Claim::Ready | Claim::Released, Some(stage)) => stage.time,
        };
        let joined = self.claims.joined.contains(&pipe);
        let ring = &mut state.rings[pipe.index()];
        match claim {
            Claim::Filled => {
                ring.filled.add(time);
                let pairs = &mut state.roles[role].pairs;
                if staging { pairs.change(side, time, |s| s.usable = true) } else { pairs.end(side, time, joined) }
            }
            Claim::Ready => {
                // W(t) returns only after F(t) (docs/protocol.md). The role keeps its place, and the claim is asked
                // again when others have gone on.
                if !ring.filled.has(time) {
                    return Ok(Some(Wait { role, op: id, on: On::Filled(pipe) }));
                }
                // A ring of one role has no barrier that counts its copies: only the wait for their group shows that
                // they have arrived (theorem 9).
                if state.roles[role].pairs.copying.keys().any(|(p, t, ..)| (*p, *t) == (pipe, time)) {
                    return Self::breaks(
                        id,
                        "copies to this stage may still be in flight: their group was not waited for",
                    );
                }
                state.roles[role].pairs.change(side, time, |s| s.usable = true);
            }
            Claim::Released => {
                if self.claims.unmet.contains(&id) && taken.is_some_and(|stage| stage.had.loaded) {
                    return Self::breaks(
                        id,
                        "lanes have loaded from this stage, and no barrier of their warp precedes its release",
                    );
                }
                // An MMA in flight reads the stage until its group is waited for. Released before, the next fill could
                // overwrite it (theorem 1).
                if state.roles[role].pairs.reading.keys().any(|(p, t, ..)| (*p, *t) == (pipe, time)) {
                    return Self::breaks(id, "MMAs may still read this stage: their group was not waited for");
                }
                let Some(reader) = ring.readers.iter_mut().find(|r| r.role == role) else {
                    return defect(id, "a stage that is released by a role that is no reader");
                };
                reader.released.add(time);
                state.roles[role].pairs.end(side, time, joined);
            }
            Claim::Acquired | Claim::Next => return defect(id, "a stage that is taken twice by one claim"),
        }
        Ok(None)
    }

    /// Takes the stage at the clock of a side.
    fn take(
        &mut self,
        state: &mut State,
        role: usize,
        (id, claim): (OpId, Claim),
        (side, pair): (Side, Pair),
    ) -> Result<Option<Wait>, Fault> {
        let pipe = side.0;
        let slots = self.kernel.pipe(pipe).map_or(1, |p| p.slots);
        let ring = &mut state.rings[pipe.index()];
        let time = if claim == Claim::Acquired {
            let time = ring.acquired;
            // A(t) returns only after R(t - D, i) of every reader i. In a ring of two slots, time 2 waits for the
            // release of time 0; times 0 and 1 find the times before 0 released.
            if !ring.readers.iter().all(|r| r.released.has(time - i64::from(slots))) {
                if self.staging.contains(&pipe) {
                    return Err(Fault::Staging { op: id, pipe });
                }
                return Ok(Some(Wait { role, op: id, on: On::Free(pipe) }));
            }
            ring.acquired += 1;
            if self.staging.contains(&pipe) {
                ring.readers.iter_mut().for_each(|r| r.claimed += 1);
            }
            time
        } else {
            let Some(reader) = ring.readers.iter_mut().find(|r| r.role == role) else {
                return Self::breaks(id, "this role does not read the ring");
            };
            reader.claimed += 1;
            reader.claimed - 1
        };
        let pairs = &mut state.roles[role].pairs;
        let clock = pairs.clock(side);
        // The claim names values; that they are the slot and the round of this time is shown from how they were
        // computed, step by step from (0, 0).
        let exact = self.claims.counted.contains(&pipe);
        if !clock.iter().any(|(base, steps)| is_after(self.kernel, pair, *base, (*steps, slots), exact)) {
            return Self::breaks(id, "the slot and the round are not the next ones of the ring");
        }
        // The clock is one step further than each pair that was known to stand for it, this one included.
        *clock = clock.iter().map(|(base, steps)| (*base, steps + 1)).collect();
        pairs.stages.insert((side, pair), Stage { time, usable: false, had: Accesses::default() });
        Ok(None)
    }

    /// Passes pairs along where an operation with regions is entered, repeated or left.
    pub(in crate::verify::coexecution) fn hand_pairs_on(
        &self,
        state: &mut State,
        role: usize,
        around: OpId,
        (from, to): (&[Value], &[Value]),
        enters: bool,
    ) {
        // A program without claims has no pairs.
        if self.claims.events.is_empty() {
            return;
        }
        let (none, unmoved) = (SortedSet::new(), SortedSet::new());
        // Values that are defined inside have another meaning in the next iteration, or none behind the loop. At the
        // entry, nothing ends.
        let gone = self.claims.inside.get(&around).filter(|_| !enters).unwrap_or(&none);
        let moved = self.claims.moved.get(&around).unwrap_or(&unmoved);
        state.roles[role].pairs.hand_on(self.kernel, (from, to), moved, gone, &self.claims.counted);
    }
}
