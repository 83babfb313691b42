//! Grids: bounds of declared grids, the axes along which there may be several programs, and the grid that the outputs imply.
//!
mod checked;

use super::affine::{I32, Range, Term, TermRanges};
use super::partition::Partition;
use super::tiles::cdiv;
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    Def, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostOp, Kernel, Loc, OpKind, ParamKind, Signature, Value,
};

/// The maximum extent of a grid along an axis; a launch rejects larger ones.
pub const MAX_EXTENT: i64 = I32.hi;

/// The ranges of the program indices. For a grid that is not declared yet they are assumed to be small: the inference of grids uses only
/// the strides, and the verifier checks the result.
pub(super) fn program_bounds(kernel: &Kernel, grid_known: bool) -> TermRanges {
    let last = |axis: u8| if grid_known { (max_extent(&kernel.sig, axis) - 1).max(0) } else { 1023 };
    (0..3).map(|axis| (Term::Program(axis), Range { lo: 0, hi: last(axis) })).collect()
}

/// The maximum extent of the grid along an axis; 1 for an axis that it does not have.
#[must_use]
pub fn max_extent(sig: &Signature, axis: u8) -> i64 {
    match (&sig.grid, axis) {
        (GridSpec::Extents(extents), _) => {
            extents.get(usize::from(axis)).map_or(1, |e| bound(sig, e).hi.clamp(0, MAX_EXTENT))
        }
        (GridSpec::Persistent, 0) => MAX_EXTENT,
        (GridSpec::Persistent, _) => 1,
    }
}

/// The axes along which there may be several programs.
#[must_use]
pub fn wide_axes(sig: &Signature) -> Vec<u8> {
    (0..3).filter(|axis| max_extent(sig, *axis) > 1).collect()
}

/// The range of a host expression.
#[must_use]
pub fn bound(sig: &Signature, expr: &HostExpr) -> Range {
    bound_by(sig, expr, &|leaf| checked::most(sig, leaf))
}

/// The range of a host expression whose leaves have these maxima, besides those of their types.
fn bound_by(sig: &Signature, expr: &HostExpr, most: &dyn Fn(&HostExpr) -> i64) -> Range {
    const ANY: Range = Range { lo: i64::MIN, hi: i64::MAX };
    // A maximum below the minimum is that of a launch that is always rejected.
    let leaf = |range: Range| Range { lo: range.lo, hi: range.hi.min(most(expr)).max(range.lo) };
    let of = |expr: &HostExpr| bound_by(sig, expr, most);
    match expr {
        HostExpr::Const(v) => Range::point(*v),
        HostExpr::Symbol(_) | HostExpr::Dim(..) => leaf(Range { lo: 0, hi: I32.hi }),
        HostExpr::Scalar(p) => leaf(match sig.params.get(*p).map(|p| &p.kind) {
            Some(ParamKind::Scalar(e)) => scalar_bound(*e).unwrap_or(ANY),
            Some(ParamKind::Tensor { .. }) | None => ANY,
        }),
        HostExpr::Not(_) => Range { lo: 0, hi: 1 },
        HostExpr::Binary(op, a, b) => binary_bound(*op, of(a), of(b)).unwrap_or(ANY),
    }
}

fn scalar_bound(e: Elem) -> Option<Range> {
    let bits = e.bits();
    (e.is_int() && bits < 64).then(|| {
        if e.is_signed_int() {
            Range { lo: -(1 << (bits - 1)), hi: (1 << (bits - 1)) - 1 }
        } else {
            Range { lo: 0, hi: (1 << bits) - 1 }
        }
    })
}

