//! Classes of tiles: tiles that share one layout, and tiles that have no layout.
use crate::analysis::uses::Tree;
use crate::ir::{Family, Flow, Kernel, Op, OpId, OpKind, TtgOp, Ty, Value};

/// Classes of tiles that share a layout.
pub(super) struct Classes {
    parent: Vec<usize>,
    flexible: Vec<bool>,
}

/// Whether each element of the results depends only on the elements of the operands at the same position.
#[must_use]
pub const fn is_elementwise(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_)
    )
}

impl Classes {
    pub(super) fn of(kernel: &Kernel) -> Classes {
        let mut classes =
            Classes { parent: (0..kernel.values.len()).collect(), flexible: vec![false; kernel.values.len()] };
        let tree = Tree::new(kernel);
        kernel.walk(&mut |id, op| classes.visit(kernel, &tree, id, op));
        classes
    }

    /// The number of the class of a value.
    pub(super) fn class(&self, value: Value) -> usize {
        let mut at = value.index();
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    /// Whether a tile has no layout, and is materialized in any requested one.
    pub(super) fn is_flexible(&self, value: Value) -> bool {
        self.flexible[value.index()]
    }

    /// Whether a value has a fixed layout.
    pub(super) fn has_layout(&self, kernel: &Kernel, value: Value) -> bool {
        kernel.ty(value).is_in_registers() && !self.is_flexible(value)
    }

    fn unite(&mut self, kernel: &Kernel, a: Value, b: Value) {
        if self.has_layout(kernel, a) && self.has_layout(kernel, b) {
            let (a, b) = (self.class(a), self.class(b));
            self.parent[a.max(b)] = a.min(b);
        }
    }

    fn visit(&mut self, kernel: &Kernel, tree: &Tree, id: OpId, op: &Op) {
        match op.kind.family() {
            Family::Data(_) => self.visit_data(kernel, op),
            Family::Ttg(ttg) => self.visit_ring(kernel, op, ttg),
            Family::Flow(Flow::For(_) | Flow::Loop) => {
                let bounds = if op.kind == OpKind::Loop { 0 } else { 3 };
                let skip = usize::from(op.kind != OpKind::Loop);
                let Some(body) = op.regions.first() else { return };
                let carried: Vec<Value> = kernel.block(*body).args.iter().skip(skip).copied().collect();
                self.unite_all(kernel, &carried, op.args.get(bounds..).unwrap_or_default());
                if op.kind != OpKind::Loop {
                    self.unite_all(kernel, &carried, &op.results);
                }
            }
            Family::Flow(Flow::Yield) => {
                if let Some(owner) = tree.parent(id) {
                    self.unite_all(kernel, &kernel.op(owner).results, &op.args);
                }
            }
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let Some(target) = tree.around(id).filter(|o| kernel.op(*o).kind.is_loop()).nth(n as usize) else {
                    return;
                };
                let target = kernel.op(target);
                if matches!(op.kind, OpKind::Break(_)) {
                    self.unite_all(kernel, &target.results, &op.args);
                } else if let Some(body) = target.regions.first() {
                    let skip = usize::from(target.kind != OpKind::Loop);
                    let carried: Vec<Value> = kernel.block(*body).args.iter().skip(skip).copied().collect();
                    self.unite_all(kernel, &carried, &op.args);
                }
            }
            // An `if` passes on tiles by `yield`, and `return` passes on none. Kernels with layouts are not planned again.
            Family::Flow(Flow::If | Flow::Return)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {}
        }
    }

    fn visit_data(&mut self, kernel: &Kernel, op: &Op) {
        if let OpKind::Splat(_) | OpKind::Iota(_) | OpKind::Broadcast { .. } = op.kind {
            op.results.iter().for_each(|r| self.flexible[r.index()] = true);
        } else if is_elementwise(&op.kind) {
            if op.args.iter().any(|a| self.has_layout(kernel, *a)) {
                op.args.iter().for_each(|arg| self.unite(kernel, op.results[0], *arg));
            } else if matches!(kernel.ty(op.results[0]), Ty::Tile(..)) {
                self.flexible[op.results[0].index()] = true;
            }
        } else if op.kind == OpKind::Mma {
            self.unite(kernel, op.results[0], op.args[2]);
        } else if let OpKind::Gather | OpKind::Fetch(_) | OpKind::CompareExchange = op.kind {
            op.results.iter().chain(&op.args).for_each(|value| self.unite(kernel, op.results[0], *value));
        }
        // All others choose the layouts of their operands and results by themselves, and tiles are converted to them.
    }

    fn visit_ring(&mut self, kernel: &Kernel, op: &Op, ttg: &TtgOp) {
        match ttg {
            TtgOp::ComputeIssue => self.unite(kernel, op.results[0], op.args[2]),
            TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish | TtgOp::Rematerialize => {
                self.unite(kernel, op.results[0], op.args[0]);
            }
            // These have no operand in registers that is also a result.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::AsyncProduce { .. }
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => {}
        }
    }

    fn unite_all(&mut self, kernel: &Kernel, a: &[Value], b: &[Value]) {
        for (a, b) in a.iter().zip(b) {
            self.unite(kernel, *a, *b);
        }
    }
}
