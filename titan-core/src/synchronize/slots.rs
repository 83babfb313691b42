//! Comparison of ring indices: whether two of them certainly select different slots.
//!
//! A clock of a ring of D slots is carried by loops, and advances by `next == D ? 0 : next`. So a slot is `root + k mod D`, with an unknown
//! root and a known `k`. The root of a constant is 0. The root of a carried value is an unknown number in each iteration, which is shared
//! by all clocks that start with equal values and advance by the same amount.
//!
//! ```text
//! for .. carry(%fill = 2, %read = 0)       %fill is L + 2, %read is L
//!     .. ring[%read] ..                    the slot L + 0
//!     .. ring[%fill] ..                    the slot L + 2: with 3 slots, a different one
//!     continue %fill + 1, %read + 1        both advance by 1: the former slot L + k is L + (k - 1) from here on
//! ```
//!
//! Deliberately absent: clocks that advance in some iterations only, which may select any slot.

use crate::analysis::uses::Tree;
use crate::collections::SortedMap;
use crate::ir::{BinOp, Block, Def, Kernel, OpId, OpKind, Pred, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// An unknown number, the same in all slots with this root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Root {
    Zero,
    /// The number in the current iteration of a loop, for clocks that started with the same value as this one.
    Loop(OpId, Value),
    /// The number after the loop.
    After(OpId, Value),
    /// The value itself.
    Value(Value),
}

/// The slot `root + k mod slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) root: Root,
    pub(super) k: u32,
    pub(super) slots: u32,
}

impl Slot {
    fn moved(self, by: i64) -> Slot {
        let k = (i64::from(self.k) + by).rem_euclid(i64::from(self.slots.max(1)));
        Slot { k: u32::try_from(k).unwrap_or(0), ..self }
    }

    /// Whether both are certainly different slots of one ring.
    pub(super) fn is_apart(self, other: Slot) -> bool {
        // L + j and L + k with 0 ≤ j, k < D are equal modulo D only if j = k, whatever L is.
        self.root == other.root && self.slots == other.slots && self.k != other.k
    }
}

/// How a loop advances the clocks that it carries.
#[derive(Clone, Debug, Default)]
struct Carried {
    /// The slot of each carried value inside of the loop.
    inside: Vec<Option<Slot>>,
    /// By how much each root has advanced at each `continue` and `break`; absent if unknown.
    moves: SortedMap<(OpId, Root), i64>,
}

/// The slots of the indices of a kernel.
pub(super) struct Slots<'k> {
    kernel: &'k Kernel,
    tree: &'k Tree,
    loops: RefCell<SortedMap<(OpId, u32), Rc<Carried>>>,
}

impl<'k> Slots<'k> {
    pub(super) const fn new(kernel: &'k Kernel, tree: &'k Tree) -> Self {
        Slots { kernel, tree, loops: RefCell::new(SortedMap::new()) }
    }

    /// The slot that an index selects, of `slots` slots.
    pub(super) fn of(&self, index: Value, slots: u32) -> Option<Slot> {
        let k = self.kernel;
        if let Some(c) = k.int_constant(index) {
            // A constant that is no slot names none.
            let k = u32::try_from(c).ok().filter(|c| *c < slots)?;
            return Some(Slot { root: Root::Zero, k, slots });
        }
        match k.value(index).def {
            Def::Param(_) => Some(Slot { root: Root::Value(index), k: 0, slots }),
            Def::BlockArg(block, at) => {
                let looped = self.tree.owner(block).filter(|o| k.op(*o).kind.is_loop())?;
                let at = at.checked_sub(self.skipped(looped))?;
                self.carried(looped, slots).inside.get(at).copied().flatten()
            }
            Def::Result(id, at) => self.of_result(index, id, at, slots),
        }
    }

    fn of_result(&self, index: Value, id: OpId, at: usize, slots: u32) -> Option<Slot> {
        let own = Slot { root: Root::Value(index), k: 0, slots };
        let op = self.kernel.op(id);
        if op.kind.is_loop() {
            let inside = self.carried(id, slots).inside.get(at).copied().flatten();
            let left = |slot: Slot| match slot.root {
                // After the loop, the clock is the root's value after the last iteration plus its distance, if each
                // exit passes it on as the root advanced.
                Root::Loop(of, first) if of == id && self.leaves_alike(id, at, slot) => {
                    Some(Slot { root: Root::After(id, first), ..slot })
                }
                Root::Loop(..) | Root::Zero | Root::After(..) | Root::Value(_) => None,
            };
            return inside.and_then(left).or(Some(own));
        }
        // The result of any other operation is an unknown number, which is a root by itself.
        match self.before(op.args.as_slice(), slots).filter(|_| op.kind == OpKind::Select) {
            // One step is + 1 modulo D, whether it wraps or not. The value before was defined earlier, so that going
            // back from step to step ends.
            Some(before) => Some(self.of(before, slots)?.moved(1)),
            None => Some(own),
        }
    }

