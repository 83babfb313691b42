//! Makes the steady loop of one loop; [`super::around`] makes what is before and after it, and [`super::runs`] tells what one branch guards.

use super::around::predicate;
use super::early::{Beyond, Early, of_ring};
use super::runs::Run;
use super::{Violation, stages};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Block, Effect, Kernel, LocalOp, Op, OpId, OpKind, Origin, Planned, Pred, TtgOp, Ty, Value};
use crate::pipeline::edit::Edit;

/// A value that the steady loop carries: the instance of a value `lead` iterations ahead.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) value: Value,
    pub(super) lead: u16,
    /// The argument of the steady loop's body, and the result of the loop.
    arg: Value,
    pub(super) after: Value,
}

/// A loop that is being rewritten.
pub(super) struct Steady {
    pub(super) edit: Edit,
    pub(super) looped: OpId,
    pub(super) body: Block,
    /// The block that contains the loop.
    pub(super) around: Block,
    /// The operations of the body in the order of the schedule, without the terminator.
    pub(super) ops: Vec<OpId>,
    pub(super) end: OpId,
    /// The operations of the body as they were before they were renamed.
    pub(super) was: SortedMap<OpId, Op>,
    /// The last stage.
    pub(super) last: u16,
    pub(super) counter: Option<Value>,
    /// The arguments of the body that iterations pass on, what they are first, and what is passed on.
    pub(super) carried: Vec<Value>,
    pub(super) initial: Vec<Value>,
    pub(super) next: Vec<Value>,
    /// The operations of the body that define values.
    pub(super) makes: SortedMap<Value, OpId>,
    /// The values that were computed so far in the steady loop's body, at their leads.
    pub(super) done: SortedSet<Value>,
    /// Values that were computed again in the steady loop's body, by their leads.
    again: SortedMap<(Value, u16), Value>,
    /// The values of the prologue, by their iterations.
    pub(super) first: SortedMap<(Value, u16), Value>,
    pub(super) slots: Vec<Slot>,
    /// How iterations are treated that do not exist, and the operations that one branch guards or that stand alone, in order.
    pub(super) beyond: Beyond,
    pub(super) runs: Vec<Run>,
    /// What is executed before the loop, and the bounds below which iterations exist that run so far ahead.
    pub(super) outside: Vec<OpId>,
    bounds: SortedMap<u16, Value>,
    /// Of a peeled loop, the places of carried values that are used, and the waits for products that the next product does without.
    pub(super) kept: SortedSet<usize>,
    pub(super) forwarded: SortedSet<OpId>,
    /// The values of what is executed after the loop, by how many iterations they are beyond the last one.
    pub(super) beyond_last: SortedMap<(Value, u16), Value>,
}

pub(super) type Made<T> = Result<T, Violation>;

impl Steady {
    pub(super) fn new(edit: Edit, looped: OpId) -> Made<Steady> {
        let kernel = &edit.kernel;
        let op = kernel.op(looped);
        let broken = || Violation { op: looped, message: "a loop without a body".to_owned() };
        let body = *op.regions.first().ok_or_else(broken)?;
        let (end, ops) = kernel.block(body).ops.split_last().ok_or_else(broken)?;
        let around = (0..kernel.blocks.len()).map(Block::new).find(|block| kernel.block(*block).ops.contains(&looped));
        let around = around.ok_or_else(broken)?;
        let (last, beyond) = stages(kernel, looped, ops)?;
        let is_for = op.kind != OpKind::Loop;
        let args = kernel.block(body).args.clone();
        let makes = ops.iter().flat_map(|id| kernel.op(*id).results.iter().map(|v| (*v, *id))).collect();
        let (end, mut ordered) = (*end, ops.to_vec());
        ordered.sort_by_key(|id| kernel.op(*id).planned.map(|planned| planned.order));
        let mut steady = Steady {
            looped,
            body,
            around,
            ops: ordered,
            end,
            was: ops.iter().map(|id| (*id, kernel.op(*id).clone())).collect(),
            last,
            counter: args.first().copied().filter(|_| is_for),
            carried: args.get(usize::from(is_for)..).unwrap_or_default().to_vec(),
            initial: op.args.get(if is_for { 3 } else { 0 }..).unwrap_or_default().to_vec(),
            next: kernel.op(end).args.clone(),
            makes,
            done: SortedSet::new(),
            again: SortedMap::new(),
            first: SortedMap::new(),
            slots: Vec::new(),
            beyond,
            runs: Vec::new(),
            outside: Vec::new(),
            bounds: SortedMap::new(),
            kept: SortedSet::new(),
            forwarded: SortedSet::new(),
            beyond_last: SortedMap::new(),
            edit,
        };
        steady.runs = steady.runs()?;
        steady.state_origins();
        Ok(steady)
    }

