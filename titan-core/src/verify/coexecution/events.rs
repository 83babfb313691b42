//! The relevant operations for co-execution: those on rings, barriers, groups or memory, the loops and branches around them, and
//! early exits from such loops; and the scalars that control these operations.

use super::barriers::objects::Objects;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{AmdOp, Block, Family, Flow, Kernel, NvOp, Op, OpId, OpKind, Pipe, RegionOp, TtgOp, Ty, Value};

/// The relevant operations, and the staging rings.
#[derive(Debug, Default)]
pub(in crate::verify) struct Events {
    pub(super) ops: SortedSet<OpId>,
    pub(super) staging: SortedSet<Pipe>,
}

impl Events {
    pub(super) fn of(kernel: &Kernel, objects: &Objects) -> Events {
        let mut events = Events::default();
        events.find(kernel, objects, kernel.body);
        let any = !objects.is_empty() || !kernel.pipes.is_empty();
        events.find_exits(kernel, kernel.body, any, &mut Vec::new());
        events
    }

    /// These operations, the loops and branches around them, and early exits from such loops.
    pub(in crate::verify) fn around(kernel: &Kernel, ops: SortedSet<OpId>) -> SortedSet<OpId> {
        let mut events = Events { ops, staging: SortedSet::new() };
        let tree = Tree::new(kernel);
        for id in events.ops.clone() {
            events.ops.extend(tree.around(id));
        }
        events.find_exits(kernel, kernel.body, true, &mut Vec::new());
        events.ops
    }

    /// Marks the relevant operations of a block; returns whether there are any.
    fn find(&mut self, kernel: &Kernel, objects: &Objects, block: Block) -> bool {
        let mut any = false;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            // `|` and not `||`: every region must be walked, as it marks its own operations.
            let inside = op.regions.iter().fold(false, |any, r| self.find(kernel, objects, *r) | any);
            let tokens = op.args.iter().chain(&op.results).any(|v| kernel.ty(*v).is_linear());
            if inside || tokens || does_something(&op.kind) || objects.output(kernel, op).is_some() {
                self.ops.insert(*id);
                any = true;
            }
            if let (OpKind::Ttg(TtgOp::Write), Some(Ty::Token(_, pipe))) =
                (&op.kind, op.args.first().map(|v| kernel.ty(*v)))
            {
                self.staging.insert(pipe);
            }
        }
        any
    }

    /// Marks the exits from relevant loops.
    fn find_exits(&mut self, kernel: &Kernel, block: Block, returns: bool, around: &mut Vec<OpId>) {
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            let loops: Vec<usize> = (0..around.len()).rev().filter(|i| kernel.op(around[*i]).kind.is_loop()).collect();
            let from = match op.kind.family() {
                Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                    loops.get(n as usize).filter(|i| self.ops.contains(&around[**i])).copied()
                }
                // It ends the role, and with it all that is around it.
                Family::Flow(Flow::Return) if returns => Some(0),
                // They leave no loop.
                Family::Flow(Flow::Return | Flow::For(_) | Flow::Loop | Flow::If | Flow::Yield)
                | Family::Data(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => None,
            };
            if let Some(from) = from {
                self.ops.extend(around.get(from..).unwrap_or_default());
            }
            around.push(*id);
            op.regions.iter().for_each(|r| self.find_exits(kernel, *r, returns, around));
            around.pop();
        }
    }
}

/// The scalars that control which barriers are used, and how often: indices, parities, loop bounds, conditions, and
/// their operands.
pub(super) fn deciding(kernel: &Kernel, events: &SortedSet<OpId>) -> SortedSet<Value> {
    let scalar = |v: &Value| matches!(kernel.ty(*v), Ty::Scalar(_));
    let sources = carried(kernel);
    let mut open: Vec<Value> = Vec::new();
    for op in events.iter().map(|id| kernel.op(*id)) {
        let own = if matches!(op.kind, OpKind::For(_)) { op.args.get(..3) } else { Some(&op.args[..]) };
        open.extend(own.unwrap_or_default().iter().copied().filter(scalar));
    }
    let mut found = SortedSet::new();
    while let Some(value) = open.pop() {
        // Each value is looked at once, so this ends also where loops pass values around.
        if found.insert(value) {
            let made_of = kernel.def_op(value).filter(|op| op.regions.is_empty()).map_or(&[][..], |op| &op.args);
            let handed_on = sources.get(&value).map_or(&[][..], Vec::as_slice);
            open.extend(made_of.iter().chain(handed_on).copied().filter(scalar));
        }
    }
    found
}

/// For each carried value and result of loops and branches, the values that may be passed to it.
fn carried(kernel: &Kernel) -> SortedMap<Value, Vec<Value>> {
    let mut sources: SortedMap<Value, Vec<Value>> = SortedMap::new();
    kernel.walk(&mut |_, op| {
        let (inits, args) = handed(kernel, op);
        let mut hand_on = |from: &[Value]| {
            for to in [args, &op.results[..]] {
                to.iter().zip(from).for_each(|(to, from)| sources.entry(*to).or_default().push(*from));
            }
        };
        hand_on(inits);
        for region in &op.regions {
            kernel.walk_block(*region, &mut |_, inner| {
                if inner.kind.is_terminator() {
                    hand_on(&inner.args);
                }
            });
        }
    });
    sources
}

/// The carried values of a loop: the initial ones, and the arguments of its body.
fn handed<'k>(kernel: &'k Kernel, op: &'k Op) -> (&'k [Value], &'k [Value]) {
    let args = op.regions.first().map_or(&[][..], |b| &kernel.block(*b).args);
    if let OpKind::For(_) = op.kind {
        return (op.args.get(3..).unwrap_or_default(), args.get(1..).unwrap_or_default());
    }
    if op.kind == OpKind::Loop { (&op.args, args) } else { (&[], &[]) }
}

/// Whether an operation affects rings, barriers, groups or memory: loops and branches without one are skipped.
const fn does_something(kind: &OpKind) -> bool {
    match kind.family() {
        Family::Ttg(ttg) => !matches!(
            ttg,
            TtgOp::Source(..)
                | TtgOp::SourceRows { .. }
                | TtgOp::Poisoned
                | TtgOp::Finalize
                | TtgOp::Rematerialize
                | TtgOp::Fence { .. }
        ),
        Family::Region(region) => !matches!(region, RegionOp::Place { .. }),
        Family::Nv(nv) => !matches!(
            nv,
            NvOp::MbarrierAlloc { .. }
                | NvOp::MbarrierInit { .. }
                | NvOp::FenceMbarrierInit
                | NvOp::WgmmaFence
                | NvOp::SetMaxNReg { .. }
        ),
        Family::Amd(amd) => !matches!(amd, AmdOp::Mfma | AmdOp::SetPrio { .. }),
        // Accesses to outputs of bulk stores are found by their tensors, loops and branches by their contents. Tiles that are laid out are
        // accessed by the claims of their program.
        Family::Data(_) | Family::Flow(_) | Family::Local(_) => false,
    }
}
