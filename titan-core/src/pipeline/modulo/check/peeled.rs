//! Compares a loop with what is executed for it if its first and its last iteration stand apart.
//!
//! ```text
//! %r = if lo < hi {
//!     prologue
//!     %s = for lo + 1 to hi { .. }          the steady loop
//!     last
//!     yield ..
//! } else { yield the initial values }
//! ```
//!
//! With N = hi - lo iterations and N ≥ 1, the steady loop is executed N - 1 times. All is as for other loops ([`super::rewritten`]) but:
//!
//! * The counter of the steady loop is one step later: in its iteration n it is that of iteration n + 1.
//! * Operations run ahead by one iteration at most. In iteration n of the steady loop, n < N - 1, they belong to iteration n + 1 < N at most,
//!   and those of the prologue to iteration 0: all exist, so that there are no phantoms, and no operation needs a guard.
//! * What follows the loop is executed at the head of iteration N - 1, where nothing but that iteration is left. There, each operation
//!   of the body must have been executed N times, and what is yielded is what iteration N - 1 of the loop before passes on. This is
//!   compared after each of the first iterations, for the order of executions, and after an iteration that is any number.
//! * The steady loop need not carry all that the loop before carries: what it carries at a place is told by what it passes on there.
//! * The wait for a product may be left out, if the next product adds to the one in flight: `accumulator` says when.
//! * Without an iteration, nothing is executed, and the results are the initial values.
//!
//! Deliberately absent: steps other than 1, for which `lo + step` may wrap although `lo` is below `hi`.

use super::frame::Frame;
use super::labels::{At, Label, is_computed};
use super::rewritten::{Loop, leaves};
use super::{Check, Checked, Place, Unit, alike, refuse, refuse_exchange, touches};
use crate::ir::{Block, ForKind, NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};

/// The parts of a branch that is executed for a loop.
struct Apart<'k> {
    prologue: &'k [OpId],
    steady: OpId,
    body: Block,
    last: &'k [OpId],
    end: OpId,
    otherwise: OpId,
}

