//! The part of a tensor that each memory operation accesses: boxes along the axes of the parameter, through views.
//!
//! # From coordinates to elements
//!
//! A coordinate is an `i32` whose form holds modulo 2³² ([`crate::analysis::affine`]). Three facts about the language turn it into a claim
//! about elements without a modulus:
//!
//! * a coordinate is multiplied by the tile's extent, and added to the start of a view, exactly (in 64 bits);
//! * an access outside of its view, including to the left of 0, has no effect (or traps);
//! * so if the unwrapped form `v` is in `−2³¹ ..= 2³² − E`, with `E` the extent of an access in element units (1 in tile
//!   units), then either `v` is the coordinate, or the coordinate is `v − 2³²`, the access is to the left of 0, and
//!   every claim about it holds vacuously, because it accesses no elements.
//!
//! Forms beyond these bounds give no claim ([`Access::wraps`]). The bound of the grid matters here: `128 · p` with `p < cdiv(M, 128)` stays
//! below 2³¹, with an arbitrary `p` it does not.
//!
//! # Views
//!
//! * `index` fixes an axis at its coordinate.
//! * `slice(lo..hi)` shifts an axis by `max(lo, 0)` and keeps accesses inside of `lo ..= hi − 1`, which is a claim by itself
//!   if `lo` and `hi` have limits with equal terms: coordinates inside of the slice need not be known.
//! * `segment(off, e)` shifts by `off[e]`, and keeps accesses inside the segment.
//! * `shared` exempts accesses from the rule.

use super::affine::{Affine, I32, Range, Term};
use super::forms::{Forms, is_input};
use super::number::root;
use super::uses::Tree;
use crate::ir::{AmdOp, AtomicOp, Def, FetchOp, Kernel, NvOp, Op, OpId, OpKind, TileShape, TtgOp, Ty, Unit, Value};

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A load, `get` or gather, or a use as offsets of segments.
    Read,
    /// A store or `set`.
    Write,
    /// A scatter.
    Scatter,
    /// An atomic update.
    Atomic,
}

/// The claims about one axis of a parameter. Each holds for every accessed element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AxisClaims {
    /// The index along the axis is `Σ c·t + r` with `r` in the rest, without a modulus.
    pub spans: Vec<Affine>,
    /// The index is inside of the segment with this number.
    pub segments: Vec<usize>,
    /// The first index of the access.
    pub start: Option<Affine>,
    /// Whether the first index is known to be even.
    pub even: bool,
    /// The number of elements from the first one on.
    pub extent: Option<i64>,
    /// Whether a view may cut the axis at an odd element.
    pub odd_cut: bool,
    /// Whether a view is a part of the axis: a slice or a segment.
    pub cut: bool,
}

/// An access to a tensor parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operation that makes the access.
    pub op: OpId,
    /// The index of the parameter.
    pub param: usize,
    /// The kind of the access.
    pub kind: Kind,
    /// Whether it goes through a `shared` view.
    pub shared: bool,
    /// The claims, one for each axis of the parameter.
    pub axes: Vec<AxisClaims>,
    /// All coordinates of the access and of its views, each with the axis of the parameter.
    pub coordinates: Vec<(usize, Value)>,
    /// Coordinates whose form may wrap to other elements.
    pub wraps: Vec<Value>,
}

/// A segment: the rows `off[e] .. off[e + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The value number of the offsets: an input, or an invariant view of one.
    pub off: Value,
    /// The index `e` of the segment.
    pub index: Affine,
    /// An operation that creates the segment, for messages.
    pub op: OpId,
    /// Whether the offsets are checked for every index of a segment that some program has: see "Segments are disjoint" in
    /// [`crate::analysis::partition`].
    pub checked: bool,
}

/// All accesses of a kernel, in program order.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// The accesses, in program order.
    pub list: Vec<Access>,
    /// The segments of the views.
    pub segments: Vec<Segment>,
}

/// A view during its construction from its parameter.
struct View {
    access: Access,
    /// For each axis of the view: the axis of the parameter, and the start of the view along it.
    lanes: Vec<(usize, Option<Affine>)>,
}

