//! Values that may differ between the programs of a cluster when these execute the same operation in the same iteration.
//!
//! The programs of a cluster are adjacent along axis 0 of the grid. They differ in their program index along that axis, in their rank, and
//! in values read from memory that the kernel writes; everything computed from these may differ too. If the control of a loop or branch
//! differs, all its results may differ. If a loop may be left, or the program ended, under control that differs, nothing is known to be the
//! same.
//!
//! ```text
//! %i                                the same: distributed loops assign iterations to clusters
//! %q, %n = unflatten %i, %e, %f     the same
//! %r = ttg.nv.cluster.rank          differs
//! %m = add (mul %q, 2), %r          differs
//! ```
//!
//! Deliberately absent: values that are equal although they are computed from values that differ.

use super::forms::is_input;
use super::number::root;
use crate::ir::{Block, Effect, Family, Flow, ForKind, Kernel, NvOp, Op, OpKind, Value};

/// The values that may differ.
#[derive(Clone, Debug)]
pub struct Differing {
    values: Vec<bool>,
    /// Whether nothing is known to be the same.
    all: bool,
    changed: bool,
    /// Whether any two programs of the grid are compared, and not those of a cluster.
    anywhere: bool,
}

impl Differing {
    /// The values of a kernel that may differ between the programs of a cluster.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Differing {
        Self::find(kernel, false)
    }

    /// The values that may differ between any two programs of the grid.
    #[must_use]
    pub fn between_programs(kernel: &Kernel) -> Differing {
        Self::find(kernel, true)
    }

    fn find(kernel: &Kernel, anywhere: bool) -> Differing {
        let mut found = Differing { values: vec![false; kernel.values.len()], all: false, changed: true, anywhere };
        while found.changed && !found.all {
            found.changed = false;
            found.block(kernel, kernel.body, &mut Vec::new());
        }
        found
    }

    /// Whether a value may differ.
    #[must_use]
    pub fn of(&self, value: Value) -> bool {
        self.all || self.values.get(value.index()).copied().unwrap_or(true)
    }

    /// Whether one of these values may differ.
    #[must_use]
    pub fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|v| self.of(*v))
    }

    /// Whether the control of an operation's regions may differ.
    #[must_use]
    pub fn control(&self, op: &Op) -> bool {
        match op.kind.family() {
            Family::Flow(Flow::For(_)) => self.any(op.args.get(..3).unwrap_or(&op.args)),
            Family::Flow(Flow::If) => self.any(&op.args),
            // A loop without a count is left by a branch in it; the regions of other operations are executed once.
            Family::Flow(Flow::Loop | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => self.all,
        }
    }

    fn mark(&mut self, values: &[Value], differ: bool) {
        for value in values.iter().filter(|_| differ) {
            if let Some(slot) = self.values.get_mut(value.index()) {
                self.changed |= !*slot;
                *slot = true;
            }
        }
    }

    /// Propagates difference from values to those that receive them.
    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (from, to) in from.iter().zip(to) {
            let differ = self.of(*from);
            self.mark(&[*to], differ);
        }
    }

    /// `around` has the operations around the block, the innermost last, and whether the control of each may differ.
    fn block<'k>(&mut self, kernel: &'k Kernel, block: Block, around: &mut Vec<(&'k Op, bool)>) {
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            match op.kind.family() {
                Family::Flow(Flow::For(_) | Flow::Loop | Flow::If) => self.regions(kernel, op, around),
                Family::Flow(Flow::Yield | Flow::Break(_) | Flow::Continue(_)) => self.leave(kernel, op, around),
                Family::Flow(Flow::Return) => self.all |= !around.is_empty(),
                Family::Data(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => {
                    let differ = self.results(kernel, op);
                    self.mark(&op.results, differ);
                    around.push((op, false));
                    op.regions.iter().for_each(|region| self.block(kernel, *region, around));
                    around.pop();
                }
            }
        }
    }

    fn regions<'k>(&mut self, kernel: &'k Kernel, op: &'k Op, around: &mut Vec<(&'k Op, bool)>) {
        let differ = self.control(op);
        self.mark(&op.results, differ);
        for region in &op.regions {
            let args = &kernel.block(*region).args;
            self.mark(args, differ);
            match op.kind.family() {
                Family::Flow(Flow::For(kind)) => {
                    let to_clusters = !self.anywhere && kernel.laid_out.as_deref().is_some_and(|l| l.cluster > 1);
                    let dealt = kind == ForKind::Distributed && !to_clusters;
                    self.mark(&args[..1.min(args.len())], dealt);
                    self.pass(op.args.get(3..).unwrap_or_default(), args.get(1..).unwrap_or_default());
                    // A loop with zero iterations returns its initial values.
                    self.pass(op.args.get(3..).unwrap_or_default(), &op.results);
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
            around.push((op, differ));
            self.block(kernel, *region, around);
            around.pop();
        }
    }

    /// Propagates the operands of a terminator to the results of the operation that it leaves, and to the arguments of a loop that it
    /// continues.
    fn leave(&mut self, kernel: &Kernel, op: &Op, around: &[(&Op, bool)]) {
        if op.kind == OpKind::Yield {
            if let Some((outer, _)) = around.last() {
                self.pass(&op.args, &outer.results);
            }
            return;
        }
        let (OpKind::Break(n) | OpKind::Continue(n)) = op.kind else { return };
        let loops = around.iter().rposition(|(o, _)| o.kind.is_loop());
        let nth = around.iter().enumerate().rev().filter(|(_, (o, _))| o.kind.is_loop()).nth(n as usize);
        let (Some((at, (target, _))), Some(_)) = (nth, loops) else {
            self.all = true;
            return;
        };
        self.all |= around[at + 1..].iter().any(|(_, differ)| *differ);
        self.pass(&op.args, &target.results);
        if let (OpKind::Continue(_), Some(body)) = (&op.kind, target.regions.first()) {
            let skip = usize::from(target.kind != OpKind::Loop);
            self.pass(&op.args, kernel.block(*body).args.get(skip..).unwrap_or_default());
        }
    }

    fn results(&self, kernel: &Kernel, op: &Op) -> bool {
        let first = matches!(op.kind, OpKind::ProgramId(0) | OpKind::Nv(NvOp::ClusterRank));
        if first || self.anywhere && matches!(op.kind, OpKind::ProgramId(_)) {
            return true;
        }
        match op.kind.effect() {
            Effect::Pure => self.any(&op.args),
            Effect::Read | Effect::Trap => {
                let input = |v: &Value| root(kernel, *v).is_some_and(|param| is_input(kernel, param));
                self.any(&op.args) || !op.args.first().is_some_and(input)
            }
            Effect::Write | Effect::Atomic | Effect::Print | Effect::Pipeline | Effect::Control => true,
        }
    }
}
