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
//! Terms are compared where something that is compared uses them: as an operand, as what is carried or as a condition. A term that nothing uses may
//! be any, also one of other operands than the loop before has, and nothing shows it: the operation has the effect
//! [`Effect::Pure`](crate::ir::Effect), so that it changes nothing, touches no memory, and has a result for all operands. An integer divided by zero
//! is 0; a name, even one of a part that is outside of its tile, matters where memory is accessed by it, and there it is compared.
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
//! Deliberately absent: freedom from deadlock, and the capacity of rings that a loop accesses in branches or inner loops ([`touches`]), which are shown
//! of barrier programs; that sums do not wrap in iterations that do not exist, where no tensor is accessed.

mod frame;
mod labels;
mod meaning;
mod peeled;
mod recorded;
mod registers;
mod rewritten;
mod touches;

use super::Violation;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Kernel, NvOp, OpId, OpKind, Ty, Value};
use frame::{Frame, Touch};
use labels::{At, Label, Labels, is_computed};
pub use recorded::{Dependence, Dependent, Why, dependences};

/// Checks that a kernel is another one with the loops expanded that have schedules there.
///
/// Both kernels must be well-formed, so that values are defined where they are used.
///
/// # Errors
/// The first operation of the kernel before of which this cannot be shown.
pub fn check(before: &Kernel, after: &Kernel) -> Result<(), Violation> {
    compared(before, after, None).map(drop)
}

/// Checks it; what executions of the operations of loops touch, if that is to be recorded for so many iterations at least.
fn compared(before: &Kernel, after: &Kernel, recorded: Option<i32>) -> Checked<SortedMap<OpId, Vec<Touch>>> {
    let mut homes = SortedMap::new();
    before.walk(&mut |looped, op| {
        let bodies = op.regions.iter().flat_map(|body| &before.block(*body).ops);
        let planned: Vec<OpId> = bodies.copied().collect();
        if op.kind.is_loop() && planned.iter().any(|id| before.op(*id).planned.is_some()) {
            homes.extend(planned.into_iter().map(|id| (id, looped)));
        }
    });
    // Without a schedule nothing may change, and equal kernels need no comparison. If there is no schedule and the
    // kernels differ, the comparison goes on and finds where.
    if homes.is_empty() && before == after {
        return Ok(SortedMap::new());
    }
    let declared =
        |kernel: &Kernel| (kernel.sig.clone(), kernel.pipes.clone(), kernel.roles.clone(), kernel.laid_out.clone());
    // Rings, roles and layouts are compared as wholes: operations refer to them by number, so that equal operations
    // mean the same below.
    if declared(before) != declared(after) {
        return refuse(OpId::new(0), "its signature, rings, roles or layouts are others");
    }
    if let Some(product) = registers::moved_in_flight(after) {
        let op = after.op(product).origin.map_or(OpId::new(0), |origin| origin.op);
        return refuse(
            op,
            "its product is in flight at the end of an iteration, and the next one does not continue it",
        );
    }
    let fences = registers::fences(before, &|id| homes.contains_key(&id));
    // An MMA of the kernel after is compared with the one that it says it is.
    let fence = |id: OpId| after.op(id).origin.and_then(|origin| fences.get(&origin.op).copied());
    let in_registers = registers::operands_in_registers(after, &fence);
    let mut check = Check {
        before,
        after,
        homes,
        fences,
        in_registers,
        labels: Labels::new(),
        old: SortedMap::new(),
        new: SortedMap::new(),
        frames: Vec::new(),
        recorded,
        touched: SortedMap::new(),
    };
    // Parameters are the first values of both kernels, since the signatures are equal.
    for (old, new) in (0..before.sig.params.len()).map(|i| (Value::new(i), Value::new(i))) {
        check.bind(&[old], &[new]);
    }
    check.blocks(before.body, after.body)?;
    Ok(check.touched)
}

type Checked<T = ()> = Result<T, Violation>;

/// What the kernel after executes for one operation of the kernel before.
struct Unit<'o> {
    prologue: &'o [OpId],
    main: OpId,
    /// What is executed after a loop of iterations beyond its last one.
    rest: &'o [OpId],
    /// What follows.
    others: &'o [OpId],
}

/// Where operations of the kernel after are executed.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The iteration of the steady loop; a negative one is before it.
    turn: At,
    /// How far ahead of the steady loop each operation is executed, once that is known.
    leads: Option<&'p SortedMap<OpId, i32>>,
    /// Whether this is after the loop.
    beyond: bool,
    /// The condition under which they are executed.
    guard: Option<Label>,
}

struct Check<'k> {
    before: &'k Kernel,
    after: &'k Kernel,
    /// The loops with schedules, by the operations of their bodies.
    homes: SortedMap<OpId, OpId>,
    /// The fences in front of warpgroup MMAs in the bodies of these loops.
    fences: SortedMap<OpId, OpId>,
    /// Tiles in registers that warpgroup MMAs of the kernel after read, with the fences in front of these.
    in_registers: SortedMap<Value, SortedSet<Option<OpId>>>,
    labels: Labels,
    /// The values of the kernel before outside of the bodies of loops with schedules, and inside of operations that are compared.
    old: SortedMap<Value, Label>,
    /// The values of the kernel after.
    new: SortedMap<Value, Label>,
    /// The loops with schedules that are being compared, from the outermost one on.
    frames: Vec<Frame>,
    /// For how many iterations at least it is recorded what executions touch, if it is.
    recorded: Option<i32>,
    /// What they touch, by loops.
    touched: SortedMap<OpId, Vec<Touch>>,
}

