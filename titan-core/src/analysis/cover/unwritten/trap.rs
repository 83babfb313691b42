//! Conditions under which no operation of a launch traps, so that the launch succeeds: a `get` or `set` outside of its tensor traps, and so
//! does a segment whose offsets do not exist. Other offsets and elements may have any contents.
//!
//! Coordinates are compared by an upper bound, an expression that the host could evaluate. If there is none, or the kernel has an assertion,
//! it is not known which arguments it accepts.

use crate::analysis::access::{Access, Accesses};
use crate::analysis::affine::I32;
use crate::analysis::cover::extent;
use crate::analysis::forms::Forms;
use crate::analysis::tiles::cdiv;
use crate::collections::SortedMap;
use crate::ir::{BinOp, Def, Elem, GridSpec, HostExpr, HostOp, Kernel, Op, OpId, OpKind, ParamKind, Value};
use std::cell::Cell;

/// The maximum of a range that is used as a bound.
const LARGEST: i64 = 1 << 16;
/// The maximum number of values, with repetitions, for which bounds are computed.
const VALUES: u32 = 1024;

/// The conditions, as expressions with the minimum of each; `None` if they are not known.
pub(super) fn conditions(kernel: &Kernel, forms: &Forms, accesses: &Accesses) -> Option<Vec<(HostExpr, i64)>> {
    let mut bounds = Bounds { kernel, forms, ends: SortedMap::new(), left: Cell::new(VALUES) };
    let mut trapping: Vec<OpId> = Vec::new();
    kernel.walk(&mut |id, op| {
        if let (OpKind::For(_), [_, end, ..], Some(region)) = (&op.kind, &op.args[..], op.regions.first()) {
            bounds.ends.extend(kernel.block(*region).args.first().map(|index| (*index, *end)));
        }
        if matches!(op.kind, OpKind::Assert(_) | OpKind::Get | OpKind::Set | OpKind::Segment) {
            trapping.push(id);
        }
    });
    let mut out = Vec::new();
    for id in trapping {
        let op = kernel.op(id);
        match (&op.kind, &op.args[..]) {
            (OpKind::Segment, [_, off, index]) => {
                let Def::Param(off) = kernel.value(*off).def else { return None };
                out.push(bounds.inside((off, 0), *index, 2)?);
            }
            (OpKind::Get | OpKind::Set, _) => {
                let access: &Access = accesses.list.iter().find(|a| a.op == id)?;
                if access.axes.iter().any(|axis| axis.cut) {
                    return None;
                }
                for (axis, at) in &access.coordinates {
                    out.push(bounds.inside((access.param, *axis), *at, 1)?);
                }
            }
            (_, _) => return None,
        }
    }
    Some(out)
}

/// Upper bounds of values.
struct Bounds<'a> {
    kernel: &'a Kernel,
    forms: &'a Forms,
    /// The end of the loop of each loop variable.
    ends: SortedMap<Value, Value>,
    /// The number of values that may still be bounded: an expression repeats what a value is computed from at each of its uses.
    left: Cell<u32>,
}

