//! Loops of two stages whose first and last iteration stand apart.
//!
//! The steady loop of other modes is executed as often as the original one, and operations that run ahead must be harmless in an iteration
//! that does not exist. A matrix product of a warpgroup is not: it changes an accumulator, and waits for a stage that nobody fills. Here each
//! operation is executed for existing iterations only, whatever it does:
//!
//! ```text
//! for %i = lo to hi carry(%x = %init) {         %r = if lo < hi {
//!     A  stage(0, 0)                                A of iteration lo
//!     B  stage(1, 1)                                %n = for %i = lo + 1 to hi carry(..) {
//!     continue %y                       becomes         A of iteration %i
//! }                                                     B of iteration %i - 1
//!                                                   }
//!                                                   B of iteration hi - 1
//!                                                   yield %y of iteration hi - 1
//!                                               } else { yield %init }
//! ```
//!
//! Operations of stage 1 see what the loop carries at the beginning of their own iteration, as in the steady loop of other modes. Only the
//! counter is another one: that of the operations of stage 0. The last iteration begins with the counter that the loop carries to it. What nothing in
//! the steady loop or behind it uses is not carried.
//!
//! **Products in flight.** A product that adds to the result of the one before needs that only when it is complete itself, as the matrix units
//! compute one after the other. If the wait for a product comes behind the next product, this continues the one in flight, and the wait is
//! left out:
//!
//! ```text
//! for .. carry(%x = %init) {                         %d0 = mma %a, %b, %init                      of iteration lo
//!     %d = mma %a, %b, %x      stage(0, 0)           %e = for .. carry(%before = %d0) {
//!     %y = wait %d             stage(1, 1)   ─▶          %d = mma %a, %b, %before
//!     release                  stage(1, 2)               release                                  of the iteration before
//!     continue %y                                        continue %d
//! }                                                  }
//!                                                    %y = wait %e; release                        of iteration hi - 1
//! ```
//!
//! What releases the stage of a product waits for that product by itself ([`crate::complete`]).
//!
//! Deliberately absent: more than two stages, which would need a branch for each number of iterations below them; steps other than 1, for
//! which `lo + step` may wrap.

use super::early::Beyond;
use super::steady::{Made, Steady, is_renewable, rename};
use super::{Violation, is_left};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, ForKind, Kernel, NvOp, Op, OpId, OpKind, Pred, TtgOp, Ty, Value};
use crate::pipeline::edit::Edit;

/// The last stage of a peeled loop, and how it treats iterations that do not exist.
pub(super) fn stages(kernel: &Kernel, looped: OpId, stages: u16) -> Made<(u16, Beyond)> {
    let op = kernel.op(looped);
    let one = op.args.get(2).and_then(|step| kernel.int_constant(*step)) == Some(1);
    let message = if !matches!(op.kind, OpKind::For(ForKind::Sequential | ForKind::Pipelined)) {
        "the schedule peels an operation that is not a loop over consecutive numbers"
    } else if is_left(kernel, looped) {
        "the schedule peels a loop that is left early"
    } else if stages != 2 {
        "the schedule peels a loop that has not two stages"
    } else if !one {
        "the schedule peels a loop with other steps than 1"
    } else {
        return Ok((1, Beyond::Peeled));
    };
    Err(Violation { op: looped, message: message.to_owned() })
}

/// The operations of the last iteration, which are executed after the loop.
pub(super) struct Last {
    ops: Vec<OpId>,
    /// What they compute, by the results of the original operations.
    made: SortedMap<Value, Value>,
}

impl Steady {
    /// Copies the operations of the last stage, for the last iteration. They are copied before the originals are renamed; their operands are
    /// still those of the original body.
    pub(super) fn last_iteration(&mut self) -> Last {
        let ops: Vec<OpId> = self.ops.iter().copied().filter(|id| self.lead(*id) == 0).collect();
        let mut made = SortedMap::new();
        self.edit.copies(&ops, &mut made);
        Last { ops: std::mem::take(&mut self.edit.pending), made }
    }

    /// The values of the original body that are used after the loop.
    fn used_by(&self, last: &Last) -> Vec<Value> {
        let kernel = &self.edit.kernel;
        let used = last.ops.iter().flat_map(|id| kernel.operands_within(*id));
        let own: SortedSet<Value> = last.made.values().copied().collect();
        used.chain(self.next.iter().copied().filter(|v| !last.made.contains_key(v)))
            .filter(|v| !own.contains(v))
            .filter(|v| self.makes.contains_key(v) || self.carried.contains(v) || self.counter == Some(*v))
            .collect()
    }