    /// Notes at the loop and at the operations of its body what they are in the kernel before. What the prologues of nested loops execute
    /// says so already.
    fn state_origins(&mut self) {
        let of_body: Vec<(OpId, u16)> = self.ops.iter().map(|id| (*id, self.lead(*id))).collect();
        let ops = &mut self.edit.kernel.ops;
        ops[self.looped.index()].origin.get_or_insert(Origin { op: self.looped, ahead: 0 });
        for (id, ahead) in of_body {
            // A nested loop that was rewritten already is itself, but in an iteration of this one.
            ops[id.index()].origin.get_or_insert(Origin { op: id, ahead }).ahead = ahead;
        }
    }

    pub(super) fn expand(mut self) -> Made<Edit> {
        // The prologue comes first, since a value that the steady loop carries begins with what the prologue computed
        // (`slot`).
        self.prologue()?;
        self.outside = std::mem::take(&mut self.edit.pending);
        let last = if self.beyond == Beyond::Peeled { Some(self.last_iteration()) } else { None };
        // In the order of the schedule: `done` then has exactly what an operation may use at its own lead. An operand
        // that is not in it would be computed later in the same iteration, which is a violated dependence and not
        // something to carry.
        for run in self.runs.clone() {
            match run {
                Run::One(id) => self.emit(id)?,
                Run::Guarded(ops) => self.emit_guarded(&ops)?,
            }
        }
        if self.edit.kernel.op(self.looped).kind != OpKind::Loop {
            // All slots must be known before values are passed on: the terminator has one operand for each of them, and
            // passing one on may add another.
            self.carry_beyond()?;
            if let Some(last) = &last {
                self.carry_to(last)?;
            }
            self.pass_on()?;
        }
        let mut ops = std::mem::take(&mut self.edit.pending);
        ops.push(self.end);
        self.edit.kernel.blocks[self.body.index()].ops = ops;
        if let Some(last) = last {
            return self.apart(last);
        }
        // What is executed after the loop uses the loop's results, which exist once all slots do.
        self.drain()?;
        let after = std::mem::take(&mut self.edit.pending);
        let before = std::mem::take(&mut self.outside);
        self.plan_outside(&before, &after);
        self.edit.pending = before;
        self.edit.put_before(self.around, self.looped);
        self.edit.pending = after;
        self.edit.put_after(self.around, self.looped);
        Ok(self.edit)
    }

    /// Adds an operation to the steady loop's body, at its lead.
    fn emit(&mut self, id: OpId) -> Made<()> {
        // The operation is executed for iteration i + lead, so each operand is the instance of that iteration. The
        // condition that the iteration exists is no operand of the original operation, and is added after the renaming.
        if self.forwarded.contains(&id) {
            return Ok(());
        }
        let names = self.names(id, |steady, value| match steady.forward(id, value) {
            Some(in_flight) => steady.at(in_flight, steady.lead(id) - 1),
            None => steady.at(value, steady.lead(id)),
        })?;
        rename(&mut self.edit.kernel, id, &names);
        let lead = self.lead(id);
        if lead > 0 && self.is_predicated(id) {
            let exists = self.exists_ahead(lead)?;
            predicate(&mut self.edit, id, exists);
        }
        self.edit.pending.push(id);
        self.done.extend(self.edit.kernel.op(id).results.iter().copied());
        Ok(())
    }

    /// Adds operations that are executed if their iteration exists. What they compute is known in their branch only.
    fn emit_guarded(&mut self, ops: &[OpId]) -> Made<()> {
        let lead = ops.first().map_or(0, |id| self.lead(*id));
        let exists = self.exists_ahead(lead)?;
        let outer = std::mem::take(&mut self.edit.pending);
        // What is computed again inside of the branch is defined there only. Kept in `again`, it would be used behind
        // the branch, where it has no value.
        let known = self.again.clone();
        for id in ops {
            self.emit(*id)?;
        }
        self.again = known;
        for id in ops {
            for result in self.edit.kernel.op(*id).results.clone() {
                // The same for results: a later use must not find them. `at` then reports a violation, as `runs`
                // promises that there is no such use.
                self.done.remove(&result);
            }
        }
        let inner = std::mem::replace(&mut self.edit.pending, outer);
        self.edit.guard(exists, inner);
        Ok(())
    }

