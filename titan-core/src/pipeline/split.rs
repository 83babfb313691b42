//! Splits a kernel whose loops fill and read their own rings into two roles: one that copies, and one that computes.
//!
//! ```text
//! for t in 0..n {                            producer: for t in 0..n { acquire; copy t }
//!     acquire; copy t                 ─▶
//!     wait; compute; release                 consumer: for t in 0..n { wait; compute; release }
//! }
//! ```
//!
//! The role that computes keeps everything except for the copies. The role that copies gets the copies, the loops and branches around them,
//! and the scalars on which these depend: the *slice* of the kernel. It is computed backwards from the copies, through the values that
//! loops carry and branches yield, to a fixed point. It may only contain scalars, views, indices of rows, and values read from inputs,
//! because it is executed twice.
//!
//! Early exits become branches first ([`without_exits`]).
//!
//! The caller verifies the result.
//!
//! Deliberately absent: kernels with roles, `break` and exits from the middle of branches around copies, and copies whose coordinates
//! depend on tensors that the kernel writes.

use super::edit::Edit;
use super::exits::jumps;
use super::exits::without_exits;
use crate::analysis::forms::is_input;
use crate::analysis::number::root;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, BlockData, Def, Family, Flow, Kernel, Op, OpId, OpKind, RoleDecl, TtgOp, Ty, Value};

/// The names of the roles.
const NAMES: [&str; 2] = ["producer", "consumer"];

/// The kernel with two roles, of which one computes with `warps` warps; `None` if it has roles, no copies to rings, or cannot be split.
#[must_use]
pub fn split(kernel: &Kernel, warps: u32) -> Option<Kernel> {
    let kernel = &without_exits(kernel);
    let ops = kernel.block(kernel.body).ops.clone();
    let (last, ops) = ops.split_last()?;
    if !kernel.roles.is_empty() || kernel.op(*last).kind != OpKind::Return {
        return None;
    }
    let mut slice = Slice { kernel, ops: SortedSet::new(), values: SortedSet::new() };
    slice.find()?;
    // What both roles need of ragged tiles is computed once, before them, so that the bounds of their loops are the
    // same values.
    let shared = slice.before_roles(ops);
    let ops: Vec<OpId> = ops.iter().copied().filter(|id| !shared.contains(id)).collect();
    let mut edit = Edit::new(kernel.clone());
    edit.loc = kernel.op(*last).loc;
    let producer = edit.block(&[], |edit, _| {
        let mut names = SortedMap::new();
        slice.copy(edit, &ops, &mut names)?;
        end(edit);
        Some(())
    })?;
    let consumer = edit.block(&[], |edit, _| {
        edit.pending.extend(&ops);
        end(edit);
        Some(())
    })?;
    edit.raw(OpKind::Ttg(TtgOp::Roles), &[], &[], vec![producer, consumer]);
    let roles = std::mem::take(&mut edit.pending);
    let body = &mut edit.kernel.blocks[kernel.body.index()].ops;
    body.splice(.., shared.into_iter().chain(roles).chain([*last]));
    // The role that computes keeps the operations themselves, and the other one got copies of its slice before they
    // were taken out here.
    without_copies(&mut edit.kernel, consumer);
    edit.kernel.roles = NAMES.iter().zip([1, warps]).map(|(name, warps)| RoleDecl::one(name, warps)).collect();
    Some(edit.kernel.canonical())
}

fn end(edit: &mut Edit) {
    edit.raw(OpKind::Ttg(TtgOp::Finalize), &[], &[], Vec::new());
    edit.raw(OpKind::Yield, &[], &[], Vec::new());
}

/// Whether an operation fills a stage.
const fn copies(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. } | TtgOp::AsyncProduce { .. })
    )
}

/// Removes the copies from a role, and the `finalize` operations in it except for its own.
fn without_copies(kernel: &mut Kernel, role: Block) {
    let mut blocks = vec![role];
    kernel.walk_block(role, &mut |_, op| blocks.extend(&op.regions));
    for block in blocks {
        let ops = kernel.block(block).ops.clone();
        let stays = |id: &OpId| {
            let kind = &kernel.op(*id).kind;
            let own = block == role && ops.iter().rev().nth(1) == Some(id);
            !copies(kind) && (own || *kind != OpKind::Ttg(TtgOp::Finalize))
        };
        let ops = ops.iter().copied().filter(stays).collect();
        kernel.blocks[block.index()].ops = ops;
    }
}

/// The operations that the role that copies executes.
struct Slice<'k> {
    kernel: &'k Kernel,
    ops: SortedSet<OpId>,
    /// The values that are needed; of loops and branches, not all are.
    values: SortedSet<Value>,
}