/// Whether values of two kernels have the same types and places: a tile that is read in another layout than it was written is another tile.
fn alike((before, old): (&Kernel, &[Value]), (after, new): (&Kernel, &[Value])) -> bool {
    let is_like = |(old, new): (&Value, &Value)| {
        before.ty(*old) == after.ty(*new) && before.value(*old).place == after.value(*new).place
    };
    old.len() == new.len() && old.iter().zip(new).all(is_like)
}

fn refuse<T>(op: OpId, message: &str) -> Checked<T> {
    Err(Violation { op, message: message.to_owned() })
}

fn refuse_exchange<T>(op: OpId, object: touches::Object) -> Checked<T> {
    let why = object.words();
    refuse(op, &format!("the schedule exchanges it with an operation that it must precede or follow, because of {why}"))
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
        // Values outside of loops with schedules have one label. One of a body has a label for each iteration, and
        // meant is the iteration of the operation that is being compared: `frame.at`, in each loop around it.
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
        if !alike((before, &before.block(old).args), (after, &after.block(new).args)) {
            let first = before.block(old).ops.first().copied();
            return refuse(first.unwrap_or(OpId::new(0)), "its block has other arguments");
        }
        self.bind(&before.block(old).args, &after.block(new).args);
        let mut rest = after.block(new).ops.as_slice();
        for id in &before.block(old).ops {
            // `rest` gets shorter by at least the main operation of the unit, and what is left at the end was asked for
            // by nothing.
            let Some(unit) = self.unit(*id, rest) else { return refuse(*id, "it is not executed") };
            rest = unit.others;
            let last = unit.main;
            if self.is_scheduled(*id) {
                self.expanded(*id, &unit)?;
            } else {
                self.same(*id, last, false)?;
            }
            let args: Checked<Vec<Label>> = before.op(*id).args.iter().map(|v| self.old_of(*id, *v)).collect();
            let own = |labels: &mut Labels, roots| labels.unknown(roots);
            // Both results get one label only after kinds, operands and nested operations were found equal. This is the
            // step of the induction over executions that makes equal labels mean equal values.
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

    /// What is executed for an operation of the kernel before: for a loop with a schedule, operations before and after it too.
    fn unit<'o>(&self, id: OpId, rest: &'o [OpId]) -> Option<Unit<'o>> {
        if !self.is_scheduled(id) {
            let (main, others) = rest.split_first()?;
            return Some(Unit { prologue: &[], main: *main, rest: &[], others });
        }
        // Where a unit begins and ends is told by origins, which the rewriter wrote and which may be false. Then the
        // unit is another list of operations, and either one of them is not of the body or one is missing: both are
        // refused when the list is executed.
        let (prologue, behind) = rest.split_at_checked(rest.iter().position(|made| self.origin(*made) == Some(id))?)?;
        let (main, behind) = behind.split_first()?;
        let of_loop = |made: &&OpId| self.origin(**made).is_some_and(|op| self.of_body(id, op).is_some());
        let (rest, others) = behind.split_at_checked(behind.iter().take_while(of_loop).count())?;
        Some(Unit { prologue, main: *main, rest, others })
    }

    /// Compares an operation of each kernel, with those nested in them. Their results have no labels yet.
    ///
    /// `beyond` says that the execution may be one for an iteration that does not exist, although it has an effect.
    fn same(&mut self, old: OpId, new: OpId, beyond: bool) -> Checked {
        let (before, after) = (self.before, self.after);
        let (was, is) = (before.op(old), after.op(new));
        // Attributes are in the kind. Results must have the type and the place of before, since layouts are given for
        // places.
        if was.kind != is.kind
            || was.args.len() != is.args.len()
            || was.regions.len() != is.regions.len()
            || !alike((before, &was.results), (after, &is.results))
        {
            return refuse(old, "another operation is executed instead");
        }
        match (&was.kind, &was.args[..], &is.args[..]) {
            (OpKind::Nv(NvOp::Wgmma), [of_old @ .., sum], [of_new @ .., made]) => {
                self.operands(old, of_old, of_new)?;
                self.accumulator(old, *sum, *made)?;
            }
            (_, old_args, new_args) => self.operands(old, old_args, new_args)?,
        }
        self.touch(old, new, beyond)?;
        was.regions.iter().zip(&is.regions).try_for_each(|(was, is)| self.blocks(*was, *is))
    }

    fn operands(&self, id: OpId, old: &[Value], new: &[Value]) -> Checked {
        for (old, new) in old.iter().zip(new) {
            // Different labels may be equal values. Refusing them is safe, and the rewriter makes no others.
            if self.old_of(id, *old)? != self.new_of(id, *new)? {
                return refuse(id, "it is executed with an operand of another iteration");
            }
        }
        Ok(())
    }

    /// Notes what an execution touches in the loops around it.
    fn touch(&mut self, old: OpId, new: OpId, beyond: bool) -> Checked {
        let op = self.after.op(new);
        let args: Checked<Vec<Label>> = op.args.iter().map(|v| self.new_of(old, *v)).collect();
        let mut args = args?;
        // A product that adds to one in flight uses it in place of its result: what that touches was noted with the wait for it
        // (`accumulator`).
        if let (OpKind::Nv(NvOp::Wgmma), [.., made], Some(sum)) =
            (&op.kind, &mut args[..], self.before.op(old).args.last())
        {
            *made = self.old_of(old, *sum)?;
        }
        let fence = self.fences.get(&old).copied();
        let mut touches = touches::touches([self.before, self.after], (op, fence), &args, &self.labels);
        for fence in op.results.iter().filter_map(|v| self.in_registers.get(v)).flat_map(SortedSet::iter) {
            touches.objects.push((touches::Object::Registers, false));
            touches.objects.extend(fence.map(|fence| (touches::Object::Fenced(fence), false)));
        }
        // Beyond the last iteration, numbers may be any: steps of 0, places beyond the end of a tile.
        let is_fixed = |place: usize| args.get(place).is_some_and(|label| self.labels.is_fixed(*label));
        // A phantom must end. A `for` with a constant step does, since that step is positive (rule 21, T0504).
        let may_not_end = op.kind == OpKind::Loop
            || matches!(op.kind, OpKind::For(_)) && args.get(2).is_none_or(|step| self.labels.known(*step).is_none());
        let beyond_end = (0..op.args.len()).any(|place| {
            let is_name = matches!(self.after.ty(op.args[place]), Ty::Smem(..));
            is_name && !is_computed(self.after, op) && !is_fixed(place)
        });
        let may_not_end = may_not_end || beyond_end;
        // What would show if the iteration does not exist: an access to a tensor, which may end before it; not to come
        // back; a change of anything that others touch. Reads of stages and buffers show nothing.
        let shows = touches.of_tensors || may_not_end || touches.objects.iter().any(|(_, changes)| *changes);
        // An operation that is allowed in the innermost loop for iterations beyond its last one must still not be
        // executed for iterations that a loop around it does not have.
        let around = self.frames.split_last().filter(|_| beyond).map_or(&self.frames[..], |(_, around)| around);
        if shows && around.iter().any(|frame| frame.phantom) {
            return refuse(
                old,
                "the schedule executes this operation, which has an effect, for iterations that do not exist",
            );
        }
        for (object, changes) in touches.objects {
            // In every loop around: an exchange within one iteration of the inner loop is one within an iteration of
            // the outer loop, too, and what is carried by the outer loop alone must be in order there.
            for frame in &mut self.frames {
                if !frame.touch(object, changes) {
                    return refuse_exchange(old, object);
                }
            }
        }
        Ok(())
    }

    /// Compares a loop with a schedule with what is executed for it.
    fn expanded(&mut self, looped: OpId, unit: &Unit<'_>) -> Checked {
        let (before, after) = (self.before, self.after);
        let (was, is) = (before.op(looped), after.op(unit.main));
        let operands: Checked<Vec<Label>> = was.args.iter().map(|v| self.old_of(looped, *v)).collect();
        let frame = Frame::new(before, looped, &operands?, &mut self.labels);
        let (Some(mut frame), Some(body)) = (frame, is.regions.first()) else {
            return refuse(looped, "it has no body");
        };
        frame.log = (self.recorded.is_some() && !self.touched.contains_key(&looped)).then(Vec::new);
        if is.kind == OpKind::If {
            return self.apart(looped, unit, frame);
        }
        let same = is.results.get(..was.results.len());
        let differs = !same.is_some_and(|same| alike((before, &was.results), (after, same)));
        if was.kind != is.kind || is.args.len() < was.args.len() || differs {
            return refuse(looped, "another loop is executed instead");
        }
        // The frame is on the stack while its own body is compared, and off it before the loop itself is treated as one
        // operation of the loop around.
        self.frames.push(frame);
        let compared = self.rewritten(looped, unit, *body);
        let log = self.frames.pop().and_then(|frame| frame.log);
        compared?;
        self.touched.extend(log.map(|log| (looped, log)));
        // What a loop is entered with is its operand too.
        // Bounds and initial values of the loop before. Further values that the steady loop carries were compared as
        // its state.
        self.operands(looped, &was.args, &is.args)?;
        self.touch(looped, unit.main, false)?;
        // What the loop leaves in additional results is used by `Unit::rest` only, where `leave` has given it the label
        // of the state. Whatever else used it would get a label that is equal to nothing.
        for more in is.results.get(was.results.len()..).unwrap_or_default() {
            let label = self.labels.unknown(frame::roots_of_unknown(after, *more));
            self.new.insert(*more, label);
        }
        Ok(())
    }
}
