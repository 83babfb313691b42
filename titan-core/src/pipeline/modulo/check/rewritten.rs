//! Executes what was made of one loop on labels: its prologue, its steady loop, and what is executed after it.

use super::frame::Frame;
use super::labels::{At, Label, is_computed};
use super::touches::{Object, ring_of};
use super::{Check, Checked, Place, Unit, alike, refuse, refuse_exchange};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Family, Fill, Flow, ForKind, Kernel, LocalOp, Op, OpId, OpKind, Pipe, TtgOp, Value};

/// The loop that is being compared, without what changes while it is executed.
pub(super) struct Loop<'k> {
    pub(super) looped: OpId,
    steady: OpId,
    /// The operations of the steady loop's body, without its terminator.
    made: &'k [OpId],
    made_end: OpId,
    /// The arguments of this body: the counter, and what is carried.
    counter: &'k [Value],
    inside: &'k [Value],
    old_counter: Option<Value>,
    /// The body of the loop before.
    pub(super) ops: Vec<OpId>,
    pub(super) end: OpId,
    /// How far ahead of the steady loop each operation is executed.
    pub(super) leads: SortedMap<OpId, i32>,
    /// What the steady loop carries: the value of the loop before, and how many iterations ahead.
    pub(super) meanings: Vec<(Value, i32)>,
    pub(super) reach: i32,
    /// How many iterations the counter of the steady loop is ahead of its own.
    pub(super) ahead: i32,
}

impl<'k> Check<'k> {
    /// The loop that is being compared.
    pub(super) fn frame(&mut self, looped: OpId) -> Checked<&mut Frame> {
        self.frames.last_mut().map_or_else(|| refuse(looped, "it is not executed"), Ok)
    }

    /// Finds what the values of the loop are that is being compared, up to an iteration.
    pub(super) fn find(&mut self, upto: At) {
        let Some(mut frame) = self.frames.pop() else { return };
        let outside = |value: Value| {
            let inner = || self.frames.iter().rev().find_map(|frame| frame.get(value, frame.at));
            self.old.get(&value).copied().or_else(inner)
        };
        frame.find(self.before, &mut self.labels, upto, &outside);
        self.frames.push(frame);
    }

    pub(super) fn rewritten(&mut self, looped: OpId, unit: &Unit<'_>, body: Block) -> Checked {
        let first = Place { turn: At { relative: false, n: -1 }, leads: None, beyond: false, guard: None };
        // Iteration -1 stands for the time before the loop: guards are compared as conditions before it, and all is
        // ahead.
        self.execute(looped, unit.prologue, first)?;
        // Leads are not believed: they are how often the prologue has executed each operation, which was counted.
        let made = self.steady(looped, unit, body)?;
        let bounds = usize::from(self.before.op(looped).kind != OpKind::Loop) * 3;
        let entered = self.after.op(unit.main).args.get(bounds..).unwrap_or_default();
        let mut state = entered.iter().map(|v| self.new_of(looped, *v)).collect::<Checked<Vec<Label>>>()?;
        let passes = i32::try_from(self.frame(looped)?.passes()).unwrap_or(0);
        let continues = self.before.op(made.end).kind == OpKind::Continue(0);
        // A loop that does not continue is left in its first iteration. No well-formed kernel has more stages than fit.
        let least = self.recorded.unwrap_or(0);
        // Why so many iterations show every exchange is explained in the header, and is part of theorem 15 of
        // docs/protocol.md.
        let iterations = if continues { (2 * made.most() + 3 + passes).max(least) } else { 1 };
        for n in 0..iterations {
            self.iterate(&made, At { relative: false, n }, &mut state)?;
        }
        if !continues {
            return if unit.rest.is_empty() {
                Ok(())
            } else {
                refuse(looped, "operations that nothing asks for follow it")
            };
        }
        // The loop ends behind this iteration or behind any other. Here the order and the balance of what follows are
        // compared, below its operands for a number of iterations that is any number.
        self.leave(&made, unit.rest, At { relative: false, n: iterations }, &state)?;
        self.balanced(&made, iterations)?;
        self.for_any(&made, |check, any, state| check.leave(&made, unit.rest, any, state))
    }