impl Accesses {
    /// The accesses of a kernel.
    #[must_use]
    pub fn new(kernel: &Kernel, forms: &Forms, tree: &Tree) -> Accesses {
        let mut all = Accesses::default();
        let mut counted = Vec::new();
        kernel.walk(&mut |id, op| {
            match (&op.kind, op.args.as_slice()) {
                (OpKind::Segment, [_, off, e]) => {
                    if let Some(n) = all.segment(kernel, forms, (*off, *e), id) {
                        all.segments[n].checked |=
                            forms.is_contiguous(&all.segments[n].index) && tree.always_runs(kernel, id);
                    }
                }
                (OpKind::RaggedCount { .. }, [_, off]) if tree.always_runs(kernel, id) => {
                    counted.extend(forms.numbers.of(*off))
                }
                (_, _) => {}
            }
            if let Some(kind) = kind_of(&op.kind) {
                // The coordinates of a tile's bulk store are those of the source that names its destination.
                let box_of = op.args.first().and_then(|named| kernel.def_op(*named));
                let place =
                    box_of.filter(|named| is_bulk_store(op) && matches!(named.kind, OpKind::Ttg(TtgOp::Source(..))));
                all.tile_access(kernel, forms, id, place.unwrap_or(op), kind);
            }
            let offsets = matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. });
            if let (true, Some(off)) = (offsets, op.args.get(1)) {
                // Offsets are read at internal coordinates, about which nothing is claimed.
                let view = all.view(kernel, forms, *off, id, Kind::Read);
                all.list.extend(view.map(|v| v.access));
            }
        });
        all.segments.iter_mut().for_each(|s| s.checked |= counted.contains(&s.off));
        all
    }

    fn tile_access(&mut self, kernel: &Kernel, forms: &Forms, id: OpId, op: &Op, kind: Kind) {
        let Some(tensor) = op.args.first() else { return };
        let Some(mut view) = self.view(kernel, forms, *tensor, id, kind) else { return };
        let lanes = std::mem::take(&mut view.lanes);
        let (unit, extents) = extents(kernel, op, lanes.len());
        for (i, (axis, base)) in lanes.into_iter().enumerate() {
            let (Some(at), Some(extent)) = (op.args.get(i + 1), extents.get(i)) else { return };
            view.access.coordinates.push((axis, *at));
            let starts = coordinates(forms, *at, unit, *extent);
            let Some(start) = starts.first() else {
                view.access.wraps.push(*at);
                continue;
            };
            let claims = &mut view.access.axes[axis];
            let whole = base.as_ref().is_some_and(Affine::is_even);
            claims.start = base.as_ref().and_then(|b| b.plus(start));
            // Whole tiles of an even extent start at even elements, for all tile numbers.
            let even = claims.start.as_ref().is_some_and(Affine::is_even);
            claims.even = even || (unit == Unit::Tile && extent % 2 == 0 && whole);
            claims.extent = Some(*extent);
            let span = |start: &Affine| base.as_ref()?.plus(start)?.widened(*extent - 1);
            claims.spans.extend(starts.iter().filter_map(span));
        }
        self.list.push(view.access);
    }

    /// The view that a tensor is; `None` if it is not a view of a parameter.
    fn view(&mut self, kernel: &Kernel, forms: &Forms, tensor: Value, op: OpId, kind: Kind) -> Option<View> {
        let mut chain = Vec::new();
        let mut at = tensor;
        while let Def::Result(id, _) = kernel.value(at).def {
            chain.push(id);
            at = *kernel.op(id).args.first()?;
        }
        let param = root(kernel, tensor)?;
        let Ty::Tensor(_, rank) = kernel.ty(at) else { return None };
        let mut view = View {
            access: Access {
                op,
                param,
                kind,
                shared: false,
                axes: vec![AxisClaims::default(); rank.into()],
                coordinates: Vec::new(),
                wraps: Vec::new(),
            },
            lanes: (0..rank.into()).map(|axis| (axis, Some(Affine::constant(0)))).collect(),
        };
        for id in chain.into_iter().rev() {
            self.apply(kernel, forms, &mut view, id)?;
        }
        Some(view)
    }

    fn apply(&mut self, kernel: &Kernel, forms: &Forms, view: &mut View, id: OpId) -> Option<()> {
        let op = kernel.op(id);
        match (&op.kind, op.args.as_slice()) {
            (OpKind::Shared, _) => view.access.shared = true,
            (OpKind::Index(axis), [_, at]) => {
                let lane = usize::from(*axis);
                let (axis, base) = (lane < view.lanes.len()).then(|| view.lanes.remove(lane))?;
                view.access.coordinates.push((axis, *at));
                let all = coordinates(forms, *at, Unit::Elem, 1);
                if all.is_empty() {
                    view.access.wraps.push(*at);
                } else {
                    let claims = &mut view.access.axes[axis];
                    let places: Vec<Affine> = all.iter().filter_map(|form| base.as_ref()?.plus(form)).collect();
                    claims.start = places.first().cloned();
                    claims.extent = Some(1);
                    claims.spans.extend(places);
                }
            }
            (OpKind::Slice(axis), [_, lo, hi]) => {
                let (axis, base) = view.lanes.get_mut(usize::from(*axis))?;
                view.access.coordinates.extend([(*axis, *lo), (*axis, *hi)]);
                let own = forms.between(kernel, *lo, *hi);
                let claims = &mut view.access.axes[*axis];
                claims.spans.extend(own.iter().filter_map(|claim| base.as_ref()?.plus(claim)));
                claims.cut = true;
                claims.odd_cut |= !(forms.of(*lo).is_even() && forms.of(*hi).is_even());
                *base = base.take().zip(slice_start(forms, *lo)).and_then(|(b, s)| b.plus(&s));
            }
            (OpKind::Segment, [_, off, e]) => {
                let (axis, base) = view.lanes.first_mut()?;
                view.access.coordinates.push((*axis, *e));
                let whole = base.as_ref().and_then(Affine::as_constant) == Some(0);
                view.access.axes[*axis].cut = true;
                *base = None;
                if let Some(number) = self.segment(kernel, forms, (*off, *e), id).filter(|_| whole) {
                    *base = Some(Affine::term(Term::SegmentStart(number)));
                    view.access.axes[*axis].segments.push(number);
                }
            }
            (_, _) => return None,
        }
        Some(())
    }

    /// The number of a segment; `None` if its offsets may change, or the form of its index is not exact.
    fn segment(&mut self, kernel: &Kernel, forms: &Forms, (off, e): (Value, Value), op: OpId) -> Option<usize> {
        let input = root(kernel, off).is_some_and(|p| is_input(kernel, p));
        let off = forms.numbers.of(off).filter(|_| input)?;
        let index = forms.of(e);
        index.fits(&forms.ranges).filter(|_| index.is_exact())?;
        let known = self.segments.iter().position(|s| s.off == off && s.index == index);
        Some(known.unwrap_or_else(|| {
            self.segments.push(Segment { off, index, op, checked: false });
            self.segments.len() - 1
        }))
    }
}

