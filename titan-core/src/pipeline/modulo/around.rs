//! What is executed before and after a steady loop.
//!
//! The *prologue* executes operations of all stages but the last, in turns: turn t those of stage s for iteration t - s. The first turns,
//! which only fill stages, are a loop. After the loop, the stages beyond the last iteration are *drained*: turn t executes what is left of
//! the iteration t + lead beyond the last one, of the operations that wait for and release stages.

use super::early::{Beyond, Early, of_ring};
use super::runs::Run;
use super::steady::{Made, Steady, is_renewable};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Fill, ForKind, LocalOp, OpId, OpKind, Origin, Pred, TtgOp, Ty, Value};
use crate::pipeline::edit::Edit;

impl Steady {
    /// Executes the operations of all stages but the last for the iterations before those of the steady loop.
    pub(super) fn prologue(&mut self) -> Made<()> {
        // For stages 0, 1, 2: turn 0 executes stage 0 for iteration 0; turn 1 stage 0 for iteration 1 and stage 1 for
        // iteration 0. Then iteration 0 of the steady loop executes stage 0 for iteration 2, stage 1 for iteration 1
        // and stage 2 for iteration 0: each operation continues where the prologue left it. An operation of stage s is
        // executed in turns s to S - 1, thus for as many iterations as its lead.
        let rolled = self.rolled();
        if rolled > 0 {
            self.roll(rolled)?;
        }
        for turn in 0..self.last {
            for run in self.runs.clone() {
                let stage = self.last - self.lead(run.first());
                // A turn below the stage of an operation would be of a negative iteration. The first turns of stage 0
                // are those of the loop made above.
                let Some(iteration) = turn.checked_sub(stage).filter(|_| stage > 0 || turn >= rolled) else { continue };
                match run {
                    Run::One(id) => self.execute_one(id, iteration)?,
                    Run::Guarded(ops) => self.execute_guarded(&ops, iteration)?,
                }
            }
        }
        Ok(())
    }

    /// The number of turns of the prologue that one loop executes: those that only fill stages, if there are at least two.
    fn rolled(&self) -> u16 {
        let kernel = &self.edit.kernel;
        let stage = |id: &OpId| self.last - self.lead(*id);
        let of_first = |id: &&OpId| stage(id) == 0;
        let first: Vec<OpId> = self.ops.iter().filter(of_first).copied().collect();
        let others = self.ops.iter().map(stage).filter(|stage| *stage > 0);
        // In turns below the first stage that follows, only stage 0 is executed. A loop over these turns executes the
        // same as the turns written out.
        let next = others.min().unwrap_or(self.last).min(self.last);
        // The turn in which the next stage begins too, if it does so behind all fills.
        let place = |wanted: &dyn Fn(&OpId) -> bool| self.ops.iter().position(wanted);
        let last_fill = self.ops.iter().rposition(|id| stage(id) == 0);
        let behind = next < self.last && place(&|id| stage(id) == next) > last_fill;
        let turns = if behind { next + 1 } else { next };
        let fills = first.iter().any(|id| matches!(of_ring(kernel, *id), Some(Early::Fills(_))));
        let made: SortedSet<Value> = first.iter().flat_map(|id| kernel.op(*id).results.iter().copied()).collect();
        let used = |ops: &mut dyn Iterator<Item = OpId>| -> SortedSet<Value> {
            ops.flat_map(|id| kernel.operands_within(id)).collect()
        };
        // A loop carries nothing here: what it uses is computed in it, or computed again.
        let own = |v: &Value| {
            Some(*v) == self.counter || made.contains(v) || !self.carried.contains(v) && !self.makes.contains_key(v)
        };
        let mut uses = used(&mut first.iter().copied());
        let names = self.names_for(&first);
        uses.extend(used(&mut names.iter().copied()).iter().copied());
        let named: SortedSet<Value> = names.iter().flat_map(|id| kernel.op(*id).results.iter().copied()).collect();
        let own = uses.iter().all(|v| own(v) || named.contains(v));
        let elsewhere = used(&mut self.ops.iter().filter(|id| stage(id) > 0).copied().chain([self.end]));
        // Nor does it have results: what later stages use of the first turns would have to be one of them. Names and
        // numbers are no obstacle, they are computed again where they are needed.
        let kept = |id: &OpId| {
            !is_renewable(kernel, *id, false) && kernel.op(*id).results.iter().any(|v| elsewhere.contains(v))
        };
        if fills && own && turns >= 2 && !first.iter().any(kept) { turns } else { 0 }
    }