impl Bounds<'_> {
    /// That this many elements from a coordinate on are inside of a tensor.
    fn inside(&self, (param, axis): (usize, usize), at: Value, elements: i64) -> Option<(HostExpr, i64)> {
        // The upper bound is less than the extent, so the value does not wrap.
        self.forms.of(at).bounds(&self.forms.ranges).filter(|range| range.lo >= 0)?;
        let extent = extent(&self.kernel.sig, param, axis)?;
        Some((HostExpr::binary(HostOp::Sub, extent, self.most(at)?), elements))
    }

    /// An expression that is at least a value.
    fn most(&self, value: Value) -> Option<HostExpr> {
        self.left.set(self.left.get().checked_sub(1)?);
        let one_less = |e: HostExpr| HostExpr::binary(HostOp::Sub, e, HostExpr::Const(1));
        let found = match self.kernel.value(value).def {
            Def::Param(_) => self.exact(value),
            Def::BlockArg(..) => self.ends.get(&value).and_then(|end| self.most(*end)).map(one_less),
            Def::Result(op, result) => self.result(self.kernel.op(op), result),
        };
        let range = self.forms.range(value);
        found.or_else(|| (range.hi <= LARGEST).then_some(HostExpr::Const(range.hi)))
    }

    fn result(&self, op: &Op, result: usize) -> Option<HostExpr> {
        match (&op.kind, &op.args[..]) {
            (OpKind::ProgramId(axis), _) => {
                let GridSpec::Extents(extents) = &self.kernel.sig.grid else { return None };
                let programs = extents.get(usize::from(*axis)).cloned().unwrap_or(HostExpr::Const(1));
                Some(HostExpr::binary(HostOp::Sub, programs, HostExpr::Const(1)))
            }
            (OpKind::Binary(of), [a, b]) => self.binary(*of, *a, *b),
            (OpKind::Unflatten, [_, extents @ ..]) if result > 0 => {
                let extent = self.most(*extents.get(result)?)?;
                Some(HostExpr::binary(HostOp::Sub, extent, HostExpr::Const(1)))
            }
            (OpKind::Unflatten, [base, _, others @ ..]) => {
                let rest = others.iter().map(|e| self.exact(*e)).collect::<Option<Vec<HostExpr>>>()?;
                let divided = |whole, by| HostExpr::binary(HostOp::Div, whole, by);
                Some(rest.into_iter().fold(self.most(*base)?, divided))
            }
            (_, _) => self.exact(*op.results.get(result)?),
        }
    }

    fn binary(&self, of: BinOp, a: Value, b: Value) -> Option<HostExpr> {
        let constant = self.kernel.int_constant(b);
        let positive = constant.filter(|c| *c > 0);
        let both = |of: HostOp| Some(HostExpr::binary(of, self.most(a)?, self.most(b)?));
        let by = |of: HostOp, c: i64| Some(HostExpr::binary(of, self.most(a)?, HostExpr::Const(c)));
        match of {
            BinOp::Add => both(HostOp::Add),
            BinOp::Max => both(HostOp::Max),
            BinOp::Min => both(HostOp::Min).or_else(|| self.most(a)).or_else(|| self.most(b)),
            BinOp::Sub => {
                let least = self.forms.range(b).lo;
                (least > I32.lo).then(|| by(HostOp::Sub, least)).flatten()
            }
            BinOp::Mul => match (positive, self.kernel.int_constant(a).filter(|c| *c > 0)) {
                (Some(c), _) => by(HostOp::Mul, c),
                (None, Some(c)) => Some(HostExpr::binary(HostOp::Mul, self.most(b)?, HostExpr::Const(c))),
                (None, None) => None,
            },
            BinOp::Div => by(HostOp::Div, positive?),
            BinOp::Rem => positive.map(|c| HostExpr::Const(c - 1)),
            BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr | BinOp::MulHi | BinOp::Powf => None,
        }
    }

    fn exact(&self, value: Value) -> Option<HostExpr> {
        exact(self.kernel, value)
    }
}

/// The expression that equals a value: a constant, an argument, an extent, or an extent divided by a constant and rounded up.
pub(super) fn exact(kernel: &Kernel, value: Value) -> Option<HostExpr> {
    if let Def::Param(param) = kernel.value(value).def {
        let kind = kernel.sig.params.get(param).map(|p| &p.kind);
        return (kind == Some(&ParamKind::Scalar(Elem::I32))).then_some(HostExpr::Scalar(param));
    }
    if let Some(c) = kernel.int_constant(value) {
        return Some(HostExpr::Const(c));
    }
    if let Some((of, by)) = cdiv(kernel, value) {
        return Some(HostExpr::binary(HostOp::Cdiv, exact(kernel, of)?, HostExpr::Const(by.into())));
    }
    let op = kernel.def_op(value)?;
    let (OpKind::Dim(axis), [tensor]) = (&op.kind, &op.args[..]) else { return None };
    let Def::Param(param) = kernel.value(*tensor).def else { return None };
    Some(HostExpr::Dim(param, usize::from(*axis)))
}
