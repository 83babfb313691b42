//! Operators.

use super::{Closure, FnLower, Lowered, Val};
use crate::ast::{BinaryOp, Expr, ExprKind, LazyOp, UnaryOp};
use proc_macro2::Span;
use titan_core::ir::{BinOp, Const, Elem, OpKind, Pred, TileShape, Ty, UnOp, Value};

/// Makes a result a tile, a row or a column.
type Wrap = fn(Value) -> Val;

impl FnLower<'_, '_, '_> {
    pub(super) fn unary(&mut self, e: &Expr, op: UnaryOp, a: &Expr) -> Lowered<Val> {
        if let (UnaryOp::Neg, ExprKind::Int(v, ..)) = (op, &a.kind) {
            let elem = self.scalar_elem(a)?;
            self.check_range(*v, elem, true, a.span)?;
            let v = i64::try_from(*v).map_or(i64::MIN, |v| -v);
            return Ok(Val::Value(self.sh.b.constant(Const::Int(elem, v))));
        }
        if let (UnaryOp::Neg, ExprKind::Float(v, ..)) = (op, &a.kind) {
            let elem = self.scalar_elem(a)?;
            self.check_float(a, elem, true)?;
            let value = self.sh.b.constant(Const::Float(elem, -v));
            self.sh.literals.insert(value, a.span);
            return Ok(Val::Value(value));
        }
        let kind = match op {
            UnaryOp::Neg => UnOp::Neg,
            UnaryOp::Not => UnOp::Not,
            UnaryOp::Deref => return Err(super::Stop),
        };
        match self.expr(a)? {
            Val::Row(v) => self.op(e.span, OpKind::Unary(kind), &[v]).map(Val::Row),
            Val::Col(v) => self.op(e.span, OpKind::Unary(kind), &[v]).map(Val::Col),
            val => {
                let v = self.value(val, a.span)?;
                self.op(e.span, OpKind::Unary(kind), &[v]).map(Val::Value)
            }
        }
    }

    /// `a op b`, with the other operand of a tile broadcast.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Val, b: Val, span: Span) -> Lowered<Val> {
        let kind = ir_op(op);
        if let Some((x, y, line)) = self.along(&a, &b) {
            let along = self.binary(op, x, y, span)?;
            return self.value(along, span).map(line);
        }
        let (a, b) = match (&a, &b) {
            (Val::Value(x), Val::Value(y)) => match (self.ty(*x), self.ty(*y)) {
                (Ty::Tile(e, s), Ty::Scalar(_)) => (*x, self.beside(b, e, s, span)?),
                (Ty::Scalar(_), Ty::Tile(e, s)) => (self.beside(a, e, s, span)?, *y),
                (Ty::Scalar(half @ (Elem::F16 | Elem::Bf16)), Ty::Scalar(_)) => (*x, self.scalar_as(*y, half, span)?),
                (Ty::Scalar(_), Ty::Scalar(half @ (Elem::F16 | Elem::Bf16))) => (self.scalar_as(*x, half, span)?, *y),
                _ => (*x, *y),
            },
            (Val::Value(x), Val::Row(_) | Val::Col(_)) => {
                let (e, s) = self.rank2(*x, span)?;
                (*x, self.beside(b, e, s, span)?)
            }
            (Val::Row(_) | Val::Col(_), Val::Value(y)) => {
                let (e, s) = self.rank2(*y, span)?;
                (self.beside(a, e, s, span)?, *y)
            }
            (Val::Row(r), Val::Col(c)) | (Val::Col(c), Val::Row(r)) => {
                let (Ty::Tile(e, n), Ty::Tile(_, m)) = (self.ty(*r), self.ty(*c)) else { return Err(super::Stop) };
                let shape = TileShape::new(&[m[0], n[0]]).ok_or(super::Stop)?;
                (self.beside(a, e, shape, span)?, self.beside(b, e, shape, span)?)
            }
            _ => return Err(self.internal(span, "operands of another kind")),
        };
        Ok(Val::Value(self.op(span, kind, &[a, b])?))
    }

    /// Operands of which one is a row or a column and the other the same or a scalar, as vectors, and the kind of the result.
    fn along(&self, a: &Val, b: &Val) -> Option<(Val, Val, Wrap)> {
        let scalar = |v: &Value| matches!(self.ty(*v), Ty::Scalar(_));
        let (x, y, line): (_, _, fn(Value) -> Val) = match (a, b) {
            (Val::Row(x), Val::Row(y)) => (x, y, Val::Row),
            (Val::Col(x), Val::Col(y)) => (x, y, Val::Col),
            (Val::Row(x), Val::Value(y)) if scalar(y) => (x, y, Val::Row),
            (Val::Value(x), Val::Row(y)) if scalar(x) => (x, y, Val::Row),
            (Val::Col(x), Val::Value(y)) if scalar(y) => (x, y, Val::Col),
            (Val::Value(x), Val::Col(y)) if scalar(x) => (x, y, Val::Col),
            _ => return None,
        };
        Some((Val::Value(*x), Val::Value(*y), line))
    }

    pub(super) fn rank2(&self, v: Value, span: Span) -> Lowered<(Elem, TileShape)> {
        match self.ty(v) {
            Ty::Tile(e, s) => Ok((e, s)),
            _ => Err(self.internal(span, "a row beside a scalar")),
        }
    }

    /// `a && b`: the right side is evaluated only if the left one does not decide.
    pub(super) fn lazy(&mut self, op: LazyOp, a: &Expr, b: &Expr, span: Span) -> Lowered<Val> {
        let va = self.expr(a)?;
        if self.closure != Closure::None {
            let vb = self.under_a_condition(|f| f.expr(b))?;
            let op = if op == LazyOp::And { BinaryOp::And } else { BinaryOp::Or };
            return self.binary(op, va, vb, span);
        }
        let va = self.value(va, a.span)?;
        if let Some(c) = self.sh.b.kernel().int_constant(va) {
            let decided = (c != 0) == (op == LazyOp::Or);
            return if decided { Ok(Val::Value(va)) } else { self.expr(b) };
        }
        self.at(span);
        let mut open = self.sh.b.begin_if(va);
        if op == LazyOp::Or {
            self.sh.b.terminate(OpKind::Yield, &[va]);
            self.sh.b.begin_else(&mut open);
        }
        let vb = self.expr(b)?;
        let vb = self.value(vb, b.span)?;
        self.sh.b.terminate(OpKind::Yield, &[vb]);
        if op == LazyOp::And {
            self.sh.b.begin_else(&mut open);
            self.sh.b.terminate(OpKind::Yield, &[va]);
        }
        Ok(Val::Value(self.sh.b.end_if(open, &[Ty::BOOL])[0]))
    }
}

