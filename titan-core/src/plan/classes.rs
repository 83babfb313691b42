//! Classes of tiles: tiles that share one layout, and tiles that have no layout.
#![expect(clippy::wildcard_enum_match_arm, reason = "all other operations share no layouts")]

use crate::analysis::uses::Tree;
use crate::ir::{Kernel, Op, OpId, OpKind, TtgOp, Ty, Value};

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
        match &op.kind {
            OpKind::Splat(_) | OpKind::Iota(_) | OpKind::Broadcast { .. } => {
                op.results.iter().for_each(|r| self.flexible[r.index()] = true);
            }
            kind if is_elementwise(kind) => {
                if op.args.iter().any(|a| self.has_layout(kernel, *a)) {
                    for arg in &op.args {
                        self.unite(kernel, op.results[0], *arg);
                    }
                } else if matches!(kernel.ty(op.results[0]), Ty::Tile(..)) {
                    self.flexible[op.results[0].index()] = true;
                }
            }
            OpKind::Mma | OpKind::Ttg(TtgOp::ComputeIssue) => self.unite(kernel, op.results[0], op.args[2]),
            OpKind::Ttg(
                TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish | TtgOp::Rematerialize,
            ) => {
                self.unite(kernel, op.results[0], op.args[0]);
            }
            OpKind::Gather => {
                for arg in &op.args {
                    self.unite(kernel, op.results[0], *arg);
                }
            }
            OpKind::For(_) | OpKind::Loop => {
                let bounds = if op.kind == OpKind::Loop { 0 } else { 3 };
                let skip = usize::from(op.kind != OpKind::Loop);
                let Some(body) = op.regions.first() else { return };
                let carried: Vec<Value> = kernel.block(*body).args.iter().skip(skip).copied().collect();
                self.unite_all(kernel, &carried, op.args.get(bounds..).unwrap_or_default());
                if op.kind != OpKind::Loop {
                    self.unite_all(kernel, &carried, &op.results);
                }
            }
            OpKind::Yield => {
                if let Some(owner) = tree.parent(id) {
                    self.unite_all(kernel, &kernel.op(owner).results, &op.args);
                }
            }
            OpKind::Break(n) | OpKind::Continue(n) => {
                let Some(target) = tree.around(id).filter(|o| kernel.op(*o).kind.is_loop()).nth(*n as usize) else {
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
            _ => {}
        }
    }

    fn unite_all(&mut self, kernel: &Kernel, a: &[Value], b: &[Value]) {
        for (a, b) in a.iter().zip(b) {
            self.unite(kernel, *a, *b);
        }
    }
}
