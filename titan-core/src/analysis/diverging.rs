//! Control that may differ between the programs of a launch: branches that only some programs take, loops that some of them run more often
//! than others, and values that differ between them.
//!
//! A branch or loop *diverges* if the programs that reach it together may not execute its regions equally often:
//!
//! * its condition or its bounds may differ between programs, or it is a distributed loop;
//! * or it is a loop with an exit that only some of the programs that are in an iteration of it execute: a `break` or `continue` of this
//!   loop, or a `return`, in a branch or loop that diverges.
//!
//! Where no branch and no loop around an operation diverges, and no program has ended before, all programs execute it equally often. Values
//! are compared between programs that execute the same operation equally often before. A value may differ if it depends on the index of
//! the program, on an operation that may give different results, on a value that may differ, or on the number of iterations of a loop that
//! diverges.
//!
//! *Proof.* By induction over the operations that are executed. Let two programs execute the same operations up to here, and let the next
//! one be a branch or a loop that does not diverge. Its condition or its bounds are equal in both, so both take the same arm, or both start
//! the same iteration. If one of them leaves an iteration early, it does so by an exit, around which no branch or loop inside of the target
//! diverges: so by the hypothesis both execute that exit.
//!
//! Shared memory holds equal values in two programs as long as both store equal values to it: what is loaded from a buffer may differ if any
//! store to this buffer may, or is executed by some programs only. Buffers that lie at the same bytes are in use at different times.
//!
//! Deliberately absent: values that are equal although they are computed from values that differ; traps and endless loops, which end a
//! launch with an error.

use super::forms::is_input;
use super::number::root;
use crate::collections::SortedSet;
use crate::ir::traffic::{Access, On, traffic};
use crate::ir::{Block, Effect, Family, Flow, ForKind, Kernel, LocalOp, NvOp, Op, OpId, OpKind, RegionOp, Ty, Value};

/// The values, branches and loops of a kernel that may differ between programs.
#[derive(Clone, Debug)]
pub struct Diverging {
    values: Vec<bool>,
    ops: Vec<bool>,
    returns: SortedSet<OpId>,
    /// The buffers in shared memory whose contents may differ.
    buffers: SortedSet<Value>,
    /// Whether the contents of all buffers may differ.
    any_buffer: bool,
    changed: bool,
}