    /// The step of the induction: from the head of an iteration that is any number, the loop ends as `ends` says, or it goes on to the head of the next
    /// one.
    pub(super) fn for_any(
        &mut self,
        made: &Loop<'k>,
        ends: impl FnOnce(&mut Self, At, &[Label]) -> Checked,
    ) -> Checked {
        let looped = made.looped;
        // What is carried is what the meanings say, whatever the number of the iteration is: in the last one, and in any other.
        let any = At { relative: true, n: 0 };
        self.find(any.later(made.reach));
        let frame = self.frame(looped)?;
        // The hypothesis of the induction: at the head of iteration i, each place holds what it is stated to hold. The
        // base is the check of the first iterations. From here on i has no other property than to be a number.
        let state_of = |frame: &Frame| made.meanings.iter().map(|(v, c)| frame.get(*v, any.later(*c))).collect();
        let Some(mut state): Option<Vec<Label>> = state_of(frame) else { return refuse(looped, "it is not executed") };
        // Counts are relative to i as well: behind iteration i - 1, an operation of lead a was executed for all
        // iterations below i + a.
        frame.counts = made.leads.clone();
        ends(self, any, &state)?;
        // What follows the loop has been counted, too. The next iteration begins with the counts of the head again:
        // either the loop ends or it goes on.
        self.frame(looped)?.counts = made.leads.clone();
        self.iterate(made, any, &mut state)?;
        let next = any.later(1);
        self.find(next.later(made.reach));
        // What is passed on is what the places are stated to hold one iteration later.
        if !meant(self.frame(looped)?, next, &made.meanings, &state) {
            return refuse(looped, "it carries a value that belongs to another iteration");
        }
        Ok(())
    }