    /// The value of a clock before `next == slots ? 0 : next`, where `next` is `before + 1`.
    fn before(&self, args: &[Value], slots: u32) -> Option<Value> {
        let k = self.kernel;
        let [wraps, zero, next] = args else { return None };
        let (cmp, sum) = (k.def_op(*wraps)?, k.def_op(*next)?);
        let wrapped = cmp.kind == OpKind::Cmp(Pred::Eq)
            && cmp.args.first() == Some(next)
            && k.int_constant(*cmp.args.get(1)?) == Some(i64::from(slots))
            && k.int_constant(*zero) == Some(0);
        let by_one = sum.kind == OpKind::Binary(BinOp::Add) && k.int_constant(*sum.args.get(1)?) == Some(1);
        (wrapped && by_one).then(|| sum.args.first().copied()).flatten()
    }

    /// The number of arguments of a loop body that are not carried: 1 for the index of a `for`.
    fn skipped(&self, looped: OpId) -> usize {
        usize::from(matches!(self.kernel.op(looped).kind, OpKind::For(_)))
    }

    /// The initial values of a loop.
    fn initial(&self, looped: OpId) -> &'k [Value] {
        let args = &self.kernel.op(looped).args;
        args.get(3 * self.skipped(looped)..).unwrap_or_default()
    }

    /// Whether every `break` of a loop passes `slot`, advanced as its root, to the result number `at`.
    fn leaves_alike(&self, looped: OpId, at: usize, slot: Slot) -> bool {
        let carried = self.carried(looped, slot.slots);
        self.edges(looped).into_iter().filter(|(_, leaves, _)| *leaves).all(|(edge, _, given)| {
            let by = carried.moves.get(&(edge, slot.root));
            by.is_some_and(|by| given.get(at).and_then(|v| self.of(*v, slot.slots)) == Some(slot.moved(*by)))
        })
    }

    /// The edges of a loop: for each, the terminator, whether it leaves the loop, and the values that it passes.
    fn edges(&self, looped: OpId) -> Vec<(OpId, bool, &'k [Value])> {
        let mut found = Vec::new();
        if let Some(body) = self.kernel.op(looped).regions.first() {
            self.edges_in(*body, 0, &mut found);
        }
        found
    }

    fn edges_in(&self, block: Block, depth: u32, found: &mut Vec<(OpId, bool, &'k [Value])>) {
        for id in &self.kernel.block(block).ops {
            let op = self.kernel.op(*id);
            if let OpKind::Continue(n) | OpKind::Break(n) = op.kind
                && n == depth
            {
                found.push((*id, matches!(op.kind, OpKind::Break(_)), &op.args));
            }
            let inner = depth + u32::from(op.kind.is_loop());
            op.regions.iter().for_each(|r| self.edges_in(*r, inner, found));
        }
    }

    /// The slots that a loop carries. First, all clocks that start with equal values are assumed to advance alike; then those that do not
    /// are removed, until the assumption holds for the rest.
    fn carried(&self, looped: OpId, slots: u32) -> Rc<Carried> {
        if let Some(known) = self.loops.borrow().get(&(looped, slots)) {
            return Rc::clone(known);
        }
        let kernel = self.kernel;
        let initial: Vec<Option<Slot>> = self.initial(looped).iter().map(|v| self.of(*v, slots)).collect();
        let body = kernel.op(looped).regions.first().map_or(&[][..], |b| &kernel.block(*b).args);
        let args = body.get(self.skipped(looped)..).unwrap_or_default();
        let first = |slot: &Slot| {
            let alike = |s: &Option<Slot>| s.is_some_and(|s| s.root == slot.root);
            initial.iter().position(alike).and_then(|i| args.get(i)).copied()
        };
        // Fill at 2 and read at 0, both from the root of constants: inside of the loop they are L + 2 and L + 0, L
        // being the value in the loop of whichever comes first of those with this root.
        let inside = initial.iter().map(|slot| {
            let slot = (*slot)?;
            Some(Slot { root: Root::Loop(looped, first(&slot)?), ..slot })
        });
        let mut now = Carried { inside: inside.collect(), moves: SortedMap::new() };
        // The assumption is an induction hypothesis: if it holds at the head, and `check` finds that every edge to the head moves all clocks
        // of a root by the same distance, then it holds in the next iteration too. Each round drops a clock or ends, so the rounds end.
        loop {
            self.loops.borrow_mut().insert((looped, slots), Rc::new(now.clone()));
            let (moves, wrong) = self.check(looped, slots, &now);
            now.moves = moves;
            if wrong.is_empty() {
                break;
            }
            for at in wrong {
                // A clock that advances differently may select any slot.
                now.inside[at] = None;
            }
            // The results for nested loops may depend on the assumption that was dropped.
            self.loops.borrow_mut().retain(|(of, _), _| !self.tree.around(*of).any(|o| o == looped));
        }
        let now = Rc::new(now);
        self.loops.borrow_mut().insert((looped, slots), Rc::clone(&now));
        now
    }

    /// By how much roots advance along each edge; and the carried values that do not advance with their root.
    fn check(&self, looped: OpId, slots: u32, now: &Carried) -> (SortedMap<(OpId, Root), i64>, Vec<usize>) {
        let (mut moves, mut wrong) = (SortedMap::new(), Vec::new());
        for (edge, leaves, given) in self.edges(looped) {
            for (at, slot) in now.inside.iter().enumerate() {
                let (Some(slot), Some(value)) = (slot, given.get(at)) else { continue };
                let by = self.of(*value, slots).filter(|to| to.root == slot.root);
                // The distance from the slot at the head to the slot that is passed on, as a number below D: all clocks of the root must
                // have moved by it. An edge that leaves the loop may differ; then the result of the loop is an unknown slot.
                let by = by.map(|to| i64::from(to.k) - i64::from(slot.k));
                let Some(by) = by.map(|by| by.rem_euclid(i64::from(slots.max(1)))) else {
                    if !leaves {
                        wrong.push(at);
                    }
                    continue;
                };
                let known = *moves.entry((edge, slot.root)).or_insert(by);
                if known != by && !leaves {
                    wrong.push(at);
                }
            }
        }
        (moves, wrong)
    }

    /// The slot inside of a loop that is the same as a slot before it.
    pub(super) fn entering(&self, looped: OpId, slot: Slot) -> Option<Slot> {
        let carried = self.carried(looped, slot.slots);
        let initial = self.initial(looped).iter().map(|v| self.of(*v, slot.slots));
        let same = initial.zip(&carried.inside).find_map(|(initial, inside)| match (initial, inside) {
            (Some(initial), Some(inside)) if initial.root == slot.root => Some(inside.root),
            (_, _) => None,
        });
        Some(Slot { root: same.unwrap_or(slot.root), ..slot })
    }

    /// The arguments of a loop body for the carried values.
    fn carries(&self, looped: OpId) -> &'k [Value] {
        let body = self.kernel.op(looped).regions.first();
        body.and_then(|b| self.kernel.block(*b).args.get(self.skipped(looped)..)).unwrap_or_default()
    }

    /// The initial values of a loop, each with the value inside that receives it.
    pub(super) fn entered(&self, looped: OpId) -> Vec<(Value, Value)> {
        self.initial(looped).iter().copied().zip(self.carries(looped).iter().copied()).collect()
    }

    /// The values that are passed along an edge of a loop, or at its exit, each with the value that receives it.
    pub(super) fn handed(&self, looped: OpId, edge: Option<OpId>, leaves: bool) -> Vec<(Value, Value)> {
        let to = if leaves { &self.kernel.op(looped).results[..] } else { self.carries(looped) };
        let from = edge.map_or(self.carries(looped), |edge| &self.kernel.op(edge).args);
        from.iter().copied().zip(to.iter().copied()).collect()
    }

    /// The slot after an edge of a loop that is the same as a slot before it: in the next iteration, or after the loop if the edge leaves
    /// it or there is none.
    pub(super) fn along(&self, looped: OpId, edge: Option<OpId>, leaves: bool, slot: Slot) -> Option<Slot> {
        let is_inside = |op: OpId| op == looped || self.tree.around(op).any(|o| o == looped);
        match slot.root {
            Root::Zero => Some(slot),
            Root::Loop(of, first) if of == looped => {
                let by = match edge {
                    Some(edge) => *self.carried(looped, slot.slots).moves.get(&(edge, slot.root))?,
                    None => 0,
                };
                // In the next iteration, the root L is what L + `by` was. So the slot that was L + k is L + (k − by) there.
                let root = if leaves { Root::After(of, first) } else { slot.root };
                Some(Slot { root, ..slot }.moved(-by))
            }
            // A loop inside of this one begins anew in the next iteration: its root is another number then.
            Root::Loop(of, _) | Root::After(of, _) => (!is_inside(of)).then_some(slot),
            Root::Value(value) => {
                let stays = match self.kernel.value(value).def {
                    Def::Param(_) => true,
                    Def::BlockArg(block, _) => !self.tree.owner(block).is_some_and(is_inside),
                    Def::Result(op, _) => !is_inside(op),
                };
                stays.then_some(slot)
            }
        }
    }
}