impl Slice<'_> {
    /// Computes the slice; `None` if it contains operations that cannot be executed twice, or unstructured control flow.
    fn find(&mut self) -> Option<()> {
        let kernel = self.kernel;
        let mut around: Vec<OpId> = Vec::new();
        self.roots(kernel.body, &mut around)?;
        if self.ops.is_empty() {
            return None;
        }
        let mut known = 0;
        // Both sets only grow, and are sets of values and operations of the kernel: after finitely many rounds nothing
        // is added. Then everything from which something in the slice is computed is in it.
        while known != self.values.len() + self.ops.len() {
            known = self.values.len() + self.ops.len();
            for value in self.values.clone() {
                self.need(value)?;
            }
        }
        Some(())
    }

    /// The numbers of ragged tiles, so that the roles have loops with the same bounds; and the segments that every program takes, by which it
    /// checks that the offsets are in order. They stay before the roles, in program order, with what they are computed from, unless that
    /// are loops or branches, or depends on what the kernel writes. Of several traps of a program, another one may be reported then.
    fn before_roles(&self, ops: &[OpId]) -> Vec<OpId> {
        let mut shared: SortedSet<OpId> = SortedSet::new();
        for id in ops {
            let kind = &self.kernel.op(*id).kind;
            if matches!(kind, OpKind::RaggedCount { .. } | OpKind::Segment) {
                shared.extend(self.computed_from(ops, *id).into_iter().flatten());
            }
        }
        ops.iter().copied().filter(|id| shared.contains(id)).collect()
    }

    /// An operation with all of these operations from which it is computed; `None` if one of them must stay where it is.
    fn computed_from(&self, ops: &[OpId], last: OpId) -> Option<Vec<OpId>> {
        let (mut found, mut wanted): (Vec<OpId>, SortedSet<Value>) = (Vec::new(), SortedSet::new());
        for id in ops.iter().rev().skip_while(|id| **id != last) {
            let op = self.kernel.op(*id);
            // Backwards: when an operation is looked at, all that use it have been.
            if *id == last || op.results.iter().any(|v| wanted.contains(v)) {
                if !op.regions.is_empty() || !self.is_repeatable(op) {
                    return None;
                }
                wanted.extend(&op.args);
                found.push(*id);
            }
        }
        Some(found)
    }

    /// Adds the copies, and the loops and branches around them.
    fn roots(&mut self, block: Block, around: &mut Vec<OpId>) -> Option<()> {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            if copies(&op.kind) {
                self.ops.insert(*id);
                self.values.extend(&op.args);
                for outer in around.iter() {
                    self.enter(*outer)?;
                }
            }
            around.push(*id);
            for region in &op.regions {
                self.roots(*region, around)?;
            }
            around.pop();
        }
        Some(())
    }

    /// Adds a loop or branch to the slice, with the values that control it.
    fn enter(&mut self, id: OpId) -> Option<()> {
        let op = self.kernel.op(id);
        match op.kind.family() {
            Family::Flow(Flow::For(_)) => self.values.extend(&op.args[..3]),
            Family::Flow(Flow::If) => self.values.extend(&op.args),
            // A loop without a count may end early, and what else has regions computes.
            Family::Flow(Flow::Loop | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => return None,
        }
        // A role that leaves a loop or branch early would leave out fills which the other role waits for.
        let ends = |block: &Block| {
            let last = self.kernel.block(*block).ops.last().map(|id| &self.kernel.op(*id).kind);
            matches!(last, Some(OpKind::Yield | OpKind::Continue(0)))
        };
        let mut leaves = !op.regions.iter().all(ends);
        for region in &op.regions {
            self.kernel.walk_block(*region, &mut |_, op| leaves |= jumps(op));
        }
        self.ops.insert(id);
        (!leaves).then_some(())
    }

    /// Adds the operations that compute a value.
    fn need(&mut self, value: Value) -> Option<()> {
        let kernel = self.kernel;
        match kernel.value(value).def {
            Def::Param(_) => Some(()),
            Def::BlockArg(block, place) => {
                let looped = (0..kernel.ops.len()).map(OpId::new).find(|id| kernel.op(*id).regions.contains(&block))?;
                self.enter(looped)?;
                match place.checked_sub(1) {
                    Some(carried) => self.carried(looped, carried),
                    None => Some(()),
                }
            }
            Def::Result(id, place) => {
                let op = kernel.op(id);
                match op.kind.family() {
                    Family::Flow(Flow::For(_)) => {
                        self.enter(id)?;
                        self.carried(id, place)
                    }
                    Family::Flow(Flow::If) => {
                        self.enter(id)?;
                        for region in &op.regions {
                            let last = kernel.op(*kernel.block(*region).ops.last()?);
                            self.values.insert(*last.args.get(place)?);
                        }
                        Some(())
                    }
                    Family::Flow(Flow::Loop | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return) => None,
                    Family::Data(_)
                    | Family::Ttg(_)
                    | Family::Local(_)
                    | Family::Region(_)
                    | Family::Nv(_)
                    | Family::Amd(_) => {
                        if !self.is_repeatable(op) {
                            return None;
                        }
                        self.ops.insert(id);
                        self.values.extend(&op.args);
                        Some(())
                    }
                }
            }
        }
    }

    /// Adds a value that a loop carries: its initial value, and its next value.
    fn carried(&mut self, looped: OpId, place: usize) -> Option<()> {
        let op = self.kernel.op(looped);
        let body = *op.regions.first()?;
        let last = self.kernel.op(*self.kernel.block(body).ops.last()?);
        // A carried value is needed as a whole: what it is first, what it becomes, and what it is called inside.
        let values = [op.args.get(3 + place)?, last.args.get(place)?, self.kernel.block(body).args.get(1 + place)?];
        self.values.extend(values);
        self.values.insert(*op.results.get(place)?);
        Some(())
    }

    /// Whether an operation has the same result if both roles execute it.
    fn is_repeatable(&self, op: &Op) -> bool {
        let number = op
            .results
            .iter()
            .all(|v| matches!(self.kernel.ty(*v), Ty::Scalar(_) | Ty::Tensor(..) | Ty::Source(..) | Ty::Token(..)));
        // The indices by which rows are selected.
        let indices = op
            .results
            .iter()
            .all(|v| matches!(self.kernel.ty(*v), Ty::Tile(elem, shape) if elem.is_int() && shape.rank() == 1));
        let from_input = |place: usize| {
            let tensor = op.args.get(place).and_then(|v| root(self.kernel, *v));
            tensor.is_some_and(|param| is_input(self.kernel, param))
        };
        if indices {
            let computed = matches!(
                op.kind,
                OpKind::Splat(_)
                    | OpKind::Iota(_)
                    | OpKind::Unary(_)
                    | OpKind::Binary(_)
                    | OpKind::Cast(_)
                    | OpKind::Bitcast(_)
                    | OpKind::Ttg(TtgOp::Rematerialize)
            );
            return computed || matches!(op.kind, OpKind::Load(..)) && from_input(0);
        }
        // An element of an input is the same for both roles. Of a tensor that the kernel writes, each could read
        // another one.
        if op.kind == OpKind::Get {
            return number && from_input(0);
        }
        // Only the offsets are read, the second operand.
        if matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. }) {
            return number && from_input(1);
        }
        number
            && matches!(
                op.kind,
                OpKind::Const(_)
                    | OpKind::Unary(_)
                    | OpKind::Binary(_)
                    | OpKind::Cmp(_)
                    | OpKind::Select
                    | OpKind::Cast(_)
                    | OpKind::Bitcast(_)
                    | OpKind::Dim(_)
                    | OpKind::Present
                    | OpKind::Unflatten
                    | OpKind::UnflattenGrouped(_)
                    | OpKind::Index(_)
                    | OpKind::Slice(_)
                    | OpKind::ProgramId(_)
                    | OpKind::NumPrograms(_)
                    | OpKind::Ttg(
                        TtgOp::Rematerialize | TtgOp::Acquire(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. }
                    )
            )
    }

    /// Copies those of these operations that are in the slice.
    fn copy(&self, edit: &mut Edit, ops: &[OpId], names: &mut SortedMap<Value, Value>) -> Option<()> {
        for id in ops.iter().filter(|id| self.ops.contains(id)) {
            let op = self.kernel.op(*id).clone();
            if op.regions.is_empty() {
                edit.copies(&[*id], names);
                continue;
            }
            // Of the values that a loop carries and a branch yields, only the needed ones are kept.
            let wanted: Vec<usize> = (0..op.results.len()).filter(|i| self.values.contains(&op.results[*i])).collect();
            let controls = if op.kind == OpKind::If { op.args.len() } else { 3 };
            let own = op.args[..controls].iter().chain(wanted.iter().filter_map(|i| op.args.get(controls + i)));
            let args: Vec<Value> = own.map(|v| names.get(v).copied().unwrap_or(*v)).collect();
            let mut regions = Vec::new();
            for region in &op.regions {
                regions.push(self.copy_block(edit, *region, &wanted, names)?);
            }
            let types: Vec<Ty> = wanted.iter().map(|i| self.kernel.ty(op.results[*i])).collect();
            edit.loc = op.loc;
            let made = edit.raw(op.kind.clone(), &args, &types, regions);
            names.extend(wanted.iter().map(|i| op.results[*i]).zip(made));
        }
        Some(())
    }

    fn copy_block(
        &self,
        edit: &mut Edit,
        block: Block,
        wanted: &[usize],
        names: &mut SortedMap<Value, Value>,
    ) -> Option<Block> {
        let BlockData { args, ops } = self.kernel.block(block).clone();
        // The counter of a loop, and the kept carried values.
        let kept: Vec<Value> =
            args.first().copied().into_iter().chain(wanted.iter().filter_map(|i| args.get(1 + i).copied())).collect();
        let kept = if args.is_empty() { Vec::new() } else { kept };
        let types: Vec<Ty> = kept.iter().map(|v| self.kernel.ty(*v)).collect();
        let (last, inner) = ops.split_last()?;
        edit.block(&types, |edit, new| {
            names.extend(kept.iter().copied().zip(new.iter().copied()));
            self.copy(edit, inner, names)?;
            let end = self.kernel.op(*last).clone();
            let given: Vec<Value> =
                wanted.iter().filter_map(|i| end.args.get(*i)).map(|v| names.get(v).copied().unwrap_or(*v)).collect();
            edit.loc = end.loc;
            edit.raw(end.kind, &given, &[], Vec::new());
            Some(())
        })
    }
}