    /// What is known of a loop when its prologue has been executed.
    pub(super) fn steady(&mut self, looped: OpId, unit: &Unit<'_>, body: Block) -> Checked<Loop<'k>> {
        let (before, after) = (self.before, self.after);
        let frame = self.frame(looped)?;
        let (leads, carried, ops, end) = (frame.counts.clone(), frame.carried.clone(), frame.ops.clone(), frame.end);
        let most = leads.values().copied().max().unwrap_or(0);
        let Some((made_end, made)) = after.block(body).ops.split_last() else {
            return refuse(looped, "it has no body");
        };
        // Iteration j of the loop before has the counter lo + j · step and exists if that is below the upper bound.
        // Both are false for distributed loops and for loops that are left, so that nothing could be said of an
        // operation that runs ahead.
        let several = most > 0 && (is_distributed(before, looped) || ops.iter().any(|id| leaves(before, *id, 0)));
        if several || most > 0 && before.op(end).kind != OpKind::Continue(0) {
            return refuse(looped, "its iterations are not known in advance, so that none can run ahead");
        }
        let args = &after.block(body).args;
        let is_for = usize::from(before.op(looped).kind != OpKind::Loop);
        let (counter, inside) = args.split_at(is_for.min(args.len()));
        let peeled = self.frame(looped)?.peeled;
        let meaning = |place| {
            let end = after.op(*made_end);
            if peeled {
                self.meaning_apart(inside, (end, unit.main), place)
            } else {
                self.meaning(inside, end, place, &carried)
            }
        };
        let meanings: Option<Vec<(Value, i32)>> = (0..inside.len()).map(meaning).collect();
        let entered = after.op(unit.main).args.len().checked_sub(3 * is_for);
        // A place with no initial value, or an initial value with no place, would make `zip` skip something.
        let Some(meanings) = meanings.filter(|all| Some(all.len()) == entered) else {
            return refuse(looped, "it carries a value that belongs to no iteration");
        };
        // What carries a value is where the value is, inside of the loop and behind it. The results of a loop that is left
        // are what it is left with, not what it carries: `expanded` has compared them with those before, and there are
        // no others.
        let meant: Vec<Value> = meanings.iter().map(|(value, _)| *value).collect();
        let results = &after.op(unit.main).results;
        let alike_behind = if before.op(looped).kind == OpKind::Loop {
            results.len() == before.op(looped).results.len()
        } else {
            alike((before, &meant), (after, results))
        };
        if !alike_behind || !alike((before, &meant), (after, inside)) {
            return refuse(looped, "it carries a value in another layout");
        }
        // The farthest iteration of which labels are needed: that of the operation, or of the carried value, that is
        // furthest ahead.
        let reach = meanings.iter().map(|(_, ahead)| *ahead).fold(most, i32::max);
        let old_body = before.op(looped).regions.first();
        let old_counter = old_body.and_then(|body| before.block(*body).args.first()).copied();
        let (steady, made_end) = (unit.main, *made_end);
        Ok(Loop {
            looped,
            steady,
            made,
            made_end,
            counter,
            inside,
            old_counter,
            ops,
            end,
            leads,
            meanings,
            reach,
            ahead: 0,
        })
    }

    /// Executes the body of the steady loop once. `state` are the labels of what it carries, before and after.
    pub(super) fn iterate(&mut self, made: &Loop<'k>, turn: At, state: &mut Vec<Label>) -> Checked {
        let (before, after) = (self.before, self.after);
        self.find(turn.later(made.reach));
        let frame = self.frame(made.looped)?;
        frame.at = turn;
        let at_begin = made.old_counter.and_then(|v| frame.get(v, turn.later(made.ahead)));
        // Compared at the head of every iteration that is executed, so that the labels of `state` may be used for what
        // they are stated to be.
        if !meant(frame, turn, &made.meanings, state) {
            return refuse(made.looped, "it carries a value that belongs to another iteration");
        }
        self.new.extend(made.counter.iter().zip(at_begin).map(|(v, label)| (*v, label)));
        self.new.extend(made.inside.iter().copied().zip(state.iter().copied()));
        self.execute(made.looped, made.made, Place { turn, leads: Some(&made.leads), beyond: false, guard: None })?;
        let frame = self.frame(made.looped)?;
        frame.at = turn;
        // Executed exactly once more in this iteration: after iteration n, an operation of lead a has been executed a +
        // n + 1 times. Twice, or not at all, gives another count. Terms may be executed any number of times.
        let once = |id: &OpId| frame.counts.get(id) == made.leads.get(id).map(|lead| lead + 1 + turn.n).as_ref();
        if let Some(id) = made.ops.iter().find(|id| !is_computed(before, before.op(**id)) && !once(id)) {
            return refuse(*id, "it is not executed once in each iteration");
        }
        let (was, is) = (before.op(made.end), after.op(made.made_end));
        // What a peeled loop passes on is compared with the meanings of its places.
        let fewer = is.args.len() < was.args.len() && !frame.peeled;
        if was.kind != is.kind || fewer {
            return refuse(made.end, "another operation is executed instead");
        }
        if !frame.peeled {
            self.operands(made.end, &was.args, &is.args)?;
        }
        self.touch(made.end, made.made_end, false)?;
        *state = is.args.iter().map(|v| self.new_of(made.end, *v)).collect::<Checked<_>>()?;
        Ok(())
    }

    /// Executes what follows the loop, which ends before iteration `turn`.
    pub(super) fn leave(&mut self, made: &Loop<'k>, rest: &[OpId], turn: At, state: &[Label]) -> Checked {
        self.find(turn.later(made.reach));
        // Those of a loop that is left are not what it carries, so that nothing here may use them.
        if self.before.op(made.looped).kind != OpKind::Loop {
            let results = &self.after.op(made.steady).results;
            self.new.extend(results.iter().copied().zip(state.iter().copied()));
        }
        self.execute(made.looped, rest, Place { turn, leads: Some(&made.leads), beyond: true, guard: None })
    }

    /// Whether all operations on a ring have been executed for the same iterations, if any is executed for some that do not exist.
    fn balanced(&mut self, made: &Loop<'k>, iterations: i32) -> Checked {
        let before = self.before;
        let frame = self.frame(made.looped)?;
        let mut counts: SortedMap<Pipe, i32> = SortedMap::new();
        for (id, count) in frame.counts.iter() {
            if let Some(pipe) = ring_of(before, before.op(*id)).filter(|_| !is_computed(before, before.op(*id))) {
                let guarded = frame.guarded.contains(id);
                // Where the iteration does not exist, it is executed nowhere.
                // Fills with lead 2 that are guarded are executed N times and not N + 2: a guard leaves out exactly
                // those iterations that do not exist, as `once` has compared its condition. Waits of the same ring that
                // are executed N + 1 times then differ, and are refused.
                let count = if guarded { iterations } else { *count };
                if guarded && frame.unguarded.contains(id) || *counts.entry(pipe).or_insert(count) != count {
                    return refuse(
                        *id,
                        "the ring's other operations are executed for other iterations that do not exist",
                    );
                }
            }
        }
        let beyond: SortedSet<Pipe> =
            counts.iter().filter(|(_, count)| **count != iterations).map(|(pipe, _)| *pipe).collect();
        let fills = |pipe: Pipe| {
            made.ops.iter().any(|id| {
                matches!(before.op(*id).kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }))
                    && ring_of(before, before.op(*id)) == Some(pipe)
            })
        };
        // All are executed equally often, but nothing of this loop fills what the waits beyond the last iteration wait
        // for.
        if !beyond.iter().all(|pipe| fills(*pipe)) {
            return refuse(made.looped, "stages are awaited for iterations that do not exist, which nothing fills");
        }
        for id in &made.ops {
            let mut nested = Vec::new();
            before.op(*id).regions.iter().for_each(|block| before.walk_block(*block, &mut |id, _| nested.push(id)));
            let of_those = |id: &&OpId| ring_of(before, before.op(**id)).is_some_and(|pipe| beyond.contains(&pipe));
            if let Some(id) = nested.iter().find(of_those) {
                return refuse(*id, "the ring's other operations are executed for iterations that do not exist");
            }
        }
        Ok(())
    }

    /// Executes operations of the kernel after.
    pub(super) fn execute(&mut self, looped: OpId, made: &[OpId], place: Place<'_>) -> Checked {
        let after = self.after;
        let mut rest = made;
        while let Some((id, others)) = rest.split_first() {
            let op = after.op(*id);
            if is_computed(after, op) {
                // It has no effect and a result for all operands, so it needs no comparison here: whatever uses the
                // result is compared, and what nothing uses shows nowhere.
                let args: Checked<Vec<Label>> = op.args.iter().map(|v| self.new_of(looped, *v)).collect();
                let results = self.labels.computed(after, op, args?);
                self.new.extend(op.results.iter().copied().zip(results));
                rest = others;
            } else if let Some(old) = self.part_of(looped, *id) {
                let Some(unit) = self.unit(old, rest) else { return refuse(old, "it is not executed") };
                self.once(old, &unit, place)?;
                // Each round takes at least one operation off `rest`.
                rest = unit.others;
            } else {
                self.made_for_schedule(looped, *id, place)?;
                rest = others;
            }
        }
        Ok(())
    }

    /// The operation of a loop's body that an operation of the kernel after is executed for, if it is not a branch or a loop that was made for
    /// the schedule of this loop. One that was made for a nested loop belongs to that.
    fn part_of(&self, looped: OpId, id: OpId) -> Option<OpId> {
        if let Some(origin) = self.origin(id) {
            return self.of_body(looped, origin);
        }
        let mut inside = Vec::new();
        self.after.op(id).regions.iter().for_each(|block| self.after.walk_block(*block, &mut |id, _| inside.push(id)));
        let first = inside.into_iter().find_map(|id| self.origin(id))?;
        self.of_body(looped, first).filter(|old| self.is_scheduled(*old))
    }

    /// Executes a branch or a loop that the rewriter made: a branch that guards operations, or a loop over the first turns of a prologue.
    fn made_for_schedule(&mut self, looped: OpId, id: OpId, place: Place<'_>) -> Checked {
        let after = self.after;
        let op = after.op(id);
        let unknown = || refuse(looped, "an operation is executed that is not of its body");
        let inner = |block: &Block, end: &OpKind| {
            let (last, ops) = after.block(*block).ops.split_last()?;
            (after.op(*last).kind == *end && after.op(*last).args.is_empty()).then_some(ops)
        };
        match (&op.kind, &op.regions[..], &op.args[..]) {
            (OpKind::If, [then, otherwise], [condition]) if place.guard.is_none() && op.results.is_empty() => {
                let (Some(ops), Some([])) = (inner(then, &OpKind::Yield), inner(otherwise, &OpKind::Yield)) else {
                    return unknown();
                };
                let guard = Some(self.new_of(looped, *condition)?);
                self.execute(looped, ops, Place { guard, ..place })
            }
            (OpKind::For(ForKind::Sequential), [body], [lo, hi, step]) => {
                let (Some(ops), [counter]) = (inner(body, &OpKind::Continue(0)), &after.block(*body).args[..]) else {
                    return unknown();
                };
                let bounds: Checked<Vec<Label>> = [lo, hi, step].iter().map(|v| self.new_of(looped, **v)).collect();
                let known: Option<Vec<i32>> = bounds?.into_iter().map(|label| self.labels.known(label)).collect();
                // The number of turns is known and bounded, so the loop can be executed as if it were written out, and
                // that ends.
                let Some([0, turns @ 0..=MOST, 1]) = known.as_deref() else { return unknown() };
                for turn in 0..*turns {
                    let label = self.labels.constant(turn);
                    self.new.insert(*counter, label);
                    self.execute(looped, ops, place)?;
                }
                Ok(())
            }
            (_, _, _) => unknown(),
        }
    }

    /// The operation of a loop's body that an operation belongs to.
    pub(super) fn of_body(&self, looped: OpId, mut id: OpId) -> Option<OpId> {
        loop {
            // This ends: the loop around an operation is outside of it.
            match self.homes.get(&id) {
                Some(home) if *home == looped => return Some(id),
                Some(home) => id = *home,
                None => return None,
            }
        }
    }

    /// The next execution of an operation of the body.
    fn once(&mut self, old: OpId, unit: &Unit<'_>, place: Place<'_>) -> Checked {
        let (before, after) = (self.before, self.after);
        let Some(frame) = self.frames.last_mut() else { return refuse(old, "it is not executed") };
        let Some(count) = frame.counts.get_mut(&old) else { return refuse(old, "it is not executed") };
        // While the number of the iteration is relative, executions are counted from that number on.
        let at = At { n: *count, ..place.turn };
        *count += 1;
        frame.at = at;
        let says_exists =
            |condition, frame: &Frame, labels: &mut _| frame.says_exists(condition, place.turn, at, labels);
        if let Some(condition) = place.guard {
            if frame.peeled || place.beyond || !says_exists(condition, frame, &mut self.labels) {
                return refuse(old, "it is executed under another condition than that its iteration exists");
            }
            // The k-th execution of an operation must be of iteration k, and its condition must say that iteration k
            // exists. As the conditions of all iterations below are implied, no execution is left out between two that
            // are executed.
            frame.guarded.insert(old);
        }
        // In the steady loop, an operation of lead 0 belongs to an iteration that exists. All others may be beyond the
        // last one, unless a guard says no.
        let ahead = place.leads.is_none_or(|leads| leads.get(&old).is_none_or(|lead| *lead > 0));
        frame.phantom = !frame.peeled && place.guard.is_none() && (ahead || place.beyond);
        if frame.phantom {
            frame.unguarded.insert(old);
        }
        let turn = frame.ops.iter().position(|id| *id == old).unwrap_or(0);
        frame.now = (!at.relative).then_some((at.n, turn));
        // Numbers of a ring advance by the same amount in each iteration, so that the object of iteration n is known
        // without executing the ring.
        if let Some((object, changes, by)) = frame.numbers.get(&old).copied()
            && !frame.touch(object.later(by * at.n), changes)
        {
            return refuse_exchange(old, object);
        }
        if leaves(before, old, 0) && !frame.touch(Object::Everything, true) {
            return refuse(old, "the schedule exchanges the end of the loop with an operation that has an effect");
        }
        self.find(at);
        let (was, is) = (before.op(old), after.op(unit.main));
        if self.is_scheduled(old) {
            self.expanded(old, unit)?;
        } else if let Some((condition, args)) = predicate(&was.kind, is, was.args.len()) {
            let condition = self.new_of(old, condition)?;
            let Some(frame) = self.frames.last() else { return Ok(()) };
            if frame.peeled || place.beyond || !says_exists(condition, frame, &mut self.labels) {
                return refuse(old, "it copies under another condition than that its iteration exists");
            }
            self.operands(old, &was.args, args)?;
            self.touch(old, unit.main, true)?;
        } else {
            self.same(old, unit.main, may_be_beyond(&was.kind))?;
        }
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        // The execution ends here: what the terminator touches has no turn in this loop.
        (frame.at, frame.now, frame.phantom) = (at, None, false);
        let labels: Vec<Option<Label>> = was.results.iter().map(|v| frame.get(*v, at)).collect();
        // The results now stand for those of iteration `at` of the loop before. Results that the loop before does not
        // have get no label, and their uses are refused.
        for (new, label) in is.results.iter().zip(labels) {
            self.new.extend(label.map(|label| (*new, label)));
        }
        Ok(())
    }
}

