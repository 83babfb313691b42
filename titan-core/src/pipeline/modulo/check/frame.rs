//! A loop whose expansion is checked: what the values of its body are in each iteration, as the kernel before says.

use super::labels::{At, Label, Labels, is_computed};
use super::touches::{Object, numbered};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{ForKind, Kernel, OpId, OpKind, Ty, Value};

/// The place of an execution in the order of the kernel before: the iteration, and the place in the body.
pub(super) type Moment = (i32, usize);

/// A loop of the kernel before.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) looped: OpId,
    /// The operations of the body without its terminator.
    pub(super) ops: Vec<OpId>,
    pub(super) end: OpId,
    counter: Option<Value>,
    /// Whether its iterations are dealt to programs, so that the next counter is not one step later.
    is_distributed: bool,
    /// What iterations pass on: the arguments of the body, what they are first, and what is passed on.
    pub(super) carried: Vec<Value>,
    pub(super) initial: Vec<Label>,
    pub(super) next: Vec<Value>,
    lo: Label,
    hi: Label,
    step: Label,
    /// The iteration whose operation is being compared.
    pub(super) at: At,
    /// The labels of the values of the body by iterations, which are found for whole iterations, in order.
    labels: SortedMap<(At, Value), Label>,
    found: SortedMap<bool, i32>,
    /// For each operation, how often it has been executed.
    pub(super) counts: SortedMap<OpId, i32>,
    /// The stages and slots of rings that operations touch in the first iteration ([`numbered`]).
    pub(super) numbers: SortedMap<OpId, (Object, bool, i32)>,
    /// When the execution that is being compared has its turn in the kernel before; `None` while iterations are relative.
    pub(super) now: Option<Moment>,
    /// Whether its first and its last iteration stand apart, so that all operations are executed for iterations that exist.
    pub(super) peeled: bool,
    /// Whether this execution belongs to an iteration that the loop may not have.
    pub(super) phantom: bool,
    /// Operations that are executed only if their iteration exists, and those that are executed though it may not.
    pub(super) guarded: SortedSet<OpId>,
    pub(super) unguarded: SortedSet<OpId>,
    /// For each object, the latest turns so far of an execution that touches it, and of one that changes it.
    latest: SortedMap<Object, (Moment, Option<Moment>)>,
    /// What executions touch and whether they change it, in their order, if that is to be recorded.
    pub(super) log: Option<Vec<Touch>>,
}

/// An execution that touches an object: when it has its turn, and whether it changes the object.
pub(super) type Touch = (Moment, Object, bool);

impl Frame {
    /// `bounds` are the labels of the loop's operands; a `loop` has none but what it carries.
    pub(super) fn new(kernel: &Kernel, looped: OpId, operands: &[Label], labels: &mut Labels) -> Option<Frame> {
        let op = kernel.op(looped);
        let is_for = op.kind != OpKind::Loop;
        let body = kernel.block(*op.regions.first()?);
        let (end, ops) = body.ops.split_last()?;
        let zero = labels.constant(0);
        let (bounds, initial) = operands.split_at_checked(if is_for { 3 } else { 0 })?;
        Some(Frame {
            looped,
            ops: ops.to_vec(),
            end: *end,
            is_distributed: op.kind == OpKind::For(ForKind::Distributed),
            counter: body.args.first().copied().filter(|_| is_for),
            carried: body.args.get(usize::from(is_for)..)?.to_vec(),
            initial: initial.to_vec(),
            next: kernel.op(*end).args.clone(),
            lo: bounds.first().copied().unwrap_or(zero),
            hi: bounds.get(1).copied().unwrap_or(zero),
            step: bounds.get(2).copied().unwrap_or(zero),
            at: At { relative: false, n: 0 },
            labels: SortedMap::new(),
            found: SortedMap::new(),
            numbers: numbered(kernel, ops),
            counts: ops.iter().map(|id| (*id, 0)).collect(),
            now: None,
            peeled: false,
            phantom: false,
            guarded: SortedSet::new(),
            unguarded: SortedSet::new(),
            latest: SortedMap::new(),
            log: None,
        })
    }

    /// The labels of its bounds and its step.
    pub(super) const fn bounds(&self) -> [Label; 3] {
        [self.lo, self.hi, self.step]
    }

    /// The label of a value of the body in an iteration that was found.
    pub(super) fn get(&self, value: Value, at: At) -> Option<Label> {
        self.labels.get(&(at, value)).copied()
    }