fn binary_bound(op: HostOp, a: Range, b: Range) -> Option<Range> {
    let divisor = (b.lo == b.hi && b.lo > 0).then_some(b.lo);
    match op {
        HostOp::Add => a.plus(b),
        HostOp::Sub => a.plus(Range { lo: b.hi.checked_neg()?, hi: b.lo.checked_neg()? }),
        HostOp::Mul => a.times(b),
        HostOp::Div => divisor.map(|d| Range { lo: a.lo / d, hi: a.hi / d }),
        HostOp::Cdiv => {
            let more = a.plus(Range::point(divisor? - 1))?;
            divisor.map(|d| Range { lo: more.lo / d, hi: more.hi / d })
        }
        HostOp::Rem => divisor.map(|d| Range { lo: if a.lo < 0 { 1 - d } else { 0 }, hi: d - 1 }),
        HostOp::Min => Some(Range { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) }),
        HostOp::Max => Some(Range { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) }),
        HostOp::Eq | HostOp::Ne | HostOp::Lt | HostOp::Le | HostOp::Gt | HostOp::Ge | HostOp::And | HostOp::Or => {
            Some(Range { lo: 0, hi: 1 })
        }
    }
}

/// The grid that the outputs imply: for every axis of the grid, the number of parts of the output axis that it divides, which must be the
/// same for all outputs; a persistent grid if a loop is distributed.
///
/// # Errors
/// T0304 if no output is divided by an axis into equal parts from 0 on; T0408 if two outputs imply different extents.
pub fn infer_grid(kernel: &Kernel) -> Result<GridSpec, Diagnostic<Loc>> {
    let (mut axes, mut distributed, mut places) = (0, false, [Loc::default(); 3]);
    kernel.walk(&mut |_, op| {
        if let OpKind::ProgramId(axis) | OpKind::NumPrograms(axis) = op.kind {
            axes = axes.max(axis.saturating_add(1));
            if let Some(place) = places.get_mut(usize::from(axis)).filter(|p| **p == Loc::default()) {
                *place = op.loc;
            }
        }
        distributed |= op.kind == OpKind::For(ForKind::Distributed);
    });
    if distributed {
        return Ok(GridSpec::Persistent);
    }
    let (partition, errors) = Partition::of_open_grid(kernel, axes);
    let mut extents = Vec::new();
    for axis in 0..axes.min(3) {
        let place = places.get(usize::from(axis)).copied().unwrap_or_default();
        // The error that an output is not divided at all is more useful than the error that it is not divided evenly.
        let cause = |e: Diagnostic<Loc>| match errors.iter().find(|o| o.code == Code::Overlap) {
            Some(overlap) if e.code == Code::Grid => overlap.clone(),
            Some(_) | None => e,
        };
        extents.push(extent_of(kernel, &partition, axis, place).map_err(cause)?);
    }
    Ok(GridSpec::Extents(extents))
}

fn extent_of(kernel: &Kernel, partition: &Partition, axis: u8, place: Loc) -> Result<HostExpr, Diagnostic<Loc>> {
    let mut found: Option<(HostExpr, usize)> = None;
    for (param, key) in partition.keys().filter(|(_, k)| k.source == Term::Program(axis)) {
        let Some(extent) = super::cover::from_zero(&kernel.sig, param, key) else { continue };
        if may_be_absent(&kernel.sig, param, key.axis) {
            continue;
        }
        match &found {
            Some((first, _)) if *first == extent => {}
            None => found = Some((extent, param)),
            Some((first, other)) => {
                let name = |p: usize| crate::ir::HostNames::param(&kernel.sig, p);
                let text = |e: &HostExpr| {
                    let mut out = String::new();
                    // Writing to a string cannot fail.
                    let _ = e.write(&mut out, &kernel.sig);
                    out
                };
                let title = format!(
                    "axis {axis} of the grid is {} by `{}` and {} by `{}`",
                    text(first),
                    name(*other),
                    text(&extent),
                    name(param)
                );
                let grid = Diagnostic::new(Code::GridDisagrees, place, title);
                return Err(grid.help("write the grid in the attribute: `grid(..)`"));
            }
        }
    }
    found.map(|(extent, _)| extent).ok_or_else(|| {
        let title =
            format!("axis {axis} of the grid cannot be inferred: no output is divided evenly by `program_id({axis})`");
        Diagnostic::new(Code::Grid, place, title).help("write the grid in the attribute: `grid(cdiv(M, BM), ..)`")
    })
}

