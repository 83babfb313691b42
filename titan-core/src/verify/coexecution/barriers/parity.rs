//! The phase that a parity stands for.
//!
//! Element `t mod n` of `n` barriers and the parity of `t div n` stand for time `t`; with the parity flipped, for time `t + n` or, equally,
//! `t − n`. A role that has observed the last complete phase waits for that phase or for the next one. A poll (`test_wait`) refers to the
//! same phase as a wait.
//!
//! # An example
//!
//! A ring of three slots; the reader waits for `full` with the parity of `t div 3`, the filler for `empty` with the flipped parity, since
//! the first wait for a free slot must return at once. These are the times of the phases for which they wait (executed by a test):
//!
//! | `t` | element | filler's parity | waits for `empty` | reader's parity | waits for `full` |
//! |---|---|---|---|---|---|
//! | 0 | 0 | 1 | −3 | 0 | 0 |
//! | 1 | 1 | 1 | −2 | 0 | 1 |
//! | 2 | 2 | 1 | −1 | 0 | 2 |
//! | 3 | 0 | 0 | 0 | 1 | 3 |
//! | 4 | 1 | 0 | 1 | 1 | 4 |
//! | 5 | 2 | 0 | 2 | 1 | 5 |
//! | 6 | 0 | 1 | 3 | 0 | 6 |
//!
//! An index and a parity determine a time modulo 6 only. In step 4, those of the filler give `t + 3 = 7`, so 1 or −5 or 7; the last
//! complete phase of element 1 of `empty` decides which of these is meant:
//!
//! | last complete phase | as 7 modulo 6 | the wait is for | |
//! |---|---|---|---|
//! | 1 | yes | 1 | it passes |
//! | −2, before the first | no | the next one, 1 | it waits |
//! | 4, and the filler has not observed it | no | | refused: the parity may stand for another phase (`lapped`) |

use super::super::linear::Linear;
use super::super::run::{Fault, On, Run, Wait};
use super::super::state::{Mark, State};
use super::event::{At, Waits, refuse};
use super::objects::Named;
use crate::diag::Code;
use crate::ir::{NvOp, Op, OpId, OpKind, UnOp};
use crate::verify::Error;

fn wrong(at: At<'_>, title: String) -> Error {
    let help =
        "with `n` barriers, step `t` has parity `(t / n) % 2`; a wait for a slot to become free takes the other parity";
    Error::new(Code::WaitParity, at.op.loc, title).help(help)
}

/// The title for a parity that is the same in every phase.
pub(super) fn constant(name: &str) -> String {
    format!("the parity is constant, but {name} goes through several phases")
}

impl<'k> Run<'k> {
    pub(super) fn lapped(&self, at: At<'_>, barrier: usize) -> Error {
        let (role, name) = (self.role_name(at.role), &self.objects.barriers[barrier].name);
        let title = format!(
            "{role} may test {name} after the following phase is complete too: its parity then stands for another phase"
        );
        Error::new(Code::PhaseMixed, at.op.loc, title)
            .help("wait for every phase in order, and order this wait before the arrivals of the next phase")
    }

    /// The error that the first wait of a role has the parity of the phase before the one for which it should wait.
    fn before_the_first(&self, at: At<'_>, name: &str) -> Error {
        let role = self.role_name(at.role);
        let title = format!("{role} starts with the wrong parity on {name}: the wait passes at once");
        Error::new(Code::WaitParity, at.op.loc, title)
            .help("a wait for data starts with parity 0; a wait for a slot to become free starts with parity 1, and no role frees the slot before that")
    }

    pub(super) fn wait_parity(&mut self, state: &mut State, at: At<'k>) -> Waits {
        let (barrier, time) = self.phase_of(state, at)?;
        let n = self.objects.barriers[barrier].n;
        if time > state.machine.last(barrier, time.rem_euclid(n), n) {
            return Ok(Some(Wait { role: at.role, op: at.id, on: On::Phase(barrier, time) }));
        }
        self.pass(state, at, barrier, time);
        Ok(None)
    }

    /// The phase to which a wait or a poll refers here.
    fn phase_of(&mut self, state: &mut State, at: At<'_>) -> Result<(usize, i64), Fault> {
        let Some(named) = at.op.args.first().and_then(|v| self.objects.barrier(*v)) else {
            return refuse(self.several(at));
        };
        let barrier = named.object;
        let (n, name) = (self.objects.barriers[barrier].n, self.objects.barriers[barrier].name.clone());
        self.alive(state, at, barrier)?;
        let slot = self.slot(state, at, (named, n), (barrier, &name))?;
        let wanted = self.wanted(state, at, (named, n), &name)?;
        let last = state.machine.last(barrier, slot, n);
        // What the role has observed is what holds in every order of steps, and not only in this one.
        let known = state.machine.knows(at.role, barrier, last);
        // Of all times with this index and parity, only two are possible: the last complete phase of the element, for
        // which the wait returns at once, and the next one. Their parities differ, so that one of them is meant.
        let time = if (last - wanted).rem_euclid(2 * n) == 0 { last } else { last + n };
        // A role that has not observed a phase must have observed the previous one; it then waits for this one.
        // The role has not observed phase `last`: in another order of steps, the last complete phase is the one before
        // it, and the parity must mean the same phase there. It does only if the wait is for `last`, and the role is
        // one behind: then it waits there, and passes here.
        if !known && (time != last || !state.machine.knows(at.role, barrier, last - n)) {
            let first = last < n && time != last;
            return refuse(if first { self.before_the_first(at, &name) } else { self.lapped(at, barrier) });
        }
        Ok((barrier, time))
    }