    /// The names and numbers of the body that operations use, and those that these use, in order.
    fn names_for(&self, ops: &[OpId]) -> Vec<OpId> {
        let kernel = &self.edit.kernel;
        let mut wanted: Vec<OpId> = ops.to_vec();
        let mut at = 0;
        // This ends: nothing is added twice.
        while let Some(id) = wanted.get(at).copied() {
            let makers = kernel.op(id).args.iter().filter_map(|v| self.makes.get(v));
            // What is already there is not added again, and a body has finitely many operations.
            let more = makers.filter(|id| !wanted.contains(id) && is_renewable(kernel, **id, false));
            wanted.extend(more.copied().collect::<SortedSet<OpId>>().iter());
            at += 1;
        }
        let added = wanted.get(ops.len()..).unwrap_or_default();
        self.edit.kernel.block(self.body).ops.iter().copied().filter(|id| added.contains(id)).collect()
    }

    /// The loop over the first turns of the prologue.
    fn roll(&mut self, turns: u16) -> Made<()> {
        let (looped, counter) = (self.looped, self.counter);
        let runs: Vec<Run> = self.runs.iter().filter(|run| self.lead(run.first()) == self.last).cloned().collect();
        let predicated: Vec<OpId> = self.ops.iter().copied().filter(|id| self.is_predicated(*id)).collect();
        let names_first = self.names_for(&runs.iter().flat_map(Run::all).collect::<Vec<OpId>>());
        let [lo, hi, step] = self.edit.kernel.op(looped).args[..3] else {
            return self.violation(looped, "a loop without bounds");
        };
        let made = |edit: &mut Edit| {
            let [zero, one, turns] = [edit.i32(0)?, edit.i32(1)?, edit.i32(i64::from(turns))?];
            let body = edit.block(&[Ty::I32], |edit, args| {
                let ahead = match edit.kernel.int_constant(step) {
                    Some(1) => args[0],
                    Some(_) | None => edit.one(OpKind::Binary(BinOp::Mul), &[args[0], step])?,
                };
                // Turn t fills for iteration t, whose counter is lo + t · step. The condition compares that counter
                // itself: there is no distance to subtract here, and the checker demands that this sum does not wrap
                // (`Frame::says_exists`).
                let at = edit.one(OpKind::Binary(BinOp::Add), &[lo, ahead])?;
                let exists = edit.one(OpKind::Cmp(Pred::Lt), &[at, hi])?;
                let mut names: SortedMap<Value, Value> = counter.map(|counter| (counter, at)).into_iter().collect();
                edit.copies(&names_first, &mut names);
                for run in runs {
                    match run {
                        Run::One(id) => {
                            edit.copies(&[id], &mut names);
                            let copy = edit.pending.last().copied();
                            copy.filter(|_| predicated.contains(&id))
                                .into_iter()
                                .for_each(|copy| predicate(edit, copy, exists));
                        }
                        Run::Guarded(ops) => {
                            // Copies go into the branch. `names` keeps what they define, which no later copy uses:
                            // results of guarded operations are used in their branch only (`runs`).
                            let outer = std::mem::take(&mut edit.pending);
                            edit.copies(&ops, &mut names);
                            let inner = std::mem::replace(&mut edit.pending, outer);
                            edit.guard(exists, inner);
                        }
                    }
                }
                edit.raw(OpKind::Continue(0), &[], &[], Vec::new());
                Some(())
            })?;
            edit.raw(OpKind::For(ForKind::Sequential), &[zero, turns, one], &[], vec![body]);
            Some(())
        };
        made(&mut self.edit).map_or_else(|| self.violation(looped, "a loop whose counter is not a 32-bit integer"), Ok)
    }

