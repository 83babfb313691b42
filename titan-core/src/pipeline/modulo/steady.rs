//! Makes the prologue and the steady loop of one loop.

use super::{Violation, stages};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Block, Effect, Kernel, Op, OpId, OpKind, Origin, Planned, Ty, Value, ValueData};
use crate::pipeline::edit::Edit;

/// A value that the steady loop carries: the instance of a value `lead` iterations ahead.
#[derive(Clone, Copy)]
struct Slot {
    value: Value,
    lead: u16,
    /// The argument of the steady loop's body.
    arg: Value,
}

/// A loop that is being rewritten.
pub(super) struct Steady {
    edit: Edit,
    looped: OpId,
    body: Block,
    /// The block that contains the loop.
    around: Block,
    /// The operations of the body in the order of the schedule, without the terminator.
    ops: Vec<OpId>,
    end: OpId,
    /// The operations of the body as they were before they were renamed.
    was: SortedMap<OpId, Op>,
    /// The last stage.
    last: u16,
    counter: Option<Value>,
    /// The arguments of the body that iterations pass on, what they are first, and what is passed on.
    carried: Vec<Value>,
    initial: Vec<Value>,
    next: Vec<Value>,
    /// The operations of the body that define values.
    makes: SortedMap<Value, OpId>,
    /// The values that were computed so far in the steady loop's body, at their leads.
    done: SortedSet<Value>,
    /// Values that were computed again in the steady loop's body, by their leads.
    again: SortedMap<(Value, u16), Value>,
    /// The values of the prologue, by their iterations.
    first: SortedMap<(Value, u16), Value>,
    slots: Vec<Slot>,
}

type Made<T> = Result<T, Violation>;