    /// A poll: tests whether a phase is complete. Its result is used by a branch that waits for the same phase otherwise.
    pub(super) fn poll(&mut self, state: &mut State, at: At<'k>) -> Result<(), Fault> {
        let Some(named) = at.op.args.first().and_then(|v| self.objects.barrier(*v)) else {
            return refuse(self.several(at));
        };
        self.alive(state, at, named.object)?;
        state.machine.touched(at.role, at.id, named.object, None);
        let serial = state.roles[at.role].env.serial;
        if let (Ok((barrier, time)), Some(result)) = (self.phase_of(state, at), at.op.results.first()) {
            state.roles[at.role].marks.insert(*result, (Mark::Phase(barrier, time), serial));
        }
        Ok(())
    }

    /// A wait in a branch that is executed only if the poll of the phase failed: after the branch the phase is complete on both paths.
    pub(in crate::verify) fn peeked(
        &mut self,
        state: &mut State,
        role: usize,
        branch: &'k Op,
    ) -> Option<(OpId, &'k Op)> {
        let kernel = self.kernel;
        let asked = *branch.args.first()?;
        let inverted = kernel.def_op(asked).filter(|op| op.kind == OpKind::Unary(UnOp::Not));
        let (poll, missed) = inverted.map_or((asked, 1), |not| (not.args[0], 0));
        let (Mark::Phase(barrier, time), serial) = state.roles[role].marks.get(&poll).copied()? else { return None };
        let events = |arm: usize| -> Option<Vec<OpId>> {
            let ops = &kernel.block(*branch.regions.get(arm)?).ops;
            let ends = ops.last().is_some_and(|id| kernel.op(*id).kind == OpKind::Yield);
            ends.then(|| ops.iter().copied().filter(|id| self.events.contains(id)).collect())
        };
        let (waits, others) = (events(missed)?, events(1 - missed)?);
        // The other arm does nothing, and the poll was made in this iteration: then both arms end with the phase
        // complete.
        if !others.is_empty() || serial != state.roles[role].env.serial {
            return None;
        }
        for id in &waits {
            let wait = At { role, id: *id, op: kernel.op(*id) };
            let waits = wait.op.kind == OpKind::Nv(NvOp::WaitParity);
            if !waits || self.phase_of(state, wait).ok()? != (barrier, time) {
                return None;
            }
        }
        waits.first().map(|id| (*id, kernel.op(*id)))
    }

    /// The time that a parity stands for, modulo two rounds, relative to the clock of the barriers.
    fn wanted(&mut self, state: &mut State, at: At<'_>, (named, n): (Named, i64), name: &str) -> Result<i64, Fault> {
        let (time, still) = self.meant(state, at, (named, n), name)?;
        match state.facts.resolved(&time.minus(&state.machine.origins[named.object])).residue(2 * n) {
            // Index and parity repeat after 2 n times, so that only this remainder is known, and needed.
            Some(wanted) => Ok(wanted),
            None if still => refuse(wrong(at, constant(name))),
            None => refuse(wrong(at, format!("it could not be shown that this parity follows the phases of {name}"))),
        }
    }

    /// The time that a parity stands for, modulo two rounds, and whether the parity is a constant.
    pub(super) fn meant(
        &mut self,
        state: &mut State,
        at: At<'_>,
        (named, n): (Named, i64),
        name: &str,
    ) -> Result<(Linear, bool), Fault> {
        let wrong = |title: String| wrong(at, title);
        let parity = self.symbols.int(at.op.args[1], &state.roles[at.role].env, &mut state.facts);
        let stage = self.counter(state, at, (named, n), name)?;
        let still = parity.as_constant();
        if let Some(c) = still.filter(|c| !(0..2).contains(c)) {
            return refuse(wrong(format!("{c} is not a parity: it must be 0 or 1")));
        }
        let turns = match still {
            // A constant parity stands for one round of two. It is right for a barrier that completes one phase, and
            // refused where the clock advances.
            Some(c) => Linear::constant(c),
            None => match self.symbols.cyclic(&parity) {
                Some((of, 2)) => of,
                Some(_) | None => {
                    let title = format!(
                        "it could not be shown which phase of {name} this waits for: the parity is not known to be `(t / {n}) % 2` of a counter `t`"
                    );
                    return refuse(self.not_shown(at, title, &parity));
                }
            },
        };
        let time = match &stage {
            None => turns,
            // Element s in round r is time s + n · r.
            Some(stage) if stage.as_constant().is_some() => stage.plus(n, &turns),
            Some(_) if still.is_some() => {
                return refuse(wrong(constant(name)));
            }
            Some(stage) => {
                let Some((rest, by, whole)) = self.turns_of(&turns) else {
                    return refuse(wrong(format!(
                        "it could not be shown that this parity flips when the index of {name} wraps around"
                    )));
                };
                if by != n {
                    return refuse(wrong(format!(
                        "the parity flips every {by} steps, but the index of {name} repeats every {n}"
                    )));
                }
                let time = rest.plus(n, &whole);
                // The parity counts rounds of the counter `rest`. It belongs to the element of the index if both
                // counters are equal modulo n.
                if time.minus(stage).residue(n) != Some(0) {
                    return refuse(wrong(format!("the parity belongs to another element of {name} than the index")));
                }
                time
            }
        };
        Ok((time, still.is_some()))
    }

    /// `rest div by + whole`
    fn turns_of(&self, turns: &Linear) -> Option<(Linear, i64, Linear)> {
        turns.terms().find_map(|(atom, k)| {
            let (of, by) = self.symbols.quotient_of(atom).filter(|_| k == 1)?;
            Some((of.clone(), by, turns.minus(&Linear::atom(atom))))
        })
    }
}
