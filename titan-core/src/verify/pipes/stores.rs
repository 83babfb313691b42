//! Rule 63: a role does not access elements that it has stored from a staging slot, neither directly nor by another such store.
//!
//! Such a store is in flight until the kernel ends: a wait for it shows that its slot has been read, not that the output has been written.
//! Two accesses are compared by their positions: the second one may be executed later in the same iteration of all loops around both, or in
//! a later iteration of any of them. They are disjoint if their coordinates differ by a constant of at least the extent of a tile, or,
//! between iterations of a loop, by the index of that loop.

use crate::analysis::access::{Access, Accesses, Kind};
use crate::analysis::affine::{Affine, Term};
use crate::analysis::forms::Forms;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::{Block, Kernel, Op, OpId, OpKind, TtgOp, Ty, Unit, Value};
use crate::verify::Error;
use crate::verify::loops::{changes, once, step_of};
use crate::verify::roles::threads;

/// Violations of rule 63.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut stores = false;
    kernel.walk(&mut |_, op| stores |= is_store(op));
    if !stores {
        return Vec::new();
    }
    let tree = Tree::new(kernel);
    let forms = Forms::new(kernel, true);
    let accesses = Accesses::new(kernel, &forms, &tree);
    let mut errors = Vec::new();
    for (_, block) in threads(kernel) {
        let mut order = SortedMap::new();
        kernel.walk_block(block, &mut |id, _| {
            order.insert(id, order.len());
        });
        let own: Vec<&Access> = accesses.list.iter().filter(|a| order.contains_key(&a.op)).collect();
        let look = Look { kernel, tree: &tree, forms: &forms, order };
        let found = |staged: bool| -> Vec<(&Access, &Access)> {
            let late = own.iter().filter(|a| is_store(kernel.op(a.op)) == staged);
            let overlapping = late.filter_map(|late| {
                let mut early = own.iter().filter(|a| a.param == late.param && is_store(kernel.op(a.op)));
                early.find(|early| look.may_overlap(early, late)).map(|early| (*early, *late))
            });
            overlapping.collect()
        };
        // One error for an output that is also accessed directly, and one for two stores to it.
        let others = found(false);
        let mut told: SortedSet<usize> = others.iter().map(|(_, late)| late.param).collect();
        let again = found(true).into_iter().filter(|(_, late)| told.insert(late.param));
        errors.extend(others.iter().copied().chain(again).map(|(early, late)| look.told(early, late)));
    }
    errors
}

fn is_store(op: &Op) -> bool {
    matches!(op.kind, OpKind::Ttg(TtgOp::StoreIssue(_)))
}

/// An access to a tile by its number or its first element.
struct Tile {
    unit: Unit,
    tensor: Value,
    shape: Vec<Option<i64>>,
    first: Vec<Value>,
}

/// The accesses of a role.
struct Look<'a> {
    kernel: &'a Kernel,
    tree: &'a Tree,
    forms: &'a Forms,
    /// The position of each operation in program order.
    order: SortedMap<OpId, usize>,
}