impl Steady {
    pub(super) fn new(edit: Edit, looped: OpId) -> Made<Steady> {
        let kernel = &edit.kernel;
        let op = kernel.op(looped);
        let broken = || Violation { op: looped, message: "a loop without a body".to_owned() };
        let body = *op.regions.first().ok_or_else(broken)?;
        let (end, ops) = kernel.block(body).ops.split_last().ok_or_else(broken)?;
        let around = (0..kernel.blocks.len()).map(Block::new).find(|block| kernel.block(*block).ops.contains(&looped));
        let around = around.ok_or_else(broken)?;
        let last = stages(kernel, looped, ops)? - 1;
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
            edit,
        };
        steady.state_origins();
        Ok(steady)
    }

    /// Notes at the loop and at the operations of its body what they are in the kernel before. What the prologues of nested loops execute
    /// says so already.
    fn state_origins(&mut self) {
        let of_body: Vec<(OpId, u16)> = self.ops.iter().map(|id| (*id, self.lead(*id))).collect();
        for (id, ahead) in [(self.looped, 0)].into_iter().chain(of_body) {
            self.edit.kernel.ops[id.index()].origin.get_or_insert(Origin { op: id, ahead });
        }
    }

    pub(super) fn expand(mut self) -> Made<Edit> {
        self.prologue()?;
        let before = std::mem::take(&mut self.edit.pending);
        for id in self.ops.clone() {
            let names = self.names(id, |steady, value| steady.at(value, steady.lead(id)))?;
            rename(&mut self.edit.kernel, id, &names);
            self.edit.pending.push(id);
            self.done.extend(self.edit.kernel.op(id).results.iter().copied());
        }
        if self.edit.kernel.op(self.looped).kind != OpKind::Loop {
            self.pass_on()?;
        }
        let mut ops = std::mem::take(&mut self.edit.pending);
        ops.push(self.end);
        self.edit.kernel.blocks[self.body.index()].ops = ops;
        self.plan_prologue(&before);
        self.edit.pending = before;
        self.edit.put_before(self.around, self.looped);
        Ok(self.edit)
    }

    /// Gives the operations of the prologue places in the schedule of the loop around, if there is one: just before the loop.
    fn plan_prologue(&mut self, prologue: &[OpId]) {
        let kernel = &mut self.edit.kernel;
        let Some(Planned { stage, order }) = kernel.op(self.looped).planned else { return };
        let more = u16::try_from(prologue.len()).unwrap_or(u16::MAX);
        for id in kernel.block(self.around).ops.clone() {
            if let Some(planned) = &mut kernel.ops[id.index()].planned
                && planned.order >= order
            {
                planned.order = planned.order.saturating_add(more);
            }
        }
        for (place, id) in (order..).zip(prologue) {
            kernel.ops[id.index()].planned = Some(Planned { stage, order: place });
        }
    }

    fn violation<T>(&self, op: OpId, message: &str) -> Made<T> {
        Err(Violation { op, message: message.to_owned() })
    }

    /// By how many iterations an operation runs ahead of the steady loop.
    fn lead(&self, id: OpId) -> u16 {
        self.last - self.edit.kernel.op(id).planned.map_or(self.last, |planned| planned.stage)
    }

    /// What the operands of an operation, and of those nested in it, are called where it is executed.
    fn names(
        &mut self,
        id: OpId,
        mut find: impl FnMut(&mut Self, Value) -> Made<Value>,
    ) -> Made<SortedMap<Value, Value>> {
        let kernel = &self.edit.kernel;
        let mut used: Vec<Value> = kernel.op(id).args.clone();
        for region in &kernel.op(id).regions {
            kernel.walk_block(*region, &mut |_, op| used.extend(&op.args));
        }
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
    fn at(&mut self, value: Value, lead: u16) -> Made<Value> {
        if Some(value) == self.counter {
            return self.counter_ahead(value, lead);
        }
        if let Some(place) = self.carried.iter().position(|carried| *carried == value) {
            return match (lead.checked_sub(1), self.next.get(place).copied()) {
                (Some(before), Some(next)) => self.at(next, before),
                (_, _) => Ok(value),
            };
        }
        let Some(makes) = self.makes.get(&value).copied() else { return Ok(value) };
        let own = self.lead(makes);
        if lead == own {
            if self.done.contains(&value) {
                return Ok(value);
            }
            return self.violation(makes, "the schedule executes this operation before one whose result it uses");
        }
        if let Some(known) = self.again.get(&(value, lead)) {
            return Ok(*known);
        }
        if lead < own && is_carried(self.edit.kernel.ty(value)) {
            return self.slot(value, lead);
        }
        if !is_renewable(&self.edit.kernel, makes, lead < own) {
            return self.violation(makes, "the schedule executes this operation before one whose result it uses");
        }
        self.renew(makes, lead)?;
        Ok(self.again.get(&(value, lead)).copied().unwrap_or(value))
    }

    /// Computes the results of an operation again, `lead` iterations ahead. The operation may be renamed already, so this goes by what it was.
    fn renew(&mut self, makes: OpId, lead: u16) -> Made<()> {
        let Some(Op { kind, args, results, loc, .. }) = self.was.get(&makes).cloned() else { return Ok(()) };
        let mut names = Vec::new();
        for arg in args {
            names.push(self.at(arg, lead)?);
        }
        let types: Vec<Ty> = results.iter().map(|v| self.edit.kernel.ty(*v)).collect();
        self.edit.loc = loc;
        self.edit.origin = self.edit.kernel.op(makes).origin.map(|origin| Origin { ahead: lead, ..origin });
        let copies = self.edit.raw(kind, &names, &types, Vec::new());
        self.edit.origin = None;
        for (result, copy) in results.into_iter().zip(copies) {
            let ValueData { name, place, .. } = self.edit.kernel.value(result).clone();
            let data = &mut self.edit.kernel.values[copy.index()];
            (data.name, data.place) = (name, place);
            self.again.insert((result, lead), copy);
        }
        Ok(())
    }

    /// The copy of a value, with its layout.
    fn copied(&mut self, of: Value, names: &SortedMap<Value, Value>) -> Value {
        let copy = names.get(&of).copied().unwrap_or(of);
        self.edit.kernel.values[copy.index()].place = self.edit.kernel.value(of).place;
        copy
    }

    /// The counter of the loop, `lead` iterations ahead.
    fn counter_ahead(&mut self, counter: Value, lead: u16) -> Made<Value> {
        if lead == 0 {
            return Ok(counter);
        }
        if let Some(known) = self.again.get(&(counter, lead)) {
            return Ok(*known);
        }
        let ahead = self.steps_from(counter, lead)?;
        self.again.insert((counter, lead), ahead);
        Ok(ahead)
    }

    /// A number plus so many steps of the loop.
    fn steps_from(&mut self, from: Value, steps: u16) -> Made<Value> {
        let step = self.edit.kernel.op(self.looped).args.get(2).copied();
        let sum = |edit: &mut Edit| {
            let step = step?;
            let by = match edit.kernel.int_constant(step) {
                Some(step) => {
                    let by = step.checked_mul(i64::from(steps))?;
                    edit.i32(i32::try_from(by).ok()?.into())?
                }
                None => {
                    let steps = edit.i32(i64::from(steps))?;
                    edit.one(OpKind::Binary(BinOp::Mul), &[step, steps])?
                }
            };
            edit.one(OpKind::Binary(BinOp::Add), &[from, by])
        };
        sum(&mut self.edit)
            .map_or_else(|| self.violation(self.looped, "the steps of the loop are too long for so many stages"), Ok)
    }

    /// The argument of the steady loop that carries an instance of a value.
    fn slot(&mut self, value: Value, lead: u16) -> Made<Value> {
        if let Some(slot) = self.slots.iter().find(|slot| (slot.value, slot.lead) == (value, lead)) {
            return Ok(slot.arg);
        }
        // The steady loop begins with what the prologue computed for this iteration.
        let Some(initial) = self.first.get(&(value, lead)).copied() else {
            return self.violation(self.looped, "a stage that the prologue does not execute");
        };
        let results = self.edit.kernel.op(self.looped).results.len();
        let Some(arg) = self.edit.carry(self.looped, self.body, initial) else {
            return self.violation(self.looped, "a loop that carries nothing");
        };
        let (place, name) = (self.edit.kernel.value(value).place, self.edit.kernel.value(value).name.clone());
        self.edit.kernel.values[arg.index()].place = place;
        self.edit.kernel.values[arg.index()].name = name;
        if let Some(after) = self.edit.kernel.op(self.looped).results.get(results).copied() {
            self.edit.kernel.values[after.index()].place = place;
        }
        self.slots.push(Slot { value, lead, arg });
        Ok(arg)
    }

    /// Passes on what the steady loop carries.
    fn pass_on(&mut self) -> Made<()> {
        let mut args = Vec::new();
        for next in self.next.clone() {
            args.push(self.at(next, 0)?);
        }
        // To pass on an instance that was computed several iterations ahead, the steady loop carries further ones, up to the lead of the
        // operation that computes it.
        let mut passed = 0;
        while let Some(Slot { value, lead, .. }) = self.slots.get(passed).copied() {
            args.push(self.at(value, lead + 1)?);
            passed += 1;
        }
        self.edit.kernel.ops[self.end.index()].args = args;
        Ok(())
    }

    /// Executes the operations of all stages but the last for the iterations before those of the steady loop.
    fn prologue(&mut self) -> Made<()> {
        for turn in 0..self.last {
            for id in self.ops.clone() {
                let stage = self.last - self.lead(id);
                let Some(iteration) = turn.checked_sub(stage) else { continue };
                self.execute(id, iteration)?;
            }
        }
        Ok(())
    }

    /// Copies an operation for an iteration of the prologue.
    fn execute(&mut self, id: OpId, iteration: u16) -> Made<()> {
        let mut names = self.names(id, |steady, value| steady.before(value, iteration))?;
        self.edit.copies(&[id], &mut names);
        if let (Some(copy), Some(Origin { op, .. })) = (self.edit.pending.last(), self.edit.kernel.op(id).origin)
            && op == id
        {
            self.edit.kernel.ops[copy.index()].origin = Some(Origin { op, ahead: iteration });
        }
        for result in self.edit.kernel.op(id).results.clone() {
            let copy = self.copied(result, &names);
            self.first.insert((result, iteration), copy);
        }
        Ok(())
    }

    /// The name of a value in the prologue.
    fn before(&mut self, value: Value, iteration: u16) -> Made<Value> {
        if Some(value) == self.counter {
            let lo = self.edit.kernel.op(self.looped).args.first().copied().unwrap_or(value);
            return if iteration == 0 { Ok(lo) } else { self.steps_from(lo, iteration) };
        }
        if let Some(place) = self.carried.iter().position(|carried| *carried == value) {
            let (initial, next) = (self.initial.get(place).copied(), self.next.get(place).copied());
            return match (iteration.checked_sub(1), initial, next) {
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

/// Whether a loop can carry values of a type. Names of memory are not carried, since later passes look for what they name.
const fn is_carried(ty: Ty) -> bool {
    match ty {
        Ty::Scalar(_) | Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Token(..) => true,
        Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) | Ty::Barrier(_) => false,
    }
}

/// Whether an operation may be executed more than once for an iteration: it computes names, or, if `any` is not set, numbers, and nothing
/// else.
fn is_renewable(kernel: &Kernel, id: OpId, only_names: bool) -> bool {
    let op = kernel.op(id);
    let cheap = |v: &Value| match kernel.ty(*v) {
        Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) => true,
        Ty::Scalar(_) => !only_names,
        Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Token(..) | Ty::Barrier(_) => false,
    };
    op.regions.is_empty() && op.kind.effect() == Effect::Pure && op.results.iter().all(cheap)
}

/// Renames the operands of an operation and of those nested in it.
fn rename(kernel: &mut Kernel, id: OpId, names: &SortedMap<Value, Value>) {
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
