//! Bulk stores to one output that provably write different elements.
//!
//! A bulk store of the barrier dialect states the first element and the number of bytes that it writes. What these bytes are depends on the kind of
//! store:
//!
//! * *Contiguous bytes* are as many elements from the first one on, row after row, of any number: two such stores write different elements if
//!   they start in the same row, at least as far apart as they are long.
//! * *A box* of a tensor map has extents of this product, each at most 256, which the program does not state. Up to 256 elements may all lie along
//!   any axis, so that two such boxes are apart if their first elements are that far from each other along one. Of larger boxes, the extents are
//!   taken to be those, of all that a tensor map may have ([`extents_of`]), for which most pairs of stores of an output are apart:
//!   the same ones for all boxes of one number of bytes. Whoever makes the tensor map of such a program must choose these.
//!
//! ```text
//! store %c[%i, %0] {bytes = 16384}        f16: 8192 elements, and so 128 × 64 or 256 × 32 or 64 × 128 or 32 × 256
//! store %c[%i + 128, %0] {bytes = 16384}  128 rows further: apart with boxes of 128 × 64, but not of 256 × 32
//! ```
//!
//! Deliberately absent: boxes of different numbers of bytes that are less than 256 elements apart along every axis.

use crate::analysis::boxes::extents_of;
use crate::analysis::number::root;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Def, Kernel, NvOp, Op, OpId, OpKind, Ty, Value};
use crate::verify::loops::{once, step_of};

/// The maximum extent of a box along one axis (PTX ISA, "tensor map").
const MAX_BOX: i64 = 256;

/// The elements that a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    /// The output.
    param: usize,
    bytes: u32,
    /// Whether it is a box of a tensor map.
    boxed: bool,
}

/// The pairs of bulk stores that never write the same element, in any iterations, if no coordinate overflows `i32`. A store may be paired
/// with itself: different iterations of it then write different elements.
pub(super) fn apart(kernel: &Kernel) -> SortedSet<(OpId, OpId)> {
    let look = Look { kernel, tree: Tree::new(kernel) };
    let mut stores: SortedMap<Size, Vec<OpId>> = SortedMap::new();
    kernel.walk(&mut |id, op| {
        if let (Some(size), Some(_)) = (look.size(op), look.coordinates(op)) {
            stores.entry(size).or_default().push(id);
        }
    });
    let mut apart = SortedSet::new();
    for (size, own) in &stores {
        apart.extend(look.alike(*size, own));
        for (_, others) in stores.iter().filter(|(other, _)| *other != size && other.param == size.param) {
            let any = own.iter().flat_map(|a| others.iter().map(move |b| (*a, *b)));
            apart.extend(any.filter(|(a, b)| look.stores((*a, *b), &look.reach(kernel.op(*a), kernel.op(*b)))));
        }
    }
    apart
}

/// How far the elements of a store extend along each axis; `None` if two of them must start at the same coordinate of this axis.
type Reach = Vec<Option<i64>>;

struct Look<'k> {
    kernel: &'k Kernel,
    tree: Tree,
}