    /// For how many iterations a value that the loop was entered with is passed on at most, before it has been used up; a value that is passed
    /// on for ever counts once for each place.
    pub(super) fn passes(&self) -> usize {
        // For `carry(a, b, c)` that continues with `(b, c, new)`, what c was entered with is in a after two iterations:
        // three places, and after the third iteration nothing of it is left. The chain is cut off after as many links
        // as there are places, since the places may form a circle.
        let next = |value: &Value| {
            let place = self.carried.iter().position(|carried| carried == value)?;
            self.next.get(place).filter(|next| self.carried.contains(next)).copied()
        };
        let most = self.carried.len();
        let chain = |value: &Value| std::iter::successors(Some(*value), next).take(most + 1).count();
        self.carried.iter().map(chain).max().unwrap_or(0)
    }

    /// Finds the labels of all values of the body up to an iteration. `outside` knows the values from outside of the loop.
    ///
    /// This ends, since iterations are found one after the other, and in each the values in the order of the body, so that operands are known
    /// before results.
    pub(super) fn find(
        &mut self,
        kernel: &Kernel,
        labels: &mut Labels,
        upto: At,
        outside: &dyn Fn(Value) -> Option<Label>,
    ) {
        // Iterations are found once, from the first on, since one begins with what the one before has passed on.
        let from = self.found.get(&upto.relative).map_or(0, |last| last + 1);
        for n in from..=upto.n {
            self.find_one(kernel, labels, At { n, ..upto }, outside);
            self.found.insert(upto.relative, n);
        }
    }

    fn find_one(&mut self, kernel: &Kernel, labels: &mut Labels, at: At, outside: &dyn Fn(Value) -> Option<Label>) {
        if let Some(counter) = self.counter {
            let label = if self.is_distributed {
                // The next counter of a distributed loop is any later number. A label of its own makes every operand
                // that depends on it equal to itself only.
                labels.unknown(Some(Vec::new()))
            } else {
                labels.counter(self.looped, self.lo, self.step, at)
            };
            self.labels.insert((at, counter), label);
        }
        for (place, value) in self.carried.clone().into_iter().enumerate() {
            let passed = self.next.get(place).copied();
            let label = match (at.n, at.relative) {
                // What an iteration of any number begins with has no other label than that.
                (0, true) => Some(labels.unknown(roots_of_unknown(kernel, value))),
                (0, false) => self.initial.get(place).copied(),
                // What iteration n - 1 passed on. It was found already: iterations are found in order.
                (_, _) => passed.and_then(|v| self.get(v, at.later(-1)).or_else(|| outside(v))),
            };
            // A kernel that passes on less than it carries is not well-formed; its values then have labels of their own.
            let label = label.unwrap_or_else(|| labels.unknown(None));
            self.labels.insert((at, value), label);
        }
        for id in self.ops.clone() {
            let op = kernel.op(id);
            let args: Option<Vec<Label>> = op.args.iter().map(|v| self.get(*v, at).or_else(|| outside(*v))).collect();
            let args = args.unwrap_or_default();
            // Numbers and names are terms of their operands, all else is an instance: (o, n), which is equal to itself
            // only. The rewritten loop gets this label for what it executes, after its operands were found equal.
            let results = results(kernel, id, args, labels, |labels, roots| labels.instance(id, roots));
            self.labels.extend(op.results.iter().map(|v| (at, *v)).zip(results));
        }
    }

