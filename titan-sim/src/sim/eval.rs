//! Operations that only compute: scalars, tiles, and views of tensors.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::arith::{self, bytes, cast, float, product, reduce, shape};
use super::finding::{Found, Kind};
use super::value::{Cells, Num, Tile, Val, View};
use super::work::Res;
use std::collections::BTreeMap;
use std::rc::Rc;
use titan_core::ir::{Const, Elem, Kernel, Op, OpKind, TileShape, Ty, Value};

/// The inputs of an operation: the values of its agent, its program's coordinates in the grid, and the arguments of a closure.
pub(super) struct Scope<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) env: &'a [Val],
    pub(super) program: [u32; 3],
    pub(super) grid: [u32; 3],
    pub(super) inner: BTreeMap<Value, Val>,
}

impl Scope<'_> {
    pub(super) fn get(&self, v: Value) -> Val {
        self.inner.get(&v).or_else(|| self.env.get(v.index())).cloned().unwrap_or_default()
    }

    fn arg(&self, op: &Op, i: usize) -> Val {
        op.args.get(i).map(|v| self.get(*v)).unwrap_or_default()
    }

    /// The value of a scalar operand, if it is known.
    pub(super) fn num(&self, op: &Op, i: usize) -> Option<Num> {
        if let Val::Num(n) = self.arg(op, i) { Some(n) } else { None }
    }

    pub(super) fn int(&self, op: &Op, i: usize) -> Option<i64> {
        self.num(op, i).map(Num::int)
    }

    fn elem(&self, op: &Op, i: usize) -> Elem {
        op.args.get(i).map_or(Elem::Bool, |v| self.kernel.ty(*v).elem())
    }

    fn result(&self, op: &Op) -> Ty {
        op.results.first().map_or(Ty::BOOL, |v| self.kernel.ty(*v))
    }

    fn tile(&self, op: &Op, i: usize) -> Option<Rc<Tile>> {
        if let Val::Tile(t) = self.arg(op, i) { Some(t) } else { None }
    }

    /// The elements of an operand; a scalar has one.
    fn cells(&self, op: &Op, i: usize) -> Option<Cells> {
        match self.arg(op, i) {
            Val::Num(n) => Some(arith::splat(1, n)),
            Val::Tile(t) => Some(t.cells.clone()),
            _ => None,
        }
    }
}

/// Converts cells to a value of this type.
pub(super) fn value(ty: Ty, cells: Cells) -> Val {
    match ty.tile_shape() {
        Some(shape) => Val::Tile(Rc::new(Tile { shape, cells })),
        None => Val::Num(cells.get(0)),
    }
}