impl Loop<'_> {
    /// The greatest lead.
    pub(super) fn most(&self) -> i32 {
        self.leads.values().copied().max().unwrap_or(0)
    }
}

/// The greatest number of turns that a loop before the steady loop may execute.
const MOST: i32 = 64;

/// The condition of a copy that had none before, and zero-fills its stage if it is false, with the other operands; and that of a fetch, which
/// reads nothing if it is false.
fn predicate<'k>(was: &OpKind, is: &'k Op, operands: usize) -> Option<(Value, &'k [Value])> {
    let predicated = if let OpKind::Ttg(TtgOp::AsyncProduce { bytes, proxy, skipped: None }) = was {
        OpKind::Ttg(TtgOp::AsyncProduce { bytes: *bytes, proxy: *proxy, skipped: Some(Fill::Zero) })
    } else if *was == OpKind::Local(LocalOp::Fetch { guarded: false }) {
        OpKind::Local(LocalOp::Fetch { guarded: true })
    } else {
        return None;
    };
    let (condition, args) = is.args.split_last()?;
    (is.kind == predicated && args.len() == operands).then_some((*condition, args))
}

/// Whether an operation may be executed for stages beyond the last one, if all operations on the ring are.
fn may_be_beyond(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Ttg(
            TtgOp::Acquire(_) | TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Release
        )
    )
}