impl Diverging {
    /// The analysis of a kernel.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Diverging {
        let mut found = Diverging {
            values: vec![false; kernel.values.len()],
            ops: vec![false; kernel.ops.len()],
            returns: SortedSet::new(),
            buffers: SortedSet::new(),
            any_buffer: false,
            changed: true,
        };
        while found.changed {
            found.changed = false;
            found.block(kernel, kernel.body, &mut Vec::new());
        }
        found
    }

    /// Whether one of these values may differ between programs.
    #[must_use]
    pub fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|v| self.values.get(v.index()).copied().unwrap_or(true))
    }

    /// Whether a branch or loop diverges.
    #[must_use]
    pub fn diverges(&self, op: OpId) -> bool {
        self.ops.get(op.index()).copied().unwrap_or(true)
    }

    /// Whether only some programs may end at a `return`.
    #[must_use]
    pub fn ends_some(&self, op: OpId) -> bool {
        self.returns.contains(&op)
    }

    fn mark(&mut self, values: &[Value], differ: bool) {
        for value in values.iter().filter(|_| differ) {
            if let Some(slot) = self.values.get_mut(value.index()) {
                self.changed |= !*slot;
                *slot = true;
            }
        }
    }

    fn mark_op(&mut self, op: OpId) {
        if let Some(slot) = self.ops.get_mut(op.index()) {
            self.changed |= !*slot;
            *slot = true;
        }
    }

    /// Propagates difference from values to those that receive them.
    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (from, to) in from.iter().zip(to) {
            let differ = self.any(&[*from]);
            self.mark(&[*to], differ);
        }
    }

    /// `around` has the operations around the block, the innermost last.
    fn block(&mut self, kernel: &Kernel, block: Block, around: &mut Vec<OpId>) {
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            match op.kind.family() {
                Family::Flow(Flow::For(_) | Flow::Loop | Flow::If) => self.regions(kernel, *id, around),
                Family::Flow(Flow::Yield) => {
                    if let Some(outer) = around.last() {
                        self.pass(&op.args, &kernel.op(*outer).results);
                    }
                }
                Family::Flow(Flow::Break(_) | Flow::Continue(_)) => self.jump(kernel, op, around),
                Family::Flow(Flow::Return) => {
                    if around.iter().any(|o| self.diverges(*o)) {
                        self.changed |= self.returns.insert(*id);
                        around.iter().for_each(|o| self.mark_op(*o));
                    }
                }
                Family::Data(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => {
                    self.stores(kernel, op, around);
                    let differ = self.results_differ(kernel, op);
                    self.mark(&op.results, differ);
                    around.push(*id);
                    op.regions.iter().for_each(|region| self.block(kernel, *region, around));
                    around.pop();
                }
            }
        }
    }

    /// A branch or a loop.
    fn regions(&mut self, kernel: &Kernel, id: OpId, around: &mut Vec<OpId>) {
        let op = kernel.op(id);
        let own = match op.kind.family() {
            Family::Flow(Flow::For(kind)) => {
                kind == ForKind::Distributed || self.any(op.args.get(..3).unwrap_or(&op.args))
            }
            Family::Flow(Flow::If) => self.any(&op.args),
            // A loop without bounds ends by an exit.
            Family::Flow(Flow::Loop | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => false,
        };
        if own {
            self.mark_op(id);
        }
        let differ = self.diverges(id);
        self.mark(&op.results, differ);
        for region in &op.regions {
            let args = &kernel.block(*region).args;
            self.mark(args, differ);
            match op.kind.family() {
                Family::Flow(Flow::For(_)) => {
                    let first = op.args.get(3..).unwrap_or_default();
                    self.pass(first, args.get(1..).unwrap_or_default());
                    // A loop with zero iterations returns its initial values.
                    self.pass(first, &op.results);
                }
                Family::Flow(Flow::Loop) => self.pass(&op.args, args),
                // Their regions have no arguments.
                Family::Flow(Flow::If | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return)
                | Family::Data(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => {}
            }
            around.push(id);
            self.block(kernel, *region, around);
            around.pop();
        }
    }

    /// A `break` or `continue`: its operands are passed to the results of the loop that it leaves, and to the arguments of a loop that it
    /// continues, which returns them after the last iteration.
    fn jump(&mut self, kernel: &Kernel, op: &Op, around: &[OpId]) {
        let (OpKind::Break(n) | OpKind::Continue(n)) = op.kind else { return };
        let loops = around.iter().enumerate().rev().filter(|(_, o)| kernel.op(**o).kind.is_loop());
        let Some((at, target)) = usize::try_from(n).ok().and_then(|n| loops.into_iter().nth(n)) else { return };
        if around[at + 1..].iter().any(|o| self.diverges(*o)) {
            self.mark_op(*target);
        }
        let target = kernel.op(*target);
        self.pass(&op.args, &target.results);
        if let (OpKind::Continue(_), Some(body)) = (&op.kind, target.regions.first()) {
            let skip = usize::from(target.kind != OpKind::Loop);
            self.pass(&op.args, kernel.block(*body).args.get(skip..).unwrap_or_default());
        }
    }

    /// Notes what an operation makes of the contents of shared memory.
    fn stores(&mut self, kernel: &Kernel, op: &Op, around: &[OpId]) {
        let accesses = traffic(&op.kind).accesses;
        let of_shared = |access: &&Access| match access.on {
            On::Local | On::Regions | On::Stage => access.writes,
            // The words of barriers are not loaded.
            On::Words | On::Tensor => false,
        };
        if accesses.iter().flatten().filter(of_shared).count() == 0 {
            return;
        }
        let is_store = op.kind == OpKind::Local(LocalOp::Store);
        if is_store && !self.any(&op.args) && !around.iter().any(|outer| self.diverges(*outer)) {
            return;
        }
        for value in op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..) | Ty::Barrier(_) | Ty::Token(..)))
        {
            let new = match buffer(kernel, *value) {
                Some(buffer) => self.buffers.insert(buffer),
                None => !std::mem::replace(&mut self.any_buffer, true),
            };
            self.changed |= new;
        }
    }

    /// Whether what is loaded from a tile in shared memory may differ.
    fn contents_differ(&self, kernel: &Kernel, tile: Value) -> bool {
        self.any_buffer || buffer(kernel, tile).is_none_or(|buffer| self.buffers.contains(&buffer))
    }

    /// Whether the results of an operation, which is none of control flow, may differ.
    fn results_differ(&self, kernel: &Kernel, op: &Op) -> bool {
        if matches!(op.kind, OpKind::ProgramId(_) | OpKind::Nv(NvOp::ClusterRank)) {
            return true;
        }
        let mut differ = self.any(&op.args);
        for region in &op.regions {
            kernel.walk_block(*region, &mut |_, inner| differ |= self.any(&inner.args));
        }
        if op.kind == OpKind::Local(LocalOp::Load) {
            return differ || op.args.iter().any(|tile| self.contents_differ(kernel, *tile));
        }
        let input = |v: &Value| root(kernel, *v).is_some_and(|param| is_input(kernel, param));
        match op.kind.effect() {
            Effect::Pure => differ,
            Effect::Read | Effect::Trap => {
                // Segments are read from the offsets, and not from the tensor that they divide.
                let offsets =
                    matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. });
                let source = op.args.get(usize::from(offsets));
                differ || !source.is_some_and(input)
            }
            Effect::Write | Effect::Atomic | Effect::Print | Effect::Pipeline | Effect::Control => true,
        }
    }
}

/// The buffer in shared memory of which a value is a part; `None` if that is not known.
fn buffer(kernel: &Kernel, mut value: Value) -> Option<Value> {
    // This ends: an operand is defined before its result.
    loop {
        let op = kernel.def_op(value)?;
        if matches!(op.kind, OpKind::Region(RegionOp::Place { .. }) | OpKind::Local(LocalOp::Alloc { .. })) {
            return Some(value);
        }
        value = op.args.first().copied()?;
    }
}