/// The results of an operation without effects; [`Val::Unknown`] where an operand is not computed.
///
/// # Errors
/// A trap, if an operation on a view fails.
pub(super) fn pure(scope: &Scope<'_>, op: &Op) -> Res<Vec<Val>> {
    let one = |v: Option<Val>| Ok(vec![v.unwrap_or_default()]);
    match &op.kind {
        OpKind::Const(Const::Int(_, v)) => one(Some(Val::Num(Num::Int(*v)))),
        OpKind::Const(Const::Float(e, x)) => one(Some(Val::Num(Num::Float(float::round(*e, *x))))),
        OpKind::ProgramId(axis) => one(along(scope.program, *axis)),
        OpKind::NumPrograms(axis) => one(along(scope.grid, *axis)),
        OpKind::Present => one(Some(Val::Num(Num::Int(matches!(scope.arg(op, 0), Val::Tensor(_)).into())))),
        OpKind::Unflatten => Ok(unflatten(scope, op)),
        OpKind::UnflattenGrouped(rows) => Ok(unflatten_grouped(scope, op, *rows)),
        OpKind::Dim(_) | OpKind::Index(_) | OpKind::Slice(_) | OpKind::Shared => one(Some(view(scope, op)?)),
        OpKind::Ttg(_) => one(Some(scope.arg(op, 0))),
        OpKind::Split => {
            let halves = |c: Cells| {
                op.results.iter().enumerate().map(|(i, r)| value(scope.kernel.ty(*r), shape::half(&c, i))).collect()
            };
            Ok(scope.cells(op, 0).map_or_else(|| vec![Val::Unknown; 2], halves))
        }
        OpKind::ArgReduce(which, axis) => {
            let Some(t) = scope.tile(op, 0) else { return Ok(vec![Val::Unknown; 2]) };
            let (values, at) = reduce::arg_reduce(*which, scope.elem(op, 0), &t.cells, t.shape, usize::from(*axis));
            let tys: Vec<Ty> = op.results.iter().map(|r| scope.kernel.ty(*r)).collect();
            Ok(tys.into_iter().zip([values, at]).map(|(ty, c)| value(ty, c)).collect())
        }
        OpKind::ReduceWith(_) | OpKind::ScanWith(_) => one(by_closure(scope, op)?),
        OpKind::Iota(_)
        | OpKind::Splat(_)
        | OpKind::Reshape(_)
        | OpKind::Broadcast { .. }
        | OpKind::Permute(_)
        | OpKind::Interleave
        | OpKind::Cut { .. }
        | OpKind::Concat(_)
        | OpKind::Reduce(..)
        | OpKind::Scan(..)
        | OpKind::Mma
        | OpKind::Amd(_) => one(tiles(scope, op)),
        _ => one(elementwise(scope, op)),
    }
}

fn along(extents: [u32; 3], axis: u8) -> Option<Val> {
    extents.get(usize::from(axis)).map(|v| Val::Num(Num::Int((*v).into())))
}

/// The coordinates of a linear index: remainders from the last extent on, the last quotient first.
fn unflatten(scope: &Scope<'_>, op: &Op) -> Vec<Val> {
    let n = op.results.len();
    let mut out = vec![Val::Unknown; n];
    let Some(mut rest) = scope.int(op, 0) else { return out };
    for axis in (0..n).rev() {
        let Some(extent) = scope.int(op, axis + 1) else { return vec![Val::Unknown; n] };
        let i32_of = |v| Val::Num(Num::Int(titan_core::ir::fold::wrap(Elem::I32, v)));
        if axis == 0 {
            out[0] = i32_of(rest);
        } else {
            // As `rem` and `div` of `i32` define it: dividing by 0, the remainder is the index and the quotient 0.
            out[axis] = i32_of(rest.checked_rem(extent).unwrap_or(rest));
            rest = rest.checked_div(extent).unwrap_or(0);
        }
    }
    out
}

/// The coordinates of a linear index, whose last two axes are visited in groups of rows.
fn unflatten_grouped(scope: &Scope<'_>, op: &Op, rows: i32) -> Vec<Val> {
    let mut out = unflatten(scope, op);
    let n = out.len();
    let narrow = |v: i64| i32::try_from(v).unwrap_or(0);
    let extent = |i: usize| scope.int(op, i).map(narrow);
    if let (Some([Val::Num(Num::Int(row)), Val::Num(Num::Int(column))]), Some(height), Some(width)) =
        (out.get(n.saturating_sub(2)..), extent(n - 1), extent(n))
    {
        let at = titan_core::ir::grouped([narrow(*row), narrow(*column)], [height, width], rows);
        out.truncate(n - 2);
        out.extend(at.map(|v| Val::Num(Num::Int(v.into()))));
    }
    out
}