const fn ir_op(op: BinaryOp) -> OpKind {
    match op {
        BinaryOp::Add => OpKind::Binary(BinOp::Add),
        BinaryOp::Sub => OpKind::Binary(BinOp::Sub),
        BinaryOp::Mul => OpKind::Binary(BinOp::Mul),
        BinaryOp::Div => OpKind::Binary(BinOp::Div),
        BinaryOp::Rem => OpKind::Binary(BinOp::Rem),
        BinaryOp::And => OpKind::Binary(BinOp::And),
        BinaryOp::Or => OpKind::Binary(BinOp::Or),
        BinaryOp::Xor => OpKind::Binary(BinOp::Xor),
        BinaryOp::Shl => OpKind::Binary(BinOp::Shl),
        BinaryOp::Shr => OpKind::Binary(BinOp::Shr),
        BinaryOp::Eq => OpKind::Cmp(Pred::Eq),
        BinaryOp::Ne => OpKind::Cmp(Pred::Ne),
        BinaryOp::Lt => OpKind::Cmp(Pred::Lt),
        BinaryOp::Le => OpKind::Cmp(Pred::Le),
        BinaryOp::Gt => OpKind::Cmp(Pred::Gt),
        BinaryOp::Ge => OpKind::Cmp(Pred::Ge),
    }
}