/// Whether an extent is only that of an optional tensor: a launch without the tensor has no such number.
fn may_be_absent(sig: &Signature, param: usize, axis: usize) -> bool {
    match sig.params.get(param).map(|p| &p.kind) {
        Some(ParamKind::Tensor { optional: true, shape, .. }) => shape.get(axis) == Some(&DimSpec::Any),
        Some(ParamKind::Tensor { optional: false, .. } | ParamKind::Scalar(_)) | None => false,
    }
}

/// Whether a program's index along an axis is less than the product of these values, because that is the extent of the grid, factor by factor:
///
/// ```text
/// grid(cdiv(M, 128) * cdiv(N, 256))
/// %i = program_id<0>
/// %m, %n = unflatten %i, %e, %f        %e = cdiv(M, 128), %f = cdiv(N, 256)
/// ```
///
/// A program that runs is in a grid that is not empty, so that each factor is positive then.
#[must_use]
pub(super) fn is_product(kernel: &Kernel, axis: u8, values: &[Value]) -> bool {
    let GridSpec::Extents(extents) = &kernel.sig.grid else { return false };
    let mut factors = Vec::new();
    let Some(extent) = extents.get(usize::from(axis)) else { return false };
    factors_of(extent, &mut factors);
    factors.len() == values.len() && factors.iter().zip(values).all(|(factor, v)| is_number(kernel, factor, *v))
}

/// The factors of a product, from left to right.
fn factors_of<'e>(expr: &'e HostExpr, factors: &mut Vec<&'e HostExpr>) {
    match expr {
        HostExpr::Binary(HostOp::Mul, a, b) => {
            factors_of(a, factors);
            factors_of(b, factors);
        }
        HostExpr::Binary(..)
        | HostExpr::Const(_)
        | HostExpr::Symbol(_)
        | HostExpr::Scalar(_)
        | HostExpr::Dim(..)
        | HostExpr::Not(_) => factors.push(expr),
    }
}

/// Whether a value is an extent, or an extent divided by a positive constant and rounded up, or a constant that is not negative, as an
/// expression of the launch says.
pub(crate) fn is_number(kernel: &Kernel, expr: &HostExpr, value: Value) -> bool {
    let named = |param: usize, axis: usize| match kernel.sig.params.get(param).map(|p| &p.kind) {
        Some(ParamKind::Tensor { shape, optional: false, .. }) => shape.get(axis),
        Some(ParamKind::Tensor { optional: true, .. } | ParamKind::Scalar(_)) | None => None,
    };
    let of_axis =
        |v: Value, is: &dyn Fn(usize, usize) -> bool| match kernel.def_op(v).map(|op| (&op.kind, &op.args[..])) {
            Some((OpKind::Dim(axis), [tensor])) => match kernel.value(*tensor).def {
                Def::Param(param) => is(param, usize::from(*axis)),
                Def::Result(..) | Def::BlockArg(..) => false,
            },
            Some(_) | None => false,
        };
    match expr {
        HostExpr::Const(n) => *n >= 0 && kernel.int_constant(value) == Some(*n),
        HostExpr::Dim(param, axis) => of_axis(value, &|p, a| (p, a) == (*param, *axis)),
        HostExpr::Symbol(s) => of_axis(value, &|p, a| named(p, a) == Some(&DimSpec::Bind(*s))),
        HostExpr::Binary(HostOp::Cdiv, of, by) => {
            let HostExpr::Const(by @ 1..) = **by else { return false };
            cdiv(kernel, value).is_some_and(|(x, n)| i64::from(n) == by && is_number(kernel, of, x))
        }
        HostExpr::Scalar(_) | HostExpr::Not(_) | HostExpr::Binary(..) => false,
    }
}