fn elementwise(scope: &Scope<'_>, op: &Op) -> Option<Val> {
    let (elem, ty) = (scope.elem(op, 0), scope.result(op));
    let a = scope.cells(op, 0)?;
    let cells = match &op.kind {
        OpKind::Unary(un) => arith::map(ty.elem(), &a, |x| arith::unary(*un, elem, x)),
        OpKind::Binary(bin) => arith::zip(elem, &a, &scope.cells(op, 1)?, |x, y| arith::binary(*bin, elem, x, y)),
        OpKind::Cmp(pred) => {
            arith::zip(Elem::Bool, &a, &scope.cells(op, 1)?, |x, y| Num::Int(arith::compare(*pred, elem, x, y).into()))
        }
        OpKind::Select => {
            let (then, other) = (scope.cells(op, 1)?, scope.cells(op, 2)?);
            let holds = |i: usize| a.get(if a.len() == 1 { 0 } else { i }).int() != 0;
            Cells::collect(ty.elem(), (0..then.len()).map(|i| if holds(i) { then.get(i) } else { other.get(i) }))
        }
        OpKind::MulAdd => {
            let (b, c) = (scope.cells(op, 1)?, scope.cells(op, 2)?);
            let at = |i: usize| match (a.get(i), b.get(i), c.get(i)) {
                (Num::Float(a), Num::Float(b), Num::Float(c)) => Num::Float(float::mul_add(elem, a, b, c)),
                (a, _, _) => a,
            };
            Cells::collect(elem, (0..a.len()).map(at))
        }
        OpKind::Cast(to) => arith::map(*to, &a, |x| cast::cast(elem, *to, x)),
        OpKind::Bitcast(to) => cast::bitcast(elem, *to, &a),
        _ => return None,
    };
    Some(value(ty, cells))
}

fn tiles(scope: &Scope<'_>, op: &Op) -> Option<Val> {
    let ty = scope.result(op);
    let shape = ty.tile_shape();
    let elem = scope.elem(op, 0);
    if let (OpKind::Permute(perm), Val::Smem(smem)) = (&op.kind, scope.arg(op, 0)) {
        let mut seen = (*smem).clone();
        seen.order =
            perm.iter().take(smem.order.len()).filter_map(|p| smem.order.get(usize::from(*p)).copied()).collect();
        return Some(Val::Smem(Rc::new(seen)));
    }
    let cells = match &op.kind {
        OpKind::Iota(n) => Cells::Int((0..i64::from(*n)).collect()),
        OpKind::Splat(s) => arith::splat(s.len(), scope.num(op, 0)?),
        OpKind::Reshape(_) => scope.cells(op, 0)?,
        OpKind::Broadcast { axis, n } => {
            let t = scope.tile(op, 0)?;
            shape::broadcast(&t.cells, t.shape, usize::from(*axis), usize::try_from(*n).unwrap_or(0))
        }
        OpKind::Permute(perm) => {
            let t = scope.tile(op, 0)?;
            let order: Vec<usize> = perm.iter().take(t.shape.rank()).map(|p| usize::from(*p)).collect();
            shape::permute(&t.cells, t.shape, &order)
        }
        OpKind::Cut { axis, from, .. } => {
            let (t, to) = (scope.tile(op, 0)?, ty.tile_shape()?);
            shape::cut(&t.cells, t.shape, to, usize::from(*axis), usize::try_from(*from).unwrap_or(0))
        }
        OpKind::Concat(axis) => {
            let (a, b) = (scope.tile(op, 0)?, scope.tile(op, 1)?);
            shape::concat([&a.cells, &b.cells], [a.shape, b.shape], usize::from(*axis))
        }
        OpKind::Interleave => shape::interleave(&scope.cells(op, 0)?, &scope.cells(op, 1)?),
        OpKind::Reduce(which, axis) => {
            let t = scope.tile(op, 0)?;
            reduce::reduce(*which, elem, &t.cells, t.shape, usize::from(*axis))
        }
        OpKind::Scan(which, axis) => {
            let t = scope.tile(op, 0)?;
            reduce::scan(*which, elem, &t.cells, t.shape, usize::from(*axis))
        }
        OpKind::Mma | OpKind::Amd(_) => {
            product::mma(&*scope.tile(op, 0)?, &*scope.tile(op, 1)?, &*scope.tile(op, 2)?, ty.elem())
        }
        _ => return None,
    };
    debug_assert!(shape.is_none_or(|s| s.len() == cells.len()), "as many elements as the type has");
    Some(value(ty, cells))
}