    /// Whether the steady loop passes a result of an operation of the first stage on to the last iteration; otherwise it is computed again
    /// there.
    fn is_passed(&self, value: Value, makes: OpId) -> bool {
        let kernel = &self.edit.kernel;
        kernel.ty(value).is_carried() && !matches!(kernel.op(makes).kind, OpKind::Const(_))
    }

    /// The product in flight that an operation can add to instead of a value: the operation is a product, the value is what the loop carries
    /// as its accumulator, nothing else uses that or the result of the product before, and the wait for that comes later in this iteration of
    /// the steady loop. The wait is left out.
    pub(super) fn forward(&mut self, id: OpId, value: Value) -> Option<Value> {
        let was = self.was.get(&id)?;
        let is_sum =
            was.kind == OpKind::Nv(NvOp::Wgmma) && was.args.get(2) == Some(&value) && !was.args[..2].contains(&value);
        let place = self.carried.iter().position(|carried| *carried == value)?;
        let passed = *self.next.get(place)?;
        let wait = *self.makes.get(&passed)?;
        let is_wait = self.was.get(&wait).is_some_and(|op| op.kind == OpKind::Ttg(TtgOp::ComputeWait));
        let later = self.lead(id) == self.lead(wait) + 1 && !self.done.contains(&passed);
        let passed_on = self.next.iter().filter(|next| **next == passed || **next == value).count();
        if !is_sum || !is_wait || !later || self.beyond != Beyond::Peeled || passed_on != 1 {
            return None;
        }
        // Operands of those that were emitted are renamed, so that uses are counted in the body as it was. Nested operations are
        // not kept there; they may use neither value.
        let uses = |id: &OpId, value: Value| {
            let nested = !self.edit.kernel.op(*id).regions.is_empty();
            nested && self.edit.kernel.operands_within(*id).contains(&value)
                || self.was.get(id).is_some_and(|op| op.args.contains(&value))
        };
        let others = self.ops.iter().any(|user| uses(user, passed) || *user != id && uses(user, value));
        let in_flight = self.was.get(&wait)?.args.first().copied().filter(|_| !others)?;
        self.forwarded.insert(wait);
        Some(in_flight)
    }

    /// Takes out what the original loop carried and the steady loop does not.
    fn drop_others(&mut self) {
        let (looped, body) = (self.looped, self.body);
        for place in (0..self.carried.len()).rev().filter(|place| !self.kept.contains(place)) {
            let op = &mut self.edit.kernel.ops[looped.index()];
            op.args.remove(3 + place);
            op.results.remove(place);
            self.edit.kernel.blocks[body.index()].args.remove(1 + place);
        }
    }