impl Look<'_> {
    /// Whether the second access may be executed after the first and access the same element.
    fn may_overlap(&self, early: &Access, late: &Access) -> bool {
        if always_apart(early, late) {
            return false;
        }
        let around: Vec<OpId> = self.tree.around(late.op).filter(|o| self.order.contains_key(o)).collect();
        let mut common = self.tree.around(early.op).filter(|o| around.contains(o)).peekable();
        let arms = common.peek().is_some_and(|o| {
            self.kernel.op(*o).kind == OpKind::If && self.region(*o, early.op) != self.region(*o, late.op)
        });
        let comes_later = self.order.get(&early.op) < self.order.get(&late.op) && !arms;
        let again = |o: OpId| self.kernel.op(o).kind.is_loop() && !once(self.kernel, o);
        comes_later || common.any(|o| again(o) && !self.names_index(o, early, late))
    }

    /// The region of an operation that contains another one.
    fn region(&self, around: OpId, inner: OpId) -> Option<Block> {
        std::iter::successors(Some(inner), |o| self.tree.parent(*o))
            .find(|o| self.tree.parent(*o) == Some(around))
            .and_then(|o| self.tree.block_of(o))
    }

    /// Whether the tile indices of both accesses determine the iteration of a loop.
    fn names_index(&self, looped: OpId, early: &Access, late: &Access) -> bool {
        let op = self.kernel.op(looped);
        let body = op.regions.first().filter(|_| matches!(op.kind, OpKind::For(_)));
        let Some(index) = body.and_then(|b| self.kernel.block(*b).args.first().copied()) else { return false };
        let (Some(own), Some(other)) = (self.tile(early), self.tile(late)) else { return false };
        let alike = (own.unit, own.tensor, &own.shape) == (other.unit, other.tensor, &other.shape);
        if !alike || changes(self.kernel, self.tree, looped, own.tensor) {
            return false;
        }
        let step = |v: &Value| step_of(self.kernel, self.tree, looped, *v);
        if own.unit == Unit::Elem {
            // The index advances by at least the extent of the tile, also modulo 2³².
            let stride = op.args.get(2).and_then(|v| self.kernel.int_constant(*v));
            let moves = |extent: Option<i64>| stride.zip(extent).is_some_and(|(stride, extent)| stride >= extent);
            let mut axes = own.first.iter().zip(other.first).zip(&own.shape);
            return axes.any(|((a, b), extent)| *a == b && matches!(step(a), Some(1 | -1)) && moves(*extent));
        }
        // The axes along which both have the same index.
        let same: Vec<Value> = own.first.iter().zip(other.first).filter(|(a, b)| **a == *b).map(|(a, _)| *a).collect();
        let digits = || {
            let parts = same.iter().filter_map(|v| self.kernel.def_op(*v));
            parts.into_iter().any(|op| {
                matches!(op.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_))
                    && op.args.split_first().is_some_and(|(base, extents)| {
                        *base == index && extents.iter().all(|e| self.forms.numbers.of(*e).is_some())
                    })
                    && op.results.iter().all(|part| same.contains(part))
            })
        };
        // An odd multiple of the loop index differs in each iteration, also modulo 2³².
        let odd = |v: &Value| step(v).is_some_and(|step| step % 2 != 0);
        same.iter().any(odd) || digits()
    }

    /// The tile of an access; `None` for accesses to elements and rows, which are not distinguished.
    fn tile(&self, access: &Access) -> Option<Tile> {
        let op = self.kernel.op(access.op);
        let unit = if let OpKind::Load(unit, _) | OpKind::Store(unit) | OpKind::Ttg(TtgOp::StoreIssue(unit)) = op.kind {
            unit
        } else {
            matches!(op.kind, OpKind::AtomicTile(_)).then_some(Unit::Tile)?
        };
        let (tensor, rest) = op.args.split_first()?;
        let Ty::Tensor(_, rank) = self.kernel.ty(*tensor) else { return None };
        let shape = access.axes.iter().map(|axis| axis.extent).collect();
        Some(Tile { unit, tensor: *tensor, shape, first: rest.get(..usize::from(rank))?.to_vec() })
    }

    fn told(&self, early: &Access, late: &Access) -> Error {
        let tensor = self.kernel.display_name(self.kernel.param(late.param));
        let staged = is_store(self.kernel.op(late.op));
        let done = match late.kind {
            Kind::Read => "read",
            Kind::Write if staged => "stored from a staging slot",
            Kind::Write => "stored",
            Kind::Scatter => "scattered to",
            Kind::Atomic => "updated",
        };
        let title = if early.op == late.op {
            format!(
                "`{tensor}` is {done} while the store of another iteration to the same place may still be in flight"
            )
        } else {
            format!("`{tensor}` is {done} while a store from a staging slot to it may still be in flight")
        };
        let error = Error::new(Code::InFlight, self.kernel.op(late.op).loc, title);
        if early.op == late.op {
            return error.help(format!(
                "store a different tile in each iteration, or use `{tensor}.store_tile(..)`: stores from registers are ordered"
            ));
        }
        error.related(self.kernel.op(early.op).loc, "the store").help(format!(
            "use `{tensor}.store_tile(..)` instead of that store: stores from registers are ordered with this access"
        ))
    }
}

/// Whether two accesses are disjoint in all iterations of all loops.
fn always_apart(a: &Access, b: &Access) -> bool {
    let fixed = |form: &Affine| {
        form.terms.keys().all(|term| match term {
            Term::Program(_) | Term::Invariant(_) | Term::Clipped(_) => true,
            Term::Work | Term::Part(..) | Term::SegmentStart(_) => false,
        })
    };
    let apart =
        |x: &Affine, y: &Affine| x.terms == y.terms && fixed(x) && (x.rest.hi < y.rest.lo || y.rest.hi < x.rest.lo);
    a.axes.iter().zip(&b.axes).any(|(p, q)| p.spans.iter().any(|x| q.spans.iter().any(|y| apart(x, y))))
}