/// Whether these are the labels of what a loop carries at the beginning of an iteration.
fn meant(frame: &Frame, turn: At, meanings: &[(Value, i32)], state: &[Label]) -> bool {
    let mut all = meanings.iter().zip(state);
    all.all(|((value, ahead), label)| *ahead >= 0 && frame.get(*value, turn.later(*ahead)) == Some(*label))
}

/// Whether the iterations of a loop are not those between its bounds, one after the other.
fn is_distributed(kernel: &Kernel, looped: OpId) -> bool {
    // A `loop` has no bounds.
    !matches!(kernel.op(looped).kind, OpKind::For(ForKind::Sequential | ForKind::Pipelined))
}

/// Whether an operation of a body, or one nested in it within so many further loops, ends the iteration or the loop.
pub(super) fn leaves(kernel: &Kernel, id: OpId, loops: u32) -> bool {
    let op = kernel.op(id);
    let Family::Flow(flow) = op.kind.family() else { return false };
    let inner = match flow {
        Flow::For(_) | Flow::Loop => loops + 1,
        Flow::If => loops,
        Flow::Break(level) | Flow::Continue(level) => return level >= loops,
        Flow::Yield => return false,
        Flow::Return => return true,
    };
    let nested = op.regions.iter().flat_map(|block| &kernel.block(*block).ops);
    nested.into_iter().any(|id| leaves(kernel, *id, inner))
}