    /// Lets the loop carry what the last iteration uses of the first stage.
    pub(super) fn carry_to(&mut self, last: &Last) -> Made<()> {
        let lo = self.edit.kernel.op(self.looped).args.first().copied();
        self.first.extend(self.counter.zip(lo).map(|(counter, lo)| ((counter, 0), lo)));
        let mut open = self.used_by(last);
        let mut seen = SortedSet::new();
        // This ends: each value is looked at once.
        while let Some(value) = open.pop() {
            self.kept.extend(self.carried.iter().position(|carried| *carried == value));
            if self.counter == Some(value) {
                self.slot(value, 0)?;
            }
            let Some(makes) = self.makes.get(&value).copied().filter(|_| seen.insert(value)) else { continue };
            if self.is_passed(value, makes) {
                self.slot(value, 0)?;
            } else {
                open.extend(self.was.get(&makes).map(|op| op.args.clone()).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// What a value of the original body is in the last iteration, behind the loop.
    fn behind(&mut self, value: Value, last: &Last) -> Made<Value> {
        if let Some(known) = last.made.get(&value).or_else(|| self.beyond_last.get(&(value, 0))) {
            return Ok(*known);
        }
        let slot = self.slots.iter().find(|slot| (slot.value, slot.lead) == (value, 0)).map(|slot| slot.after);
        if Some(value) == self.counter {
            return slot.map_or_else(|| self.violation(self.looped, "a counter that the loop does not carry"), Ok);
        }
        // The loop ends at the head of the last iteration: what it carries there is what that iteration begins with.
        if let Some(place) = self.carried.iter().position(|carried| *carried == value) {
            let after = self.edit.kernel.op(self.looped).results.get(place).copied();
            return after.map_or_else(|| self.violation(self.looped, "a loop that carries nothing"), Ok);
        }
        let Some(makes) = self.makes.get(&value).copied() else { return Ok(value) };
        if self.is_passed(value, makes) {
            return slot.map_or_else(
                || self.violation(makes, "a value of the last iteration that the loop does not carry"),
                Ok,
            );
        }
        if !is_renewable(&self.edit.kernel, makes, false) {
            return self.violation(makes, "a value of the last iteration that cannot be computed again");
        }
        // Operands are results of earlier operations of the body, so this recursion ends.
        let again = self.made_again(makes, 0, |steady, arg| steady.behind(arg, last))?;
        self.beyond_last.extend(again.into_iter().map(|(result, copy)| ((result, 0), copy)));
        Ok(self.beyond_last.get(&(value, 0)).copied().unwrap_or(value))
    }

    /// Puts the loop with its first and its last iteration into a branch, which is executed if there is an iteration at all.
    pub(super) fn apart(mut self, last: Last) -> Made<Edit> {
        let looped = self.looped;
        let Op { args, loc, planned, .. } = self.edit.kernel.op(looped).clone();
        let results: Vec<Value> =
            self.edit.kernel.op(looped).results.iter().copied().take(self.carried.len()).collect();
        let types: Vec<Ty> = results.iter().map(|v| self.edit.kernel.ty(*v)).collect();
        let [lo, hi, step, ..] = args[..] else { return self.violation(looped, "a loop without bounds") };
        // So far, only what is outside of the loop uses its results.
        let users: Vec<OpId> = {
            let uses = |op: &Op| op.args.iter().any(|v| results.contains(v));
            (0..self.edit.kernel.ops.len()).map(OpId::new).filter(|id| uses(self.edit.kernel.op(*id))).collect()
        };
        // The last iteration, whose operands are now those that the loop has carried to it.
        for id in &last.ops {
            let mut names = SortedMap::new();
            for value in self.edit.kernel.operands_within(*id) {
                names.insert(value, self.behind(value, &last)?);
            }
            rename(&mut self.edit.kernel, *id, &names);
            self.edit.pending.push(*id);
        }
        let given = self.next.clone().into_iter().map(|next| self.behind(next, &last)).collect::<Made<Vec<Value>>>()?;
        let rest = std::mem::take(&mut self.edit.pending);
        let before = std::mem::take(&mut self.outside);
        let initial = self.initial.clone();
        self.edit.loc = loc;
        let made = |edit: &mut Edit| {
            let some = edit.one(OpKind::Cmp(Pred::Lt), &[lo, hi])?;
            let then = edit.block(&[], |edit, _| {
                edit.pending.extend(before);
                // Does not wrap: `lo` is less than `hi`, and the step is 1.
                let second = edit.one(OpKind::Binary(BinOp::Add), &[lo, step])?;
                edit.kernel.ops.get_mut(looped.index())?.args[0] = second;
                edit.pending.push(looped);
                edit.pending.extend(rest);
                edit.raw(OpKind::Yield, &given, &[], Vec::new());
                Some(())
            })?;
            let otherwise = edit.block(&[], |edit, _| {
                edit.raw(OpKind::Yield, &initial, &[], Vec::new());
                Some(())
            })?;
            Some(edit.raw(OpKind::If, &[some], &types, vec![then, otherwise]))
        };
        let Some(given) = made(&mut self.edit) else {
            return self.violation(looped, "a loop whose counter is not a 32-bit integer");
        };
        let branch = self.edit.pending.last().copied().unwrap_or(looped);
        let before: Vec<OpId> = self.edit.pending.iter().copied().filter(|id| *id != branch).collect();
        self.plan_outside(&before, &[]);
        let kernel = &mut self.edit.kernel;
        let origin = kernel.op(looped).origin;
        // The branch takes the place of the loop, also in the schedule of a loop around it.
        kernel.ops[branch.index()].origin = origin;
        kernel.ops[branch.index()].planned = planned.and(kernel.op(looped).planned);
        kernel.ops[looped.index()].planned = None;
        results.iter().zip(&given).for_each(|(old, new)| self.edit.like(*new, *old));
        self.edit.put_before(self.around, looped);
        self.edit.take_out(self.around, looped);
        self.drop_others();
        let names: SortedMap<Value, Value> = results.into_iter().zip(given).collect();
        for id in users {
            let op = &mut self.edit.kernel.ops[id.index()];
            op.args.iter_mut().for_each(|arg| *arg = names.get(arg).copied().unwrap_or(*arg));
        }
        Ok(self.edit)
    }
}