    /// Whether an iteration of the prologue exists.
    fn exists_before(&mut self, iteration: u16) -> Made<Value> {
        let [lo, hi] = self.edit.kernel.op(self.looped).args[..2] else {
            return self.violation(self.looped, "a loop without bounds");
        };
        let at = if iteration == 0 { lo } else { self.steps_from(lo, i32::from(iteration))? };
        let exists = self.edit.one(OpKind::Cmp(Pred::Lt), &[at, hi]);
        exists.map_or_else(|| self.violation(self.looped, "a loop whose counter is not a 32-bit integer"), Ok)
    }

    fn execute_one(&mut self, id: OpId, iteration: u16) -> Made<()> {
        let exists = if self.is_predicated(id) { Some(self.exists_before(iteration)?) } else { None };
        // The condition first: the copy must be the last pending operation, since that is the one which gets the
        // condition.
        self.execute(id, iteration)?;
        if let (Some(exists), Some(copy)) = (exists, self.edit.pending.last().copied()) {
            predicate(&mut self.edit, copy, exists);
        }
        Ok(())
    }

    /// Copies operations that are executed if the iteration exists. What they compute is known in their branch only.
    fn execute_guarded(&mut self, ops: &[OpId], iteration: u16) -> Made<()> {
        let exists = self.exists_before(iteration)?;
        let outer = std::mem::take(&mut self.edit.pending);
        let known = self.first.clone();
        for id in ops {
            self.execute(*id, iteration)?;
        }
        // As in the steady loop, what the branch computes has no value behind it.
        self.first = known;
        let inner = std::mem::replace(&mut self.edit.pending, outer);
        self.edit.guard(exists, inner);
        Ok(())
    }

    /// What is left of iterations beyond the last one: operations on drained rings, each with the number of the iteration beyond, in the order
    /// of their execution.
    fn left(&self) -> Vec<(OpId, u16)> {
        let rings = match &self.beyond {
            Beyond::Drained(rings) => rings,
            Beyond::Guarded | Beyond::Peeled => return Vec::new(),
        };
        let mut left = Vec::new();
        // For a ring whose fills lead by 2, waits by 1 and releases by 0, N iterations have filled N + 2 times, waited
        // N + 1 times and released N times. Turn 0 waits for N + 1 and releases N, turn 1 releases N + 1: now each was
        // executed N + 2 times, and the clocks of the ring agree. The number that is noted is the one beyond N.
        for turn in 0..self.last {
            for id in &self.ops {
                let (Some(Early::Fills(pipe) | Early::Reads(pipe)), lead) =
                    (of_ring(&self.edit.kernel, *id), self.lead(*id))
                else {
                    continue;
                };
                // Those that run further ahead have been executed for this iteration in the loop.
                left.extend(rings.get(&pipe).filter(|most| turn + lead < **most).map(|_| (*id, turn + lead)));
            }
        }
        left
    }

    /// Lets the loop carry what is used after it of iterations beyond the last one.
    pub(super) fn carry_beyond(&mut self) -> Made<()> {
        for (id, beyond) in self.left() {
            for value in self.was.get(&id).map(|op| op.args.clone()).unwrap_or_default() {
                // The loop has executed it for iteration N + beyond, ahead of its end. What it carries for (v, beyond)
                // is that value when it ends, since an instance (v, c) at the head of iteration N belongs to iteration
                // N + c.
                if self.makes.get(&value).is_some_and(|makes| self.lead(*makes) > beyond) {
                    self.slot(value, beyond)?;
                }
            }
        }
        Ok(())
    }