impl Look<'_> {
    /// The output and the size of a bulk store to a whole tensor.
    fn size(&self, op: &Op) -> Option<Size> {
        let OpKind::Nv(NvOp::BulkStore { bytes, tensor }) = op.kind else { return None };
        Some(Size { param: self.whole(*op.args.first()?)?, bytes, boxed: tensor })
    }

    /// The pairs of stores of one size that are apart.
    fn alike(&self, size: Size, stores: &[OpId]) -> SortedSet<(OpId, OpId)> {
        let Some(Ty::Tensor(elem, rank)) = stores.first().map(|id| self.kernel.ty(self.kernel.op(*id).args[0])) else {
            return SortedSet::new();
        };
        let rank = usize::from(rank);
        let n = elements(size.bytes, elem.bits());
        let reaches: Vec<Reach> = if size.boxed && n <= MAX_BOX {
            vec![vec![Some(n); rank]]
        } else if size.boxed {
            let all = extents_of(size.bytes, elem, rank).into_iter();
            all.map(|extents| extents.into_iter().map(|n| Some(n.into())).collect()).collect()
        } else {
            vec![line(n, rank)]
        };
        let pairs = |reach: &Reach| -> SortedSet<(OpId, OpId)> {
            let all = stores.iter().flat_map(|a| stores.iter().map(move |b| (*a, *b)));
            all.filter(|(a, b)| if a == b { self.iterations(*a, reach) } else { self.stores((*a, *b), reach) })
                .collect()
        };
        // One choice of extents for all boxes of a size: two pairs that are apart by different extents need not be
        // apart together.
        let mut best = SortedSet::new();
        for found in reaches.iter().map(pairs) {
            if found.len() > best.len() {
                best = found;
            }
        }
        best
    }

    /// How far two stores of different sizes extend.
    fn reach(&self, a: &Op, b: &Op) -> Reach {
        let of = |op: &Op| match (&op.kind, op.args.first().map(|t| self.kernel.ty(*t))) {
            (OpKind::Nv(NvOp::BulkStore { bytes, tensor }), Some(Ty::Tensor(elem, rank))) => {
                let n = elements(*bytes, elem.bits());
                if *tensor { vec![Some(n.min(MAX_BOX)); rank.into()] } else { line(n, rank.into()) }
            }
            (_, _) => Vec::new(),
        };
        of(a).into_iter().zip(of(b)).map(|(a, b)| Some(a?.max(b?))).collect()
    }

    /// Whether two stores are far enough apart along an axis, in all iterations.
    fn stores(&self, (a, b): (OpId, OpId), reach: &Reach) -> bool {
        let (first, second) = (self.kernel.op(a), self.kernel.op(b));
        let (Some(x), Some(y)) = (self.coordinates(first), self.coordinates(second)) else { return false };
        let far = |(p, q): (&Value, &Value)| {
            let (p, q) = (self.distance(*p)?, self.distance(*q)?);
            // Only sums of one value are compared, and that is the same number wherever it is used, as it is computed
            // once.
            if p.0 == q.0 { p.1.checked_sub(q.1).and_then(i64::checked_abs) } else { None }
        };
        let far: Vec<Option<i64>> = x.iter().zip(y).map(far).collect();
        // Contiguous elements go on in the next row: only stores that begin in the same row are compared by their
        // columns.
        let aligned = far.iter().zip(reach).all(|(far, reach)| reach.is_some() || *far == Some(0));
        // Boxes that do not overlap along one axis do not overlap.
        aligned && far.iter().zip(reach).any(|(far, reach)| far.zip(*reach).is_some_and(|(far, reach)| far >= reach))
    }

    /// Whether the elements of a store in different iterations of the loops around it are far enough apart.
    fn iterations(&self, id: OpId, reach: &Reach) -> bool {
        let op = self.kernel.op(id);
        let Some(coordinates) = self.coordinates(op) else { return false };
        let loops = self.tree.around(id).filter(|o| self.kernel.op(*o).kind.is_loop());
        let loops: Vec<OpId> = loops.filter(|o| !once(self.kernel, *o)).collect();
        let still = |other: &OpId, axis: &Value| step_of(self.kernel, &self.tree, *other, *axis) == Some(0);
        // In the outermost loop in which two iterations differ, the box must move along an axis along which no inner loop moves it.
        let moves = |(i, looped): (usize, &OpId)| {
            let inner = loops.get(..i).unwrap_or_default();
            let steps = |axis: &Value| {
                let step = step_of(self.kernel, &self.tree, *looped, *axis)?;
                let stride = self.kernel.int_constant(*self.kernel.op(*looped).args.get(2)?)?;
                step.checked_mul(stride)?.checked_abs()
            };
            coordinates.iter().zip(reach).any(|(axis, reach)| {
                let far = steps(axis).zip(*reach).is_some_and(|(far, reach)| far >= reach);
                far && inner.iter().all(|other| still(other, axis))
            })
        };
        let aligned =
            coordinates.iter().zip(reach).all(|(axis, reach)| reach.is_some() || loops.iter().all(|o| still(o, axis)));
        aligned && loops.iter().enumerate().all(moves)
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

    /// A value as the sum of a value that is the same throughout the kernel, or zero, and a constant; `None` if it is no such sum, and so not
    /// comparable with any value, not even with itself in another iteration.
    fn distance(&self, value: Value) -> Option<(Option<Value>, i64)> {
        if let Some(c) = self.kernel.int_constant(value) {
            return Some((None, c));
        }
        let sum = self.kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add));
        let parts = sum.and_then(|op| Some((op.args[0], self.kernel.int_constant(op.args[1])?)));
        match parts {
            // Computed once in the kernel, a value is the same number at both stores and in all iterations.
            Some((base, c)) if self.is_fixed(base) => Some((Some(base), c)),
            Some(_) | None if self.is_fixed(value) => Some((Some(value), 0)),
            Some(_) | None => None,
        }
    }

    /// Whether a value is computed once in the kernel.
    fn is_fixed(&self, value: Value) -> bool {
        matches!(self.kernel.value(value).def, Def::Param(_))
            || self.kernel.block(self.kernel.body).ops.iter().any(|id| self.kernel.op(*id).results.contains(&value))
    }
}

/// The number of elements of so many bytes.
fn elements(bytes: u32, bits: u32) -> i64 {
    (i64::from(bytes) * 8).checked_div(i64::from(bits)).unwrap_or(i64::MAX)
}

/// How far contiguous elements extend: along the last axis, and to other rows if a row is shorter.
fn line(elements: i64, rank: usize) -> Reach {
    (0..rank).map(|axis| (axis + 1 == rank).then_some(elements)).collect()
}
