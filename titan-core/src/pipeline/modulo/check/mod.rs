//! The checker of expanded loops. It compares the kernel before, whose loops have schedules, with the kernel after, and shares no code with
//! the rewriter.
//!
//! # What is shown
//!
//! For each loop with a schedule, whatever its number N of iterations is: the rewritten loop, with its prologue, executes each operation o of
//! the body exactly once for each iteration j < N; each operand is the value that the loop before names; executions of which one changes
//! what the other touches have the order of the loop before ([`touches`]); and results are those of the last iteration. Executions for
//! iterations from N on, *phantoms*, change nothing and access no tensor. All else in the kernels is equal.
//!
//! # How
//!
//! The kernel after is executed on labels ([`labels`]). The k-th execution of what is made of the operation o must be that of iteration k:
//! its operands must have the labels that the operands of o have in iteration k of the loop before ([`frame`]), and its results then stand
//! for those of this execution. Operations that only compute numbers and names are terms and may be executed any number of times.
//!
//! 1. The prologue and the first M iterations of the steady loop are executed. For each value that the loop carries, the operations state
//!    ([`Origin`]) of which operation it is the result, and how many iterations ahead. At the beginning of each iteration, it must be that.
//! 2. One more iteration is executed whose number is any number: what is carried has the labels that were stated, in terms of that number,
//!    and each operation is executed with the lead that it has after the prologue. In the end, what is passed on must be the same one iteration
//!    later.
//!
//! Statements of the rewriter tell what to compare with what. If they are false, something that is compared differs. Step 1 is the base and step 2 the step of an induction over the iterations; labels that are equal for any number are equal for each.
//! Results are what the loop carries at the beginning of iteration N, which step 1 finds to be what the loop before carries.
//!
//! # Why M iterations show the order
//!
//! Let o run a iterations ahead, and p b of them, with leads of at most S. (o, j) and (p, k) change places if the loop before executes (o, j)
//! first, so j ≤ k, and the steady loop (p, k) in an iteration that is not later: k - b ≤ j - a. So k - j ≤ a - b ≤ S: places can only
//! be exchanged between iterations that are that close, and it depends on k - j alone. What is in the prologue is of an iteration below S. That
//! both touch one token depends on k - j alone too, once the values that a loop was entered with have been passed on by all that it carries.
//! So every exchange shows within the first 2·S + 1 iterations behind these, and M = 2·S + 3 + the number of carried values.
//!
//! # Example
//!
//! The schedule is the one of the example in [`super`], and the rewriter loads the first fragments of the next iteration from the stage of
//! this one: `%x1 = load %s`. After the prologue, the load has been executed once: its lead is 1. `%xi` is stated to be the load's result 0
//! iterations ahead, which (load, 0) is at the beginning of iteration 0. There, `mma %xi` needs (load, 0), which it has. Then the load is
//! executed for iteration 1, where its operand is what iteration 0 passes on, (wait, 0), and not `%s`, which is what the loop was entered
//! with: the loop is refused.
//!
//! Nested loops with schedules are compared in the same way wherever they are executed; other operations with regions are units, whose
//! operations are compared one by one. A loop that is left early has one stage, so that the first step alone compares it.
//!
//! Deliberately absent: capacity, and freedom from deadlock, which are shown of barrier programs; that sums do not wrap in iterations that
//! do not exist, where no tensor is accessed.

mod frame;
mod labels;
mod touches;

use super::Violation;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Def, Family, Flow, ForKind, Kernel, Op, OpId, OpKind, Origin, Value};
use frame::Frame;
use labels::{At, Label, Labels, is_computed};

/// Checks that a kernel is another one with the loops expanded that have schedules there.
///
/// # Errors
/// The first operation of the kernel before of which this cannot be shown.
pub fn check(before: &Kernel, after: &Kernel) -> Result<(), Violation> {
    let mut homes = SortedMap::new();
    before.walk(&mut |looped, op| {
        let bodies = op.regions.iter().flat_map(|body| &before.block(*body).ops);
        let planned: Vec<OpId> = bodies.copied().collect();
        if op.kind.is_loop() && planned.iter().any(|id| before.op(*id).planned.is_some()) {
            homes.extend(planned.into_iter().map(|id| (id, looped)));
        }
    });
    if homes.is_empty() && before == after {
        return Ok(());
    }
    let mut check = Check {
        before,
        after,
        homes,
        in_registers: touches::operands_in_registers(after),
        labels: Labels::new(),
        old: SortedMap::new(),
        new: SortedMap::new(),
        frames: Vec::new(),
    };
    for (old, new) in (0..before.sig.params.len()).map(|i| (Value::new(i), Value::new(i))) {
        check.bind(&[old], &[new]);
    }
    check.blocks(before.body, after.body)
}