    /// Executes after the loop what is left of iterations beyond the last one.
    pub(super) fn drain(&mut self) -> Made<()> {
        for (id, beyond) in self.left() {
            let Some(was) = self.was.get(&id).cloned() else { continue };
            let mut names = Vec::new();
            for value in was.args {
                // Three cases: from outside of the loop; computed in the loop, and carried out of it; computed here in
                // an earlier turn, or earlier in this one. A value that is carried by the original loop is none of
                // them, as it would belong to an iteration that passes nothing on.
                let known = match self.makes.get(&value).map(|makes| self.lead(*makes) > beyond) {
                    None => Some(value).filter(|v| !self.carried.contains(v) && Some(*v) != self.counter),
                    Some(true) => {
                        let slot = self.slots.iter().find(|slot| (slot.value, slot.lead) == (value, beyond));
                        slot.map(|slot| slot.after)
                    }
                    Some(false) => self.beyond_last.get(&(value, beyond)).copied(),
                };
                names.push(
                    known.map_or_else(
                        || self.violation(id, "a stage beyond the last one that cannot be released"),
                        Ok,
                    )?,
                );
            }
            let types: Vec<Ty> = was.results.iter().map(|v| self.edit.kernel.ty(*v)).collect();
            self.edit.loc = was.loc;
            self.edit.origin = self.edit.kernel.op(id).origin.map(|origin| Origin { ahead: beyond, ..origin });
            let made = self.edit.raw(was.kind, &names, &types, Vec::new());
            self.edit.origin = None;
            self.beyond_last.extend(was.results.iter().map(|v| (*v, beyond)).zip(made));
        }
        Ok(())
    }

    /// Copies an operation for an iteration of the prologue.
    fn execute(&mut self, id: OpId, iteration: u16) -> Made<()> {
        // The iteration is a constant here, so each operand is the instance of that iteration and no value is relative
        // to a counter.
        let mut names = self.names(id, |steady, value| steady.before(value, iteration))?;
        self.edit.copies(&[id], &mut names);
        // An operation that came out of the prologue of a nested loop says already whose it is. Its origin is the
        // nested one and stays.
        if let (Some(copy), Some(Origin { op, .. })) = (self.edit.pending.last(), self.edit.kernel.op(id).origin)
            && op == id
        {
            self.edit.kernel.ops[copy.index()].origin = Some(Origin { op, ahead: iteration });
        }
        for result in self.edit.kernel.op(id).results.clone() {
            let copy = names.get(&result).copied().unwrap_or(result);
            self.first.insert((result, iteration), copy);
        }
        Ok(())
    }

    /// The name of a value in the prologue.
    fn before(&mut self, value: Value, iteration: u16) -> Made<Value> {
        if Some(value) == self.counter {
            let lo = self.edit.kernel.op(self.looped).args.first().copied().unwrap_or(value);
            return if iteration == 0 { Ok(lo) } else { self.steps_from(lo, i32::from(iteration)) };
        }
        if let Some(place) = self.carried.iter().position(|carried| *carried == value) {
            let (initial, next) = (self.initial.get(place).copied(), self.next.get(place).copied());
            return match (iteration.checked_sub(1), initial, next) {
                // This ends like `at`: the iteration falls along carried values, and with equal iterations the order of
                // the body. What was found is kept in `first`, so each operation is copied once for an iteration.
                (Some(earlier), _, Some(next)) => self.before(next, earlier),
                (_, Some(initial), _) => Ok(initial),
                (_, None, _) => self.violation(self.looped, "a loop that carries nothing"),
            };
        }
        let Some(makes) = self.makes.get(&value).copied() else { return Ok(value) };
        if let Some(known) = self.first.get(&(value, iteration)) {
            return Ok(*known);
        }
        if !is_renewable(&self.edit.kernel, makes, false) {
            return self.violation(makes, "the schedule executes this operation before one whose result it uses");
        }
        self.execute(makes, iteration)?;
        Ok(self.first.get(&(value, iteration)).copied().unwrap_or(value))
    }
}

/// Gives a copy the condition under which it copies, and does not write zeros.
pub(super) fn predicate(edit: &mut Edit, id: OpId, exists: Value) {
    let op = &mut edit.kernel.ops[id.index()];
    if let OpKind::Ttg(TtgOp::AsyncProduce { skipped, .. }) = &mut op.kind {
        *skipped = Some(Fill::Zero);
        op.args.push(exists);
    } else if let OpKind::Local(LocalOp::Fetch { guarded }) = &mut op.kind {
        *guarded = true;
        op.args.push(exists);
    }
}