impl<'k> Check<'k> {
    fn parts(&self, looped: OpId, branch: OpId) -> Option<Apart<'k>> {
        let after = self.after;
        let [then, otherwise] = after.op(branch).regions[..] else { return None };
        let (end, ops) = after.block(then).ops.split_last()?;
        let [otherwise] = after.block(otherwise).ops[..] else { return None };
        let at = ops.iter().position(|id| after.op(*id).kind.is_loop() && self.origin(*id) == Some(looped))?;
        let (prologue, behind) = ops.split_at_checked(at)?;
        let (steady, last) = behind.split_first()?;
        let body = *after.op(*steady).regions.first()?;
        let yields = [*end, otherwise].iter().all(|id| after.op(*id).kind == OpKind::Yield);
        yields.then_some(Apart { prologue, steady: *steady, body, last, end: *end, otherwise })
    }

    /// Compares a loop with the branch that is executed for it.
    pub(super) fn apart(&mut self, looped: OpId, unit: &Unit<'_>, mut frame: Frame) -> Checked {
        let (before, after) = (self.before, self.after);
        let (was, is) = (before.op(looped), after.op(unit.main));
        let parts = self.parts(looped, unit.main);
        let (Some(parts), OpKind::For(ForKind::Sequential | ForKind::Pipelined)) = (parts, &was.kind) else {
            return refuse(looped, "another loop is executed instead");
        };
        // In front of the branch there may be nothing but the computation of its condition: whatever is executed there is
        // executed also if there is no iteration.
        let only_terms = unit.prologue.iter().all(|id| is_computed(after, after.op(*id)));
        if !only_terms || !unit.rest.is_empty() || !alike((before, &was.results), (after, &is.results)) {
            return refuse(looped, "another loop is executed instead");
        }
        let first = Place { turn: At { relative: false, n: -1 }, leads: None, beyond: false, guard: None };
        frame.peeled = true;
        let [lo, hi, step] = frame.bounds();
        self.frames.push(frame);
        let compared = self.execute(looped, unit.prologue, first).and_then(|()| {
            let [condition] = is.args[..] else { return refuse(looped, "another loop is executed instead") };
            let condition = self.new_of(looped, condition)?;
            if self.labels.less(condition) != Some([lo, hi]) || self.labels.known(step) != Some(1) {
                return refuse(
                    looped,
                    "its first iteration is executed under another condition than that there is one",
                );
            }
            self.iterations_apart(looped, &parts)
        });
        let log = self.frames.pop().and_then(|frame| frame.log);
        compared?;
        self.touched.extend(log.map(|log| (looped, log)));
        // The bounds of the steady loop, and what both loops are entered with. `lo + 1` does not wrap, as `lo` is below
        // `hi`.
        let made = after.op(parts.steady);
        let ([second, rest @ ..], [_, old_rest @ ..]) = (&made.args[..], &was.args[..]) else {
            return refuse(looped, "it has no bounds");
        };
        let one = self.labels.constant(1);
        let (second, next) = (self.new_of(looped, *second)?, self.labels.add(lo, one, 1));
        let (Some(bounds), Some(old_bounds)) = (rest.get(..2), old_rest.get(..2)) else {
            return refuse(looped, "it has no bounds");
        };
        if second != next || made.kind != was.kind {
            return refuse(looped, "another loop is executed instead");
        }
        // What it is entered with was compared with the meanings of its places.
        self.operands(looped, old_bounds, bounds)?;
        self.touch(looped, parts.steady, false)?;
        // What the branch yields may be an operand in registers of a product behind it.
        self.touch(looped, unit.main, false)?;
        // Without an iteration, the loop before has its initial values as results.
        let (initial, yielded) = (old_rest.get(2..).unwrap_or_default(), &after.op(parts.otherwise).args);
        if initial.len() != yielded.len() {
            return refuse(looped, "another loop is executed instead");
        }
        self.operands(looped, initial, yielded)
    }

    fn iterations_apart(&mut self, looped: OpId, parts: &Apart<'k>) -> Checked {
        let before = self.before;
        let first = Place { turn: At { relative: false, n: -1 }, leads: None, beyond: false, guard: None };
        self.execute(looped, parts.prologue, first)?;
        let unit = Unit { prologue: parts.prologue, main: parts.steady, rest: parts.last, others: &[] };
        let mut made = self.steady(looped, &unit, parts.body)?;
        (made.ahead, made.reach) = (1, made.reach.max(1));
        let continues = before.op(made.end).kind == OpKind::Continue(0);
        if made.most() > 1 || !continues || made.ops.iter().any(|id| leaves(before, *id, 0)) {
            return refuse(looped, "its iterations are not known in advance, so that none can stand apart");
        }
        let entered = self.after.op(parts.steady).args.get(3..).unwrap_or_default();
        let mut state = entered.iter().map(|v| self.new_of(looped, *v)).collect::<Checked<Vec<_>>>()?;
        let passes = i32::try_from(self.frame(looped)?.passes()).unwrap_or(0);
        let iterations = (2 * made.most() + 3 + passes).max(self.recorded.unwrap_or(0));
        // The base of the induction. Each number of iterations up to these is compared to the end.
        for n in 0..=iterations {
            let turn = At { relative: false, n };
            self.last(&made, parts, turn, &state)?;
            if n < iterations {
                self.iterate(&made, turn, &mut state)?;
            }
        }
        self.for_any(&made, |check, any, state| check.last(&made, parts, any, state))
    }

    /// Compares the accumulator of a product with the one before. It is the result of a product that was waited for, or that product in flight.
    ///
    /// An MMA of a warpgroup that adds to the result of another one needs no wait for it: the matrix units execute the MMAs of a warp in order (PTX
    /// ISA, `wgmma.mma_async`: accesses of one accumulator by MMAs of the same shape are in order). So the next product stands for the wait in
    /// that iteration: the wait is counted as executed, here and nowhere else, so that its result has no other use. What the product in flight
    /// reads is touched as by the wait: if anything that the wait precedes in the loop before has been executed already, as a store to
    /// the operand of the next product, it is refused. Later changes are seen by the next product, which must read the same memory but for the
    /// stages of rings (`keeps`); and the release of a stage is a wait of its own.
    pub(super) fn accumulator(&mut self, id: OpId, old: Value, new: Value) -> Checked {
        let (was, is) = (self.old_of(id, old)?, self.new_of(id, new)?);
        if was == is {
            return Ok(());
        }
        let other = || refuse(id, "it is executed with an operand of another iteration");
        let before = self.before;
        // In a branch or a loop of the body it may be executed never, or several times.
        let of_body = |frame: &&Frame| frame.peeled && self.homes.get(&id) == Some(&frame.looped);
        let Some(frame) = self.frames.last().filter(of_body) else { return other() };
        let relative = frame.at.relative;
        let elements = |product: &Op| product.args.get(1).map(|operand| before.ty(*operand).elem());
        let is_alike =
            |product: &Op| product.kind == OpKind::Nv(NvOp::Wgmma) && elements(product) == elements(before.op(id));
        let settles = |wait: &OpId| {
            let op = before.op(*wait);
            let at = At { relative, n: *frame.counts.get(wait)? };
            let ([in_flight], [tile]) = (&op.args[..], &op.results[..]) else { return None };
            let place = |value: &Value| before.value(*value).place;
            let right = op.kind == OpKind::Ttg(TtgOp::ComputeWait)
                && place(tile) == place(in_flight)
                && place(tile) == place(&old)
                && before.def_op(*in_flight).is_some_and(is_alike)
                && frame.get(*tile, at) == Some(was)
                && frame.get(*in_flight, at) == Some(is);
            right.then_some((*wait, at))
        };
        let Some((wait, at)) = frame.ops.iter().find_map(settles) else { return other() };
        if !self.keeps(id, is)? {
            return refuse(id, "it continues a product in flight whose operands it does not read");
        }
        let Some(frame) = self.frames.last() else { return other() };
        let place = frame.ops.iter().position(|id| *id == wait).unwrap_or(0);
        let touched = touches::touches([before, before], (before.op(wait), None), &[is], &self.labels);
        let Some(frame) = self.frames.last_mut() else { return other() };
        frame.counts.entry(wait).and_modify(|count| *count += 1);
        let now = std::mem::replace(&mut frame.now, (!relative).then_some((at.n, place)));
        let exchanged = touched.objects.into_iter().find(|(object, changes)| !frame.touch(*object, *changes));
        frame.now = now;
        exchanged.map_or(Ok(()), |(object, _)| refuse_exchange(wait, object))
    }

    /// Whether nothing changes what a product in flight reads before the product that continues it is waited for: that reads the same memory,
    /// or it is a stage of a ring, whose release waits for the products that read it.
    ///
    /// What is waited for is told by the memory of the later product alone, as the loop before has a wait between the two.
    fn keeps(&self, id: OpId, in_flight: Label) -> Checked<bool> {
        let before = self.before;
        let operands = before.op(id).args.iter().take(2).map(|v| self.old_of(id, *v));
        let operands = operands.collect::<Checked<Vec<Label>>>()?;
        let is_own = |root: &Label| operands.iter().any(|operand| self.labels.roots(*operand).contains(root));
        let is_token = |value: &Value| matches!(before.ty(*value), Ty::Token(..));
        let made = |op: OpId| before.ops.get(op.index()).is_some_and(|op| op.results.iter().all(is_token));
        let is_stage = |root: &Label| {
            self.labels.instance_of(*root).is_some_and(made)
                || self.old.iter().any(|(value, label)| label == root && is_token(value))
        };
        Ok(self.labels.roots(in_flight).iter().all(|root| is_own(root) || is_stage(root)))
    }

    /// Executes what follows the steady loop, if it ends at the head of an iteration; the frame is then as it was before, for the case that
    /// it goes on.
    fn last(&mut self, made: &Loop<'k>, parts: &Apart<'k>, turn: At, state: &[Label]) -> Checked {
        let before = self.before;
        let saved = self.frame(made.looped)?.clone();
        self.leave(made, parts.last, turn, state)?;
        let frame = self.frame(made.looped)?;
        frame.at = turn;
        // This is iteration N - 1, so each operation has now been executed for iterations 0 to N - 1.
        let all = |id: &OpId| frame.counts.get(id) == Some(&(turn.n + 1));
        if let Some(id) = made.ops.iter().find(|id| !is_computed(before, before.op(**id)) && !all(id)) {
            return refuse(*id, "it is not executed once in each iteration");
        }
        let (was, is) = (before.op(made.end), self.after.op(parts.end));
        if was.args.len() != is.args.len() {
            return refuse(made.end, "another operation is executed instead");
        }
        self.operands(made.end, &was.args, &is.args)?;
        self.touch(made.end, parts.end, false)?;
        *self.frame(made.looped)? = saved;
        Ok(())
    }
}