type Checked<T = ()> = Result<T, Violation>;

struct Check<'k> {
    before: &'k Kernel,
    after: &'k Kernel,
    /// The loops with schedules, by the operations of their bodies.
    homes: SortedMap<OpId, OpId>,
    /// Tiles in registers that warpgroup MMAs of the kernel after read.
    in_registers: SortedSet<Value>,
    labels: Labels,
    /// The values of the kernel before outside of the bodies of loops with schedules, and inside of operations that are compared.
    old: SortedMap<Value, Label>,
    /// The values of the kernel after.
    new: SortedMap<Value, Label>,
    /// The loops with schedules that are being compared, from the outermost one on.
    frames: Vec<Frame>,
}

fn refuse<T>(op: OpId, message: &str) -> Checked<T> {
    Err(Violation { op, message: message.to_owned() })
}

impl Check<'_> {
    /// Gives values of both kernels labels of their own.
    fn bind(&mut self, old: &[Value], new: &[Value]) {
        for (old, new) in old.iter().zip(new) {
            let label = self.labels.unknown(frame::roots_of_unknown(self.before, *old));
            self.old.insert(*old, label);
            self.new.insert(*new, label);
        }
    }

    /// What a value of the kernel before is where operations are being compared.
    fn known(&self, value: Value) -> Option<Label> {
        let inner = || self.frames.iter().rev().find_map(|frame| frame.get(value, frame.at));
        self.old.get(&value).copied().or_else(inner)
    }

    fn old_of(&self, id: OpId, value: Value) -> Checked<Label> {
        self.known(value).map_or_else(|| refuse(id, "it uses a value that is not known here"), Ok)
    }

    fn new_of(&self, id: OpId, value: Value) -> Checked<Label> {
        let known = self.new.get(&value).copied();
        known.map_or_else(|| refuse(id, "it is executed before an operation whose result it uses"), Ok)
    }

    fn is_scheduled(&self, id: OpId) -> bool {
        let body = self.before.op(id).regions.iter().flat_map(|body| &self.before.block(*body).ops);
        self.before.op(id).kind.is_loop() && body.into_iter().any(|id| self.homes.contains_key(id))
    }

    /// The operation of the kernel before that an operation of the kernel after says it is.
    fn origin(&self, id: OpId) -> Option<OpId> {
        self.after.op(id).origin.map(|origin| origin.op).filter(|op| op.index() < self.before.ops.len())
    }

    /// Compares blocks that are equal but for the loops with schedules in them.
    fn blocks(&mut self, old: Block, new: Block) -> Checked {
        let (before, after) = (self.before, self.after);
        self.bind(&before.block(old).args, &after.block(new).args);
        let mut rest = after.block(new).ops.as_slice();
        for id in &before.block(old).ops {
            let scheduled = self.is_scheduled(*id);
            let number = if scheduled {
                rest.iter().position(|made| self.origin(*made) == Some(*id)).map(|at| at + 1)
            } else {
                Some(1)
            };
            let Some((made, others)) = number.and_then(|number| rest.split_at_checked(number)) else {
                return refuse(*id, "it is not executed");
            };
            rest = others;
            let last = made.last().copied().unwrap_or(*id);
            if scheduled {
                self.expanded(*id, made)?;
            } else {
                self.same(*id, last)?;
            }
            let args: Checked<Vec<Label>> = before.op(*id).args.iter().map(|v| self.old_of(*id, *v)).collect();
            let own = |labels: &mut Labels, roots| labels.unknown(roots);
            let results = frame::results(before, *id, args?, &mut self.labels, own);
            for ((old, new), label) in before.op(*id).results.iter().zip(&after.op(last).results).zip(results) {
                self.old.insert(*old, label);
                self.new.insert(*new, label);
            }
        }
        match (rest, before.block(old).ops.last()) {
            ([], _) | (_, None) => Ok(()),
            (_, Some(end)) => refuse(*end, "operations that nothing asks for are executed before it"),
        }
    }

    /// Compares an operation of each kernel, with those nested in them. Their results have no labels yet.
    fn same(&mut self, old: OpId, new: OpId) -> Checked {
        let (before, after) = (self.before, self.after);
        let (was, is) = (before.op(old), after.op(new));
        let types = |kernel: &Kernel, op: &Op| op.results.iter().map(|v| kernel.ty(*v)).collect::<Vec<_>>();
        if was.kind != is.kind
            || was.args.len() != is.args.len()
            || was.regions.len() != is.regions.len()
            || types(before, was) != types(after, is)
        {
            return refuse(old, "another operation is executed instead");
        }
        self.operands(old, &was.args, &is.args)?;
        self.touch(old, new)?;
        was.regions.iter().zip(&is.regions).try_for_each(|(was, is)| self.blocks(*was, *is))
    }

    fn operands(&self, id: OpId, old: &[Value], new: &[Value]) -> Checked {
        for (old, new) in old.iter().zip(new) {
            if self.old_of(id, *old)? != self.new_of(id, *new)? {
                return refuse(id, "it is executed with an operand of another iteration");
            }
        }
        Ok(())
    }

    /// Notes what an execution touches in the loops around it.
    fn touch(&mut self, old: OpId, new: OpId) -> Checked {
        let op = self.after.op(new);
        let args: Checked<Vec<Label>> = op.args.iter().map(|v| self.new_of(old, *v)).collect();
        let mut touches = touches::touches(self.after, op, &args?, &self.labels);
        if op.results.iter().any(|v| self.in_registers.contains(v)) {
            touches.objects.push((touches::Object::Registers, false));
        }
        let may_not_end = op.kind == OpKind::Loop;
        let shows = touches.of_tensors || may_not_end || touches.objects.iter().any(|(_, changes)| *changes);
        if shows && self.frames.iter().any(|frame| frame.phantom) {
            return refuse(
                old,
                "the schedule executes this operation, which has an effect, for iterations that do not exist",
            );
        }
        for (object, changes) in touches.objects {
            for frame in &mut self.frames {
                if !frame.touch(object, changes) {
                    let message = format!(
                        "the schedule exchanges it with an operation that it must precede or follow, because of {}",
                        object.words()
                    );
                    return refuse(old, &message);
                }
            }
        }
        Ok(())
    }

    /// Compares a loop with a schedule with its prologue and its steady loop, which is the last of these operations.
    fn expanded(&mut self, looped: OpId, made: &[OpId]) -> Checked {
        let (before, after) = (self.before, self.after);
        let Some((steady, prologue)) = made.split_last() else { return refuse(looped, "it is not executed") };
        let (was, is) = (before.op(looped), after.op(*steady));
        let operands: Checked<Vec<Label>> = was.args.iter().map(|v| self.old_of(looped, *v)).collect();
        let frame = Frame::new(before, looped, &operands?, &mut self.labels);
        let (Some(frame), Some(body)) = (frame, is.regions.first()) else { return refuse(looped, "it has no body") };
        if was.kind != is.kind || is.args.len() < was.args.len() || is.results.len() < was.results.len() {
            return refuse(looped, "another loop is executed instead");
        }
        self.frames.push(frame);
        let compared = self.rewritten(looped, prologue, *steady, *body);
        self.frames.pop();
        compared?;
        // What a loop is entered with is its operand too.
        self.operands(looped, &was.args, &is.args)?;
        self.touch(looped, *steady)?;
        for more in is.results.get(was.results.len()..).unwrap_or_default() {
            let label = self.labels.unknown(frame::roots_of_unknown(after, *more));
            self.new.insert(*more, label);
        }
        Ok(())
    }

    /// The loop that is being compared.
    fn frame(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    /// Finds what the values of the loop are that is being compared, up to an iteration.
    fn find(&mut self, upto: At) {
        let Some(mut frame) = self.frames.pop() else { return };
        let outside = |value: Value| {
            let inner = || self.frames.iter().rev().find_map(|frame| frame.get(value, frame.at));
            self.old.get(&value).copied().or_else(inner)
        };
        frame.find(self.before, &mut self.labels, upto, &outside);
        self.frames.push(frame);
    }

    fn rewritten(&mut self, looped: OpId, prologue: &[OpId], steady: OpId, body: Block) -> Checked {
        let (before, after) = (self.before, self.after);
        let no_loop = || Violation { op: looped, message: "it is not executed".to_owned() };
        self.execute(looped, prologue, At { relative: false, n: -1 }, &SortedMap::new())?;
        let frame = self.frame().ok_or_else(no_loop)?;
        let (leads, carried, ops, end) = (frame.counts.clone(), frame.carried.clone(), frame.ops.clone(), frame.end);
        let passes = frame.passes();
        let most = leads.values().copied().max().unwrap_or(0);
        let (Some((made_end, made)), args) = (after.block(body).ops.split_last(), after.block(body).args.clone())
        else {
            return refuse(looped, "it has no body");
        };
        let several = most > 0 && (is_distributed(before, looped) || ops.iter().any(|id| leaves(before, *id, 0)));
        if several || most > 0 && before.op(end).kind != OpKind::Continue(0) {
            return refuse(looped, "its iterations are not known in advance, so that none can run ahead");
        }
        let bounds = usize::from(before.op(looped).kind != OpKind::Loop);
        let (counter, inside) = args.split_at(bounds.min(args.len()));
        let old_counter = before.op(looped).regions.first().and_then(|body| before.block(*body).args.first().copied());
        let entered = after.op(steady).args.get(bounds * 3..).unwrap_or_default();
        let mut state: Vec<Label> = entered.iter().map(|v| self.new_of(looped, *v)).collect::<Checked<_>>()?;
        let meanings: Option<Vec<(Value, i32)>> =
            (0..inside.len()).map(|place| self.meaning(inside, after.op(*made_end), place, &carried)).collect();
        let Some(meanings) = meanings.filter(|all| all.len() == state.len()) else {
            return refuse(looped, "it carries a value that belongs to no iteration");
        };
        let reach = meanings.iter().map(|(_, ahead)| *ahead).fold(most, i32::max);
        // No schedule of a well-formed kernel has more stages than fit.
        let iterations = 2 * most + 3 + i32::try_from(passes).unwrap_or(0);
        let mut turns: Vec<At> = (0..iterations).map(|n| At { relative: false, n }).collect();
        turns.push(At { relative: true, n: 0 });
        if before.op(end).kind != OpKind::Continue(0) {
            // The loop is left in its first iteration, if not before its end.
            turns.truncate(1);
        }
        for turn in turns {
            self.find(turn.later(reach));
            let frame = self.frame().ok_or_else(no_loop)?;
            if turn.relative {
                // What is carried is what the meanings say, whatever the number of the iteration is.
                state = meanings
                    .iter()
                    .map(|(v, c)| frame.get(*v, turn.later(*c)))
                    .collect::<Option<_>>()
                    .ok_or_else(no_loop)?;
                frame.counts = leads.clone();
            }
            frame.at = turn;
            let at_begin = old_counter.and_then(|v| frame.get(v, turn));
            if !meant(frame, turn, &meanings, &state) {
                return refuse(looped, "it carries a value that belongs to another iteration");
            }
            self.new.extend(counter.iter().zip(at_begin).map(|(v, label)| (*v, label)));
            self.new.extend(inside.iter().copied().zip(state.iter().copied()));
            self.execute(looped, made, turn, &leads)?;
            let frame = self.frame().ok_or_else(no_loop)?;
            frame.at = turn;
            let once = |id: &OpId| frame.counts.get(id) == leads.get(id).map(|lead| lead + 1 + turn.n).as_ref();
            if let Some(id) = ops.iter().find(|id| !is_computed(before, before.op(**id)) && !once(id)) {
                return refuse(*id, "it is not executed once in each iteration");
            }
            let (was, is) = (before.op(end), after.op(*made_end));
            if was.kind != is.kind || is.args.len() < was.args.len() {
                return refuse(end, "another operation is executed instead");
            }
            self.operands(end, &was.args, &is.args)?;
            self.touch(end, *made_end)?;
            state = is.args.iter().map(|v| self.new_of(end, *v)).collect::<Checked<_>>()?;
        }
        let next = At { relative: true, n: 1 };
        self.find(next.later(reach));
        let frame = self.frame().ok_or_else(no_loop)?;
        if before.op(end).kind == OpKind::Continue(0) && !meant(frame, next, &meanings, &state) {
            return refuse(looped, "it carries a value that belongs to another iteration");
        }
        Ok(())
    }

    /// What the steady loop carries at a place, and how many iterations ahead: first what the loop before carries, then results of operations
    /// of the body, as the operation states that computes what is passed on. That it is true is checked.
    fn meaning(&self, inside: &[Value], end: &Op, mut place: usize, carried: &[Value]) -> Option<(Value, i32)> {
        let mut passed = 0;
        // Values that are only passed on from one place to another are as many iterations less ahead.
        for _ in 0..=inside.len() {
            if let Some(value) = carried.get(place) {
                return (passed == 0).then_some((*value, 0));
            }
            let next = end.args.get(place)?;
            passed += 1;
            if let Some(from) = inside.iter().position(|v| v == next) {
                place = from;
                continue;
            }
            let Def::Result(id, result) = self.after.value(*next).def else { return None };
            let Origin { op, ahead } = self.after.op(id).origin?;
            let value = self.before.ops.get(op.index())?.results.get(result)?;
            return Some((*value, i32::from(ahead) - passed));
        }
        None
    }

    /// Executes operations of the kernel after, in the prologue or in an iteration of the steady loop.
    fn execute(&mut self, looped: OpId, made: &[OpId], turn: At, leads: &SortedMap<OpId, i32>) -> Checked {
        let after = self.after;
        let mut rest = made;
        while let Some((id, others)) = rest.split_first() {
            let op = after.op(*id);
            if is_computed(after, op) {
                let args: Checked<Vec<Label>> = op.args.iter().map(|v| self.new_of(looped, *v)).collect();
                let results = self.labels.computed(after, op, args?);
                self.new.extend(op.results.iter().copied().zip(results));
                rest = others;
                continue;
            }
            let Some(old) = self.origin(*id).and_then(|origin| self.of_body(looped, origin)) else {
                return refuse(looped, "an operation is executed that is not of its body");
            };
            // A nested loop with a schedule begins with its prologue.
            let number = match self.is_scheduled(old) {
                true => rest.iter().position(|id| self.origin(*id) == Some(old)).map(|at| at + 1),
                false => Some(1),
            };
            let Some((unit, others)) = number.and_then(|number| rest.split_at_checked(number)) else {
                return refuse(old, "it is not executed");
            };
            self.once(old, unit, turn, leads)?;
            rest = others;
        }
        Ok(())
    }

    /// The operation of a loop's body that an operation belongs to.
    fn of_body(&self, looped: OpId, mut id: OpId) -> Option<OpId> {
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
    fn once(&mut self, old: OpId, unit: &[OpId], turn: At, leads: &SortedMap<OpId, i32>) -> Checked {
        let before = self.before;
        let Some(frame) = self.frame() else { return refuse(old, "it is not executed") };
        let Some(count) = frame.counts.get_mut(&old) else { return refuse(old, "it is not executed") };
        // While the number of the iteration is relative, executions are counted from that number on.
        let at = At { n: *count, ..turn };
        *count += 1;
        frame.at = at;
        frame.phantom = match leads.get(&old) {
            Some(lead) => *lead > 0,
            None => true,
        };
        let place = frame.ops.iter().position(|id| *id == old).unwrap_or(0);
        frame.now = (!at.relative).then_some((at.n, place));
        if leaves(before, old, 0) && !frame.touch(touches::Object::Everything, true) {
            return refuse(old, "the schedule exchanges the end of the loop with an operation that has an effect");
        }
        self.find(at);
        let last = unit.last().copied().unwrap_or(old);
        if self.is_scheduled(old) {
            self.expanded(old, unit)?;
        } else {
            self.same(old, last)?;
        }
        let results: Vec<Option<Label>> = {
            let Some(frame) = self.frame() else { return Ok(()) };
            (frame.at, frame.now, frame.phantom) = (at, None, false);
            self.before.op(old).results.iter().map(|v| self.frames.last().and_then(|frame| frame.get(*v, at))).collect()
        };
        for (new, label) in self.after.op(last).results.iter().zip(results) {
            self.new.extend(label.map(|label| (*new, label)));
        }
        Ok(())
    }
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
fn leaves(kernel: &Kernel, id: OpId, loops: u32) -> bool {
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
