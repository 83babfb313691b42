//! Operations of scalars and tiles.

use super::{Closure, FnLower, Lowered, Stop, Val};
use crate::ast::{Expr, ExprKind, GenericArg};
use crate::infer::{ITy, joined};
use crate::method::Method;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{BinOp, Const, Elem, OpKind, TileShape, Ty, Value};

impl FnLower<'_, '_, '_> {
    pub(super) fn value_method(
        &mut self,
        e: &Expr,
        method: Method,
        v: Value,
        generics: &[GenericArg],
        args: &[Expr],
    ) -> Lowered<Val> {
        let span = e.span;
        let one = |s: &mut Self, kind, args: &[Value]| s.op(span, kind, args).map(Val::Value);
        match method {
            Method::Unary(op) => one(self, OpKind::Unary(op), &[v]),
            Method::Composed(composed) => self.composed(composed, v, span).map(Val::Value),
            Method::Binary(op) => {
                let b = self.operand(v, &args[0])?;
                let a = self.widen(v, b, span)?;
                one(self, OpKind::Binary(op), &[a, b])
            }
            Method::Clamp => {
                let (lo, hi) = (self.operand(v, &args[0])?, self.operand(v, &args[1])?);
                let low = self.op(span, OpKind::Binary(BinOp::Max), &[v, lo])?;
                one(self, OpKind::Binary(BinOp::Min), &[low, hi])
            }
            Method::MulAdd => {
                let (b, c) = (self.operand(v, &args[0])?, self.operand(v, &args[1])?);
                one(self, OpKind::MulAdd, &[v, b, c])
            }
            Method::Cast | Method::Bitcast => {
                let to = match self.infer.ty(e.id) {
                    ITy::Tile(x, _) | ITy::Scalar(x) => self.elem(*x, span)?,
                    _ => return Err(Stop),
                };
                if method == Method::Bitcast { one(self, OpKind::Bitcast(to), &[v]) } else { self.cast(v, to, span) }
            }
            Method::Map => self.map(e, v, &args[0]),
            Method::Row => Ok(Val::Row(v)),
            Method::Col => Ok(Val::Col(v)),
            Method::Reshape => {
                let (_, to) = self.tile_ty(e.id, span)?;
                one(self, OpKind::Reshape(to), &[v])
            }
            Method::Interleave => {
                let b = self.operand(v, &args[0])?;
                one(self, OpKind::Interleave, &[v, b])
            }
            Method::Part => self.part(e, v, &args[0]),
            Method::Concat => {
                let val = self.expr(&args[0])?;
                let other = self.value(val, args[0].span)?;
                let (_, to) = self.tile_ty(e.id, span)?;
                let axis = joined(self.tile_shape(v)?, self.tile_shape(other)?, to).ok_or(Stop)?;
                one(self, OpKind::Concat(axis), &[v, other])
            }
            Method::At => self.element_at(v, &args[0], span),
            Method::Split => {
                let halves = self.ops(span, OpKind::Split, &[v])?;
                Ok(Val::Tuple(halves.into_iter().map(Val::Value).collect()))
            }
            Method::Broadcast => {
                let axis = self.axis(generics)?;
                let n = generics
                    .get(1)
                    .and_then(|g| self.env.const_arg(g).ok())
                    .and_then(|n| i32::try_from(n).ok())
                    .ok_or(Stop)?;
                one(self, OpKind::Broadcast { axis, n }, &[v])
            }
            Method::Transpose => {
                let perm = if self.tile_shape(v)?.rank() == 3 { [0, 2, 1, 3] } else { [1, 0, 2, 3] };
                one(self, OpKind::Permute(perm), &[v])
            }
            Method::Permute => {
                let mut perm = [0, 1, 2, 3];
                for (slot, g) in perm.iter_mut().zip(generics) {
                    let axis = self.env.const_arg(g).map_err(|_| Stop)?;
                    *slot = u8::try_from(axis).map_err(|_| Stop)?;
                }
                one(self, OpKind::Permute(perm), &[v])
            }
            Method::Reduce(op) => one(self, OpKind::Reduce(op, self.axis(generics)?), &[v]),
            Method::Scan(op) => one(self, OpKind::Scan(op, self.axis(generics)?), &[v]),
            Method::ArgReduce(op) => {
                let parts = self.ops(span, OpKind::ArgReduce(op, self.axis(generics)?), &[v])?;
                Ok(Val::Tuple(parts.into_iter().map(Val::Value).collect()))
            }
            Method::ReduceWith => self.combine(OpKind::ReduceWith(self.axis(generics)?), v, args, span),
            Method::ScanWith => self.combine(OpKind::ScanWith(self.axis(generics)?), v, args, span),
            Method::Quantifier(any) => self.quantifier(any, self.axis(generics)?, v, span),
            _ => Err(self.internal(span, "an operation of tensors on a value")),
        }
    }

    pub(super) fn axis(&self, generics: &[GenericArg]) -> Lowered<u8> {
        let arg = generics.first().ok_or(Stop)?;
        let axis = self.env.const_arg(arg).map_err(|_| Stop)?;
        u8::try_from(axis).map_err(|_| Stop)
    }

    pub(super) fn tile_shape(&self, v: Value) -> Lowered<TileShape> {
        self.ty(v).tile_shape().ok_or(Stop)
    }

    /// The operand of a method, converted to the shape of the receiver.
    fn operand(&mut self, recv: Value, arg: &Expr) -> Lowered<Value> {
        let val = self.expr(arg)?;
        match self.ty(recv) {
            Ty::Tile(e, s) => self.beside(val, e, s, arg.span),
            Ty::Scalar(half @ (Elem::F16 | Elem::Bf16)) => {
                let v = self.value(val, arg.span)?;
                self.scalar_as(v, half, arg.span)
            }
            _ => self.value(val, arg.span),
        }
    }

    /// Inside `.map`, a scalar receiver with a tile operand.
    fn widen(&mut self, v: Value, beside: Value, span: Span) -> Lowered<Value> {
        match (self.ty(v), self.ty(beside)) {
            (Ty::Scalar(_), Ty::Tile(e, s)) => self.beside(Val::Value(v), e, s, span),
            _ => Ok(v),
        }
    }

    /// `x.map(|v| ..)`: the closure's body, with the whole tile for `v`.
    fn map(&mut self, e: &Expr, v: Value, closure: &Expr) -> Lowered<Val> {
        let ExprKind::Closure { params, body } = &closure.kind else { return Err(Stop) };
        let shape = self.tile_shape(v)?;
        let (elem, _) = self.tile_ty(e.id, e.span)?;
        let was = std::mem::replace(&mut self.closure, Closure::Map);
        let result = params.first().map_or(Err(Stop), |p| self.bind(p, Val::Value(v))).and_then(|()| self.expr(body));
        self.closure = was;
        let value = self.beside(result?, elem, shape, body.span)?;
        Ok(Val::Value(value))
    }

    /// `x.reduce::<AX>(init, |a, b| ..)` and `x.scan::<AX>(..)`
    fn combine(&mut self, kind: OpKind, v: Value, args: &[Expr], span: Span) -> Lowered<Val> {
        let init = self.expr(&args[0])?;
        let init = self.value(init, args[0].span)?;
        let ExprKind::Closure { params, body } = &args[1].kind else { return Err(Stop) };
        self.at(span);
        let (region, inner) = self.sh.b.begin_combine(self.ty(v).elem());
        for (pat, value) in params.iter().zip(inner) {
            self.bind(pat, Val::Value(value))?;
        }
        let was = std::mem::replace(&mut self.closure, Closure::Combine);
        let result = self.expr(body);
        self.closure = was;
        let result = self.value(result?, body.span)?;
        self.sh.b.terminate(OpKind::Yield, &[result]);
        self.at(span);
        self.sh.b.end_combine(kind, &[v, init], region).map(Val::Value).map_err(|e| self.type_error(span, e))
    }

    fn quantifier(&mut self, any: bool, axis: u8, v: Value, span: Span) -> Lowered<Val> {
        let init = self.sh.b.constant(Const::Int(Elem::Bool, (!any).into()));
        self.at(span);
        let (region, [a, b]) = self.sh.b.begin_combine(Elem::Bool);
        let op = if any { BinOp::Or } else { BinOp::And };
        let r = self.op(span, OpKind::Binary(op), &[a, b])?;
        self.sh.b.terminate(OpKind::Yield, &[r]);
        self.sh
            .b
            .end_combine(OpKind::ReduceWith(axis), &[v, init], region)
            .map(Val::Value)
            .map_err(|e| self.type_error(span, e))
    }

    /// The error for an operation that is not defined for this receiver.
    pub(super) fn no_meaning(&self, span: Span) -> Stop {
        self.error(Code::UnknownOp, span, "this operation has no meaning here")
    }
}