    /// Whether an operation that runs ahead has a predicate: it fills a stage of a ring whose stages beyond the last one are filled with zeros, or
    /// fetches a tile.
    pub(super) fn is_predicated(&self, id: OpId) -> bool {
        let kernel = &self.edit.kernel;
        if kernel.op(id).kind == OpKind::Local(LocalOp::Fetch { guarded: false }) {
            return true;
        }
        let fills = matches!(kernel.op(id).kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }));
        fills
            && matches!((&self.beyond, of_ring(kernel, id)), (Beyond::Drained(rings), Some(Early::Fills(pipe))) if rings.contains_key(&pipe))
    }

    /// Whether the iteration exists that is so far ahead of the steady loop's.
    fn exists_ahead(&mut self, lead: u16) -> Made<Value> {
        let counter = self.counter.map_or_else(|| self.violation(self.looped, "a loop without a counter"), Ok)?;
        let bound = match self.bounds.get(&lead).copied() {
            Some(known) => known,
            None => {
                // The bound does not change in the loop, so it is computed once before it, behind the prologue: lists
                // of pending operations change places for the time of these instructions.
                let body = std::mem::replace(&mut self.edit.pending, std::mem::take(&mut self.outside));
                let hi = self.edit.kernel.op(self.looped).args.get(1).copied();
                // The counter plus the steps could exceed the greatest number. The bound is greater than the counter, and minus the steps it is
                // not too small a number unless the loop begins near the least one, which the checker refuses.
                let bound = match hi {
                    Some(hi) => self.steps_from(hi, -i32::from(lead))?,
                    None => self.violation(self.looped, "a loop without bounds")?,
                };
                self.outside = std::mem::replace(&mut self.edit.pending, body);
                self.bounds.insert(lead, bound);
                bound
            }
        };
        let exists = self.edit.one(OpKind::Cmp(Pred::Lt), &[counter, bound]);
        exists.map_or_else(|| self.violation(self.looped, "a counter that cannot be compared"), Ok)
    }

    /// Gives the operations around the loop places in the schedule of the loop around, if there is one: next to the loop.
    pub(super) fn plan_outside(&mut self, before: &[OpId], after: &[OpId]) {
        let kernel = &mut self.edit.kernel;
        let Some(Planned { stage, order }) = kernel.op(self.looped).planned else { return };
        let number = |ops: &[OpId]| u16::try_from(ops.len()).unwrap_or(u16::MAX);
        let (before_it, after_it) = (number(before), number(after));
        // Places stay distinct and keep their order. With the loop at place 4, two operations before it and one after
        // it: these get 4 and 5, the loop gets 6, the one behind it 7, and what was at place 5 gets 8. If a number
        // saturates, two places become equal, which `stages` reports.
        for id in kernel.block(self.around).ops.clone() {
            if let Some(planned) = &mut kernel.ops[id.index()].planned
                && planned.order >= order
            {
                let behind = if planned.order > order { after_it } else { 0 };
                planned.order = planned.order.saturating_add(before_it).saturating_add(behind);
            }
        }
        let from = |first: u16| (0..=u16::MAX).map(move |n| first.saturating_add(n));
        let behind = order.saturating_add(before_it).saturating_add(1);
        let places = from(order).zip(before).chain(from(behind).zip(after));
        for (place, id) in places {
            kernel.ops[id.index()].planned = Some(Planned { stage, order: place });
        }
    }

    pub(super) fn violation<T>(&self, op: OpId, message: &str) -> Made<T> {
        Err(Violation { op, message: message.to_owned() })
    }

    /// By how many iterations an operation runs ahead of the steady loop.
    pub(super) fn lead(&self, id: OpId) -> u16 {
        self.last - self.edit.kernel.op(id).planned.map_or(self.last, |planned| planned.stage)
    }

    /// What the operands of an operation, and of those nested in it, are called where it is executed.
    pub(super) fn names(
        &mut self,
        id: OpId,
        mut find: impl FnMut(&mut Self, Value) -> Made<Value>,
    ) -> Made<SortedMap<Value, Value>> {
        let kernel = &self.edit.kernel;
        let used = kernel.operands_within(id);
        let mut names = SortedMap::new();
        self.edit.loc = kernel.op(id).loc;
        for value in used {
            // Values of nested blocks are neither the body's nor outside of it, and keep their names.
            if !names.contains_key(&value) {
                names.insert(value, find(self, value).map_err(|why| Violation { op: id, ..why })?);
            }
        }
        Ok(names)
    }

    /// The name of a value in the steady loop's body, `lead` iterations ahead.
    pub(super) fn at(&mut self, value: Value, lead: u16) -> Made<Value> {
        if Some(value) == self.counter {
            return self.counter_ahead(value, lead);
        }
        if let Some(place) = self.carried.iter().position(|carried| *carried == value) {
            // In iteration i + c, c > 0, a carried value is what iteration i + c - 1 passed on. For c = 0 it is what
            // the steady loop itself carries. This ends: c falls with each step along carried values, and between two
            // such steps the look-up goes from operations to those before them.
            return match (lead.checked_sub(1), self.next.get(place).copied()) {
                (Some(before), Some(next)) => self.at(next, before),
                (_, _) => {
                    self.kept.insert(place);
                    Ok(value)
                }
            };
        }
        let Some(makes) = self.makes.get(&value).copied() else { return Ok(value) };
        let own = self.lead(makes);
        // Emitted for the same iteration of the original loop: the result itself, if the schedule has executed it
        // already.
        if lead == own {
            if self.done.contains(&value) {
                return Ok(value);
            }
            return self.violation(makes, "the schedule executes this operation before one whose result it uses");
        }
        if let Some(known) = self.again.get(&(value, lead)) {
            return Ok(*known);
        }
        // Executed own - lead iterations of the steady loop ago, so that the loop carries it. For a load of stage 0 of
        // three that stage 2 uses, the steady loop carries (load, 0) and (load, 1), and passes on (load, 1) and the
        // result of this iteration, which is (load, 2). A constant is not carried, although its type could be: it would
        // no longer be one to what uses it, such as the part of a tile whose place must be known.
        let is_constant = matches!(self.edit.kernel.op(makes).kind, OpKind::Const(_));
        if lead < own && self.edit.kernel.ty(value).is_carried() && !is_constant {
            return self.slot(value, lead);
        }
        // Too late (lead > own), a constant, or of a type that loops do not carry. Executing it again is right only if
        // nothing shows that it was executed twice and the result depends on the operands alone. If it is early, loops
        // can carry numbers, so only names get here, and only they are computed again.
        if !is_renewable(&self.edit.kernel, makes, lead < own && !is_constant) {
            return self.violation(makes, "the schedule executes this operation before one whose result it uses");
        }
        self.renew(makes, lead)?;
        Ok(self.again.get(&(value, lead)).copied().unwrap_or(value))
    }

    /// Computes the results of an operation again, `lead` iterations ahead. The operation may be renamed already, so this goes by what it was.
    fn renew(&mut self, makes: OpId, lead: u16) -> Made<()> {
        // The operands are instances of the same iteration. They are results of earlier operations of the body or
        // carried values, so this recursion ends as that of `at` does.
        let again = self.made_again(makes, lead, |steady, arg| steady.at(arg, lead))?;
        self.again.extend(again.into_iter().map(|(result, copy)| ((result, lead), copy)));
        Ok(())
    }

    /// Adds an operation of the body again, as it was, for an iteration so far ahead; its results, each with its copy. `find` says what its operands
    /// are there.
    pub(super) fn made_again(
        &mut self,
        makes: OpId,
        ahead: u16,
        mut find: impl FnMut(&mut Self, Value) -> Made<Value>,
    ) -> Made<Vec<(Value, Value)>> {
        let Some(Op { kind, args, results, loc, .. }) = self.was.get(&makes).cloned() else { return Ok(Vec::new()) };
        let names = args.into_iter().map(|arg| find(self, arg)).collect::<Made<Vec<Value>>>()?;
        let types: Vec<Ty> = results.iter().map(|v| self.edit.kernel.ty(*v)).collect();
        self.edit.loc = loc;
        self.edit.origin = self.edit.kernel.op(makes).origin.map(|origin| Origin { ahead, ..origin });
        let copies = self.edit.raw(kind, &names, &types, Vec::new());
        self.edit.origin = None;
        results.iter().zip(&copies).for_each(|(result, copy)| self.edit.like(*copy, *result));
        Ok(results.into_iter().zip(copies).collect())
    }

    /// The counter of the loop, `lead` iterations ahead.
    fn counter_ahead(&mut self, counter: Value, lead: u16) -> Made<Value> {
        // The counter of a peeled loop is that of the operations which run ahead: it begins with the second iteration.
        let own = if self.beyond == Beyond::Peeled { self.last } else { 0 };
        if lead == own {
            return Ok(counter);
        }
        if let Some(known) = self.again.get(&(counter, lead)) {
            return Ok(*known);
        }
        let ahead = self.steps_from(counter, i32::from(lead) - i32::from(own))?;
        self.again.insert((counter, lead), ahead);
        Ok(ahead)
    }

    /// A number plus so many steps of the loop.
    pub(super) fn steps_from(&mut self, from: Value, steps: i32) -> Made<Value> {
        let step = self.edit.kernel.op(self.looped).args.get(2).copied();
        let sum = |edit: &mut Edit| {
            let step = step?;
            let add = if steps < 0 { BinOp::Sub } else { BinOp::Add };
            let steps = i64::from(steps.unsigned_abs());
            let by = match edit.kernel.int_constant(step) {
                Some(step) => edit.i32(i32::try_from(step.checked_mul(steps)?).ok()?.into())?,
                None => {
                    let steps = edit.i32(steps)?;
                    edit.one(OpKind::Binary(BinOp::Mul), &[step, steps])?
                }
            };
            edit.one(OpKind::Binary(add), &[from, by])
        };
        sum(&mut self.edit)
            .map_or_else(|| self.violation(self.looped, "the steps of the loop are too long for so many stages"), Ok)
    }

    /// The argument of the steady loop that carries an instance of a value.
    pub(super) fn slot(&mut self, value: Value, lead: u16) -> Made<Value> {
        if let Some(slot) = self.slots.iter().find(|slot| (slot.value, slot.lead) == (value, lead)) {
            return Ok(slot.arg);
        }
        // The steady loop begins with what the prologue computed for this iteration.
        // (v, c) in iteration 0 is what iteration c computed. The operation has a lead greater than c and the prologue
        // executes it for all iterations below its lead, so the value is there, unless a branch of the prologue guards
        // it: then it has no value outside, and must not be carried.
        let Some(initial) = self.first.get(&(value, lead)).copied() else {
            return self.violation(self.looped, "a stage that the prologue does not execute");
        };
        let results = self.edit.kernel.op(self.looped).results.len();
        let Some(arg) = self.edit.carry(self.looped, self.body, initial) else {
            return self.violation(self.looped, "a loop that carries nothing");
        };
        self.edit.like(arg, value);
        let after = self.edit.kernel.op(self.looped).results.get(results).copied().unwrap_or(arg);
        self.edit.kernel.values[after.index()].place = self.edit.kernel.value(value).place;
        self.slots.push(Slot { value, lead, arg, after });
        Ok(arg)
    }

    /// Passes on what the steady loop carries: what the original loop carried, of a peeled loop that which is used, and the instances of values that
    /// cross stages.
    fn pass_on(&mut self) -> Made<()> {
        let peeled = self.beyond == Beyond::Peeled;
        if !peeled {
            self.kept.extend(0..self.carried.len());
        }
        let (mut passed, mut of_slots) = (SortedMap::new(), Vec::new());
        // To pass on an instance that was computed several iterations ahead, the steady loop carries further ones, up to the lead of the
        // operation that computes it.
        // This ends although `at` may append slots: one for (v, c) appends at most (v, c + 1), and only while c + 1 is
        // below the lead of what computes v. At that lead, `at` gives the result itself. So there are at most as many
        // slots of v as its lead. Each place is passed on once.
        loop {
            if let Some(place) = self.kept.iter().copied().find(|place| !passed.contains_key(place)) {
                let next = self.next[place];
                // A peeled loop carries its counter, as that of the operations which run ahead is another one.
                let is_counter = peeled && self.counter == Some(next);
                let name = if is_counter { self.slot(next, 0)? } else { self.at(next, 0)? };
                passed.insert(place, name);
            } else if let Some(Slot { value, lead, .. }) = self.slots.get(of_slots.len()).copied() {
                of_slots.push(self.at(value, lead + 1)?);
            } else {
                break;
            }
        }
        let args = passed.values().copied().chain(of_slots).collect();
        self.edit.kernel.ops[self.end.index()].args = args;
        Ok(())
    }
}

/// Whether an operation may be executed more than once for an iteration: it computes names, or, if `any` is not set, numbers, and nothing
/// else.
pub(crate) fn is_renewable(kernel: &Kernel, id: OpId, only_names: bool) -> bool {
    let op = kernel.op(id);
    let cheap = |v: &Value| match kernel.ty(*v) {
        Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) => true,
        Ty::Scalar(_) => !only_names,
        Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Token(..) | Ty::Barrier(_) => false,
    };
    op.regions.is_empty() && op.kind.effect() == Effect::Pure && op.results.iter().all(cheap)
}

/// Renames the operands of an operation and of those nested in it.
pub(super) fn rename(kernel: &mut Kernel, id: OpId, names: &SortedMap<Value, Value>) {
    let mut all = vec![id];
    for region in kernel.op(id).regions.clone() {
        kernel.walk_block(region, &mut |id, _| all.push(id));
    }
    for id in all {
        if let Some(op) = kernel.ops.get_mut(id.index()) {
            op.args.iter_mut().for_each(|arg| *arg = names.get(arg).copied().unwrap_or(*arg));
        }
    }
}