/// The first elements of an access at a coordinate, without a modulus, for each form of the coordinate for which this is known: see the
/// beginning of this module.
fn coordinates(forms: &Forms, at: Value, unit: Unit, extent: i64) -> Vec<Affine> {
    let (slack, scale) = match unit {
        Unit::Tile => (1, extent),
        Unit::Elem => (extent, 1),
    };
    let first = |form: Affine| {
        let bounds = form.bounds(&forms.ranges)?;
        bounds.within(Range { lo: I32.lo, hi: (1 << 32) - slack }).then(|| form.times(scale)).flatten()
    };
    forms.all(at).into_iter().filter_map(first).collect()
}

/// The start of a slice, `max(lo, 0)`.
fn slice_start(forms: &Forms, lo: Value) -> Option<Affine> {
    let form = forms.of(lo);
    let range = form.fits(&forms.ranges)?;
    if range.lo >= 0 {
        return Some(form);
    }
    match (form.as_constant(), forms.numbers.of(lo)) {
        (Some(c), _) => Some(Affine::constant(c.max(0))),
        (None, Some(number)) => Some(Affine::term(Term::Clipped(number))),
        (None, None) => None,
    }
}

const fn is_bulk_store(op: &Op) -> bool {
    matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. }))
}

/// What an atomic update does to an element. Updates that do the same give the same elements in any order; what they return depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// A function of the element and an operand.
    Fetch(FetchOp),
    /// An exchange of elements that have the expected bits.
    CompareExchange,
}

/// What an atomic update does; nothing for other operations.
#[must_use]
pub const fn update(op: &Op) -> Option<Update> {
    if let OpKind::Atomic(of) | OpKind::AtomicTile(of) = op.kind {
        return Some(Update::Fetch(match of {
            AtomicOp::Add => FetchOp::Add,
            AtomicOp::Max => FetchOp::Max,
            AtomicOp::Min => FetchOp::Min,
        }));
    }
    if let OpKind::Fetch(of) = op.kind {
        return Some(Update::Fetch(of));
    }
    if let OpKind::CompareExchange = op.kind { Some(Update::CompareExchange) } else { None }
}