    /// Whether a condition that is evaluated in one iteration, or, if its number is negative, before the loop, says that another one exists.
    ///
    /// In an iteration, the condition is `counter < hi - m`, where m is the distance to the other one. The iteration exists, so `hi` is greater
    /// than the counter, which is at least `lo`, and `hi - m` does not wrap if `lo - m` does not. Before the loop, it is `n < hi`, where n
    /// is the counter of the other one, and must not have wrapped.
    pub(super) fn says_exists(&self, condition: Label, here: At, at: At, labels: &mut Labels) -> bool {
        let (Some([x, y]), Some(lo), Some(step)) =
            (labels.less(condition), labels.known(self.lo), labels.known(self.step))
        else {
            return false;
        };
        // For lo = 0, step = 1 and a fill that runs 2 ahead, the condition is `counter < hi - 2`. In iteration i of a
        // loop that has it, 0 ≤ i < hi, so hi - 2 ≥ -1 does not wrap, and i < hi - 2 says that iteration i + 2 exists.
        // With lo = -2³¹ and hi = lo + 1, hi - 2 would wrap to a great number and the condition would hold for an
        // iteration that does not exist: `fits(lo - distance)` refuses that.
        let fits = |n: i64| i32::try_from(n).is_ok();
        let (lo, step) = (i64::from(lo), i64::from(step));
        if here.n < 0 {
            // Before the loop no iteration is known to exist, so nothing may be subtracted from `hi`: the condition
            // compares the counter itself.
            let counter = lo + i64::from(at.n) * step;
            return step > 0 && y == self.hi && fits(counter) && labels.known(x).map(i64::from) == Some(counter);
        }
        // If both are relative, their difference is a number nevertheless, and the labels of `counter` and `hi -
        // distance` are those for any iteration.
        let distance = i64::from(at.n - here.n) * step;
        let counter = labels.counter(self.looped, self.lo, self.step, here);
        let below = labels.add(y, self.hi, -1);
        let is_below = labels.known(below).map(i64::from) == Some(-distance);
        step > 0 && distance >= 0 && x == counter && is_below && fits(lo - distance)
    }

    /// Notes that the execution that is being compared touches an object. Returns whether it has its turn before one that it must follow.
    ///
    /// In the order of the kernel before, executions of objects that one of them changes are in a total order. It is enough to compare with
    /// the latest ones: what is behind the latest turn is behind all.
    pub(super) fn touch(&mut self, object: Object, changes: bool) -> bool {
        let Some(now) = self.now else { return true };
        if let Some(log) = &mut self.log {
            log.push((now, object, changes));
        }
        // Example: executions with the turns (0, 5), (1, 5) and then (1, 0), all of which change one object. The last
        // of them is of iteration 1 and comes before (1, 5) in the loop before: (1, 5) is the latest turn and greater
        // than (1, 0), so the exchange is found. Executions that only touch the object need not follow each other, but
        // the last change.
        let entry = self.latest.entry(object).or_insert((now, None));
        let follows = if changes { entry.0 <= now } else { entry.1.is_none_or(|last| last <= now) };
        entry.0 = entry.0.max(now);
        if changes {
            entry.1 = Some(entry.1.map_or(now, |last| last.max(now)));
        }
        follows
    }
}

/// The labels of the results of an operation. `own` makes the label of a result that stands for itself, with the memory that it names, if it
/// is not its own.
pub(super) fn results(
    kernel: &Kernel,
    id: OpId,
    args: Vec<Label>,
    labels: &mut Labels,
    mut own: impl FnMut(&mut Labels, Option<Vec<Label>>) -> Label,
) -> Vec<Label> {
    let op = kernel.op(id);
    if is_computed(kernel, op) {
        return labels.computed(kernel, op, args);
    }
    // A name that an operation makes of others is one of their memory; one that comes out of a branch or a loop, of any memory.
    let named = |labels: &Labels| {
        let anywhere = (!op.regions.is_empty()).then_some(Labels::ANYWHERE);
        args.iter().flat_map(|arg| labels.roots(*arg)).copied().chain(anywhere).collect::<Vec<Label>>()
    };
    let results = op.results.iter();
    results
        .map(|value| {
            let roots = match kernel.ty(*value) {
                Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) => Some(named(labels)).filter(|named| !named.is_empty()),
                // An MMA in flight reads the memory of its operands, and of those before it.
                Ty::Compute(..) => Some(named(labels)),
                Ty::Token(..) | Ty::Acc(..) | Ty::Barrier(_) => None,
                Ty::Scalar(_) | Ty::Tile(..) => Some(Vec::new()),
            };
            own(labels, roots)
        })
        .collect()
}

/// The memory that a value names of which no more is known than its type; `None` if it is its own.
pub(super) fn roots_of_unknown(kernel: &Kernel, value: Value) -> Option<Vec<Label>> {
    match kernel.ty(value) {
        // A parameter names the memory of its tensor, all other names any memory.
        Ty::Tensor(..) if value.index() < kernel.sig.params.len() => None,
        Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) => Some(vec![Labels::ANYWHERE]),
        Ty::Token(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Barrier(_) => None,
        Ty::Scalar(_) | Ty::Tile(..) => Some(Vec::new()),
    }
}