/// Applies the function of a reduction or scan.
pub(super) fn apply(scope: &Scope<'_>, op: &Op, a: Num, b: Num) -> Res<Num> {
    let Some(block) = op.regions.first() else { return Ok(a) };
    let block = scope.kernel.block(*block);
    let mut inner = scope.inner.clone();
    inner.extend(block.args.iter().copied().zip([Val::Num(a), Val::Num(b)]));
    let mut local = Scope { kernel: scope.kernel, env: scope.env, program: scope.program, grid: scope.grid, inner };
    for id in &block.ops {
        let op = scope.kernel.op(*id);
        if op.kind == OpKind::Yield {
            return local.num(op, 0).ok_or_else(|| Found::not_modelled("a function of what is not computed"));
        }
        for (result, v) in op.results.iter().zip(pure(&local, op)?) {
            local.inner.insert(*result, v);
        }
    }
    Ok(a)
}

/// Executes reductions and scans by a function.
fn by_closure(scope: &Scope<'_>, op: &Op) -> Res<Option<Val>> {
    let (Some(t), Some(init)) = (scope.tile(op, 0), scope.num(op, 1)) else { return Ok(None) };
    let f = |a: Num, b: Num| apply(scope, op, a, b);
    let elem = scope.elem(op, 0);
    let cells = match op.kind {
        OpKind::ReduceWith(axis) => reduce::reduce_with(elem, &t.cells, (t.shape, usize::from(axis)), init, f)?,
        OpKind::ScanWith(axis) => reduce::scan_with(elem, &t.cells, (t.shape, usize::from(axis)), init, f)?,
        _ => return Ok(None),
    };
    Ok(Some(value(scope.result(op), cells)))
}

/// Evaluates extents and views of tensors.
fn view(scope: &Scope<'_>, op: &Op) -> Res<Val> {
    let Val::Tensor(t) = scope.arg(op, 0) else {
        return Err(Found::new(Kind::Trap, "a tensor is used that was not passed"));
    };
    let known =
        |i: usize| scope.int(op, i).ok_or_else(|| Found::not_modelled("a view that depends on what is not computed"));
    let mut v: View = (*t).clone();
    match op.kind {
        OpKind::Dim(axis) => {
            let extent = t.extents.get(usize::from(axis)).copied().unwrap_or(0);
            return Ok(Val::Num(Num::Int(extent)));
        }
        OpKind::Index(axis) => {
            let (axis, i) = (usize::from(axis), known(1)?);
            if axis < v.extents.len() {
                let (extent, base) = (v.extents.remove(axis), v.axes.remove(axis));
                v.outside |= !(0..extent).contains(&i);
                v.start[base] += if v.outside { 0 } else { i };
            }
        }
        OpKind::Slice(axis) => {
            let (lo, hi) = (known(1)?, known(2)?);
            narrow(&mut v, usize::from(axis), lo, hi);
        }
        _ => {}
    }
    Ok(Val::Tensor(Rc::new(v)))
}

/// Restricts a view to `lo .. hi` along an axis, clipped to its extent.
pub(super) fn narrow(v: &mut View, axis: usize, lo: i64, hi: i64) {
    if let (Some(extent), Some(base)) = (v.extents.get_mut(axis), v.axes.get(axis)) {
        let lo = lo.clamp(0, *extent);
        *extent = hi.clamp(lo, *extent) - lo;
        v.start[*base] += lo;
    }
}

/// Decodes the elements of a tile from bytes.
pub(super) fn from_bytes(elem: Elem, shape: TileShape, raw: &[u8]) -> Val {
    Val::Tile(Rc::new(Tile { shape, cells: bytes::decode(elem, raw) }))
}