/// The kind of an operation's access to the memory of its first operand.
#[must_use]
pub const fn kind_of(kind: &OpKind) -> Option<Kind> {
    match kind {
        OpKind::Load(..)
        | OpKind::Get
        | OpKind::GatherRows { .. }
        | OpKind::Gather
        | OpKind::Ttg(TtgOp::Source(..) | TtgOp::SourceRows { .. }) => Some(Kind::Read),
        OpKind::Store(_) | OpKind::Set | OpKind::Ttg(TtgOp::StoreIssue(_)) => Some(Kind::Write),
        OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. }) | OpKind::Amd(AmdOp::BufferLoadLds { .. }) => {
            Some(Kind::Read)
        }
        OpKind::Nv(NvOp::BulkStore { .. }) => Some(Kind::Write),
        OpKind::ScatterRows | OpKind::Scatter => Some(Kind::Scatter),
        OpKind::Atomic(_) | OpKind::AtomicTile(_) | OpKind::Fetch(_) | OpKind::CompareExchange => Some(Kind::Atomic),
        OpKind::Const(_)
        | OpKind::ProgramId(_)
        | OpKind::NumPrograms(_)
        | OpKind::Dim(_)
        | OpKind::Present
        | OpKind::Iota(_)
        | OpKind::Splat(_)
        | OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Cmp(_)
        | OpKind::Select
        | OpKind::MulAdd
        | OpKind::Cast(_)
        | OpKind::Bitcast(_)
        | OpKind::Reshape(_)
        | OpKind::Broadcast { .. }
        | OpKind::Permute(_)
        | OpKind::Interleave
        | OpKind::Split
        | OpKind::Cut { .. }
        | OpKind::Concat(_)
        | OpKind::Reduce(..)
        | OpKind::ArgReduce(..)
        | OpKind::ReduceWith(_)
        | OpKind::Scan(..)
        | OpKind::ScanWith(_)
        | OpKind::Mma
        | OpKind::Index(_)
        | OpKind::Slice(_)
        | OpKind::Segment
        | OpKind::Shared
        | OpKind::Unflatten
        | OpKind::UnflattenGrouped(_)
        | OpKind::RaggedCount { .. }
        | OpKind::RaggedTile { .. }
        | OpKind::Print(_)
        | OpKind::Assert(_)
        | OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return
        | OpKind::Ttg(_)
        | OpKind::Local(_)
        | OpKind::Region(_)
        | OpKind::Nv(_)
        | OpKind::Amd(_) => None,
    }
}

/// The extents of a stored value, which is a tile or the contents of a slot.
fn stored_shape(kernel: &Kernel, value: Value) -> Option<TileShape> {
    match kernel.ty(value) {
        // In barrier programs, tiles in shared memory are stored too.
        Ty::Tile(_, shape) | Ty::Smem(_, shape) => Some(shape),
        Ty::Token(_, pipe) => kernel.pipe(pipe)?.fields.first().map(|f| f.shape),
        Ty::Scalar(_) | Ty::Tensor(..) | Ty::Source(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Barrier(_) => None,
    }
}

/// The unit of an access, and its extents along the axes of its view.
fn extents(kernel: &Kernel, op: &Op, rank: usize) -> (Unit, Vec<i64>) {
    let stored = || op.args.last().and_then(|v| stored_shape(kernel, *v));
    let dims = |shape: &[i32]| shape.iter().map(|d| i64::from(*d)).collect::<Vec<i64>>();
    let rows = |width: i64| (0..rank).map(|i| if i + 1 == rank { width } else { 1 }).collect();
    if let OpKind::Load(unit, shape) | OpKind::Ttg(TtgOp::Source(unit, shape)) = op.kind {
        return (unit, dims(&shape));
    }
    if let OpKind::Store(unit) | OpKind::Ttg(TtgOp::StoreIssue(unit)) = op.kind {
        return (unit, stored().map_or_else(Vec::new, |s| dims(&s)));
    }
    if let OpKind::AtomicTile(_) = op.kind {
        return (Unit::Tile, stored().map_or_else(Vec::new, |s| dims(&s)));
    }
    if let OpKind::GatherRows { width, .. } | OpKind::Ttg(TtgOp::SourceRows { width, .. }) = op.kind {
        return (Unit::Elem, rows(width.into()));
    }
    if op.kind == OpKind::ScatterRows {
        let width = stored().and_then(|s| s.last().copied()).unwrap_or(1);
        return (Unit::Elem, rows(width.into()));
    }
    (Unit::Elem, vec![1; rank])
}
