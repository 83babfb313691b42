//! Bulk stores to one output that provably write different elements.
//!
//! A bulk store of the barrier dialect states the first element of its box and its number of bytes, but not its extents. So two boxes are
//! disjoint along an axis if their first elements are at least as far apart as a box can extend: by its number of elements, limited by the
//! maximum extent of a tensor map's box along one axis.

use crate::analysis::number::root;
use crate::analysis::uses::Tree;
use crate::collections::SortedSet;
use crate::ir::{BinOp, Def, Kernel, NvOp, Op, OpId, OpKind, Ty, Value};
use crate::verify::loops::{once, step_of};

/// The maximum extent of a box along one axis (PTX ISA, "tensor map").
const MAX_BOX: i64 = 256;

/// The pairs of bulk stores that never write the same element, in any iterations, if no coordinate overflows `i32`. A store may be paired
/// with itself: different iterations of it then write different elements.
pub(super) fn apart(kernel: &Kernel) -> SortedSet<(OpId, OpId)> {
    let mut stores: Vec<OpId> = Vec::new();
    kernel.walk(&mut |id, op| {
        if matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })) {
            stores.push(id);
        }
    });
    if stores.is_empty() {
        return SortedSet::new();
    }
    let look = Look { kernel, tree: Tree::new(kernel) };
    let pairs = stores.iter().flat_map(|a| stores.iter().map(move |b| (*a, *b)));
    pairs.filter(|(a, b)| if a == b { look.iterations(*a) } else { look.stores(*a, *b) }).collect()
}

struct Look<'k> {
    kernel: &'k Kernel,
    tree: Tree,
}

impl Look<'_> {
    /// Whether the boxes of two stores are far enough apart along an axis, in all iterations.
    fn stores(&self, a: OpId, b: OpId) -> bool {
        let (first, second) = (self.kernel.op(a), self.kernel.op(b));
        let (Some(x), Some(y)) = (self.coordinates(first), self.coordinates(second)) else { return false };
        let reach = self.reach(first).max(self.reach(second));
        let whole = |op: &Op| op.args.first().and_then(|t| self.whole(*t));
        whole(first).is_some()
            && whole(first) == whole(second)
            && x.iter().zip(y).any(|(p, q)| {
                let (p, q) = (self.distance(*p), self.distance(*q));
                p.0 == q.0 && p.1.checked_sub(q.1).and_then(i64::checked_abs).is_some_and(|far| far >= reach)
            })
    }

    /// Whether the boxes of a store in different iterations of the loops around it are far enough apart.
    fn iterations(&self, id: OpId) -> bool {
        let op = self.kernel.op(id);
        let Some(coordinates) = self.coordinates(op) else { return false };
        let reach = self.reach(op);
        let loops = self.tree.around(id).filter(|o| self.kernel.op(*o).kind.is_loop());
        let loops: Vec<OpId> = loops.filter(|o| !once(self.kernel, *o)).collect();
        // In the outermost loop in which two iterations differ, the box must move along an axis along which no inner loop moves it.
        let moves = |(i, looped): (usize, &OpId)| {
            let inner = loops.get(..i).unwrap_or_default();
            let steps = |axis: &Value| {
                let step = step_of(self.kernel, &self.tree, *looped, *axis)?;
                let stride = self.kernel.int_constant(*self.kernel.op(*looped).args.get(2)?)?;
                step.checked_mul(stride)?.checked_abs()
            };
            let still = |other: &OpId, axis: &Value| step_of(self.kernel, &self.tree, *other, *axis) == Some(0);
            coordinates
                .iter()
                .any(|axis| steps(axis).is_some_and(|far| far >= reach) && inner.iter().all(|other| still(other, axis)))
        };
        op.args.first().and_then(|t| self.whole(*t)).is_some() && loops.iter().enumerate().all(moves)
    }

    fn coordinates<'o>(&self, op: &'o Op) -> Option<&'o [Value]> {
        let Ty::Tensor(_, rank) = self.kernel.ty(*op.args.first()?) else { return None };
        op.args.get(1..=usize::from(rank))
    }

    /// The parameter, if the value is a whole tensor.
    fn whole(&self, tensor: Value) -> Option<usize> {
        let param = root(self.kernel, tensor)?;
        let opened = |v: Value| self.kernel.def_op(v).filter(|op| op.kind == OpKind::Shared).map(|op| op.args[0]);
        let own = self.kernel.param(param);
        (tensor == own || opened(tensor) == Some(own)).then_some(param)
    }

    /// The maximum extent of a store's box along an axis.
    fn reach(&self, op: &Op) -> i64 {
        let (OpKind::Nv(NvOp::BulkStore { bytes, .. }), Some(Ty::Tensor(elem, _))) =
            (&op.kind, op.args.first().map(|t| self.kernel.ty(*t)))
        else {
            return MAX_BOX;
        };
        let bits = i64::from(*bytes).saturating_mul(8);
        bits.checked_div(i64::from(elem.bits())).unwrap_or(MAX_BOX).min(MAX_BOX)
    }

    /// A value as the sum of a value that is the same throughout the kernel, or zero, and a constant.
    fn distance(&self, value: Value) -> (Option<Value>, i64) {
        if let Some(c) = self.kernel.int_constant(value) {
            return (None, c);
        }
        let sum = self.kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add));
        let parts = sum.and_then(|op| Some((op.args[0], self.kernel.int_constant(op.args[1])?)));
        match parts {
            Some((base, c)) if self.is_fixed(base) => (Some(base), c),
            Some(_) | None if self.is_fixed(value) => (Some(value), 0),
            // It is not comparable with any value, not even with itself in another iteration.
            Some(_) | None => (Some(value), i64::MIN),
        }
    }

    /// Whether a value is computed once in the kernel.
    fn is_fixed(&self, value: Value) -> bool {
        matches!(self.kernel.value(value).def, Def::Param(_))
            || self.kernel.block(self.kernel.body).ops.iter().any(|id| self.kernel.op(*id).results.contains(&value))
    }
}
