//! Expressions.

use super::{Closure, FnLower, Lowered, Stop, Val};
use crate::ast::{Expr, ExprKind, GenericKind, Path, Res};
use crate::consts::{self, ConstValue};
use crate::infer::ITy;
use crate::method::{Method, Receiver, lookup};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{BinOp, Const, Elem, ForKind, OpKind, Value};

impl FnLower<'_, '_, '_> {
    pub(super) fn expr(&mut self, e: &Expr) -> Lowered<Val> {
        match &e.kind {
            ExprKind::Int(v, ..) => {
                self.literal(e, ConstValue::Int(i64::try_from(*v).unwrap_or(i64::MAX)), *v > i64::MAX as u128)
            }
            ExprKind::Float(v, ..) => self.literal(e, ConstValue::Float(*v), false),
            ExprKind::Bool(v, _) => Ok(Val::Value(self.sh.b.constant(Const::Int(Elem::Bool, (*v).into())))),
            ExprKind::Path(path, res) => self.path(e, path, res),
            ExprKind::Unary(op, a) => self.unary(e, *op, a),
            ExprKind::Binary(op, a, b) => {
                let (va, vb) = (self.expr(a)?, self.expr(b)?);
                self.binary(*op, va, vb, e.span)
            }
            ExprKind::Lazy(op, a, b) => self.lazy(*op, a, b, e.span),
            ExprKind::Assign(place, value) => {
                let val = self.expr(value)?;
                self.assign(place, val)
            }
            ExprKind::AssignOp(op, place, value) => {
                // Rust evaluates the right side of a compound assignment of scalars first; neither side has effects on the other.
                let val = self.expr(value)?;
                let old = self.expr(place)?;
                let new = self.binary(*op, old, val, e.span)?;
                self.assign(place, new)
            }
            ExprKind::Call { path, callee, args, .. } => self.call(e, path, callee, args),
            ExprKind::Method { recv, name, generics, args, .. }
                if matches!(self.infer.ty(recv.id), ITy::Tuple(_)) && (name == "reduce" || name == "scan") =>
            {
                self.tuple_fold(e, name == "scan", recv, generics, args)
            }
            ExprKind::Method { recv, name, generics, args, .. } => {
                let receiver = match self.infer.ty(recv.id) {
                    ITy::Tile(..) => Receiver::Tile,
                    ITy::Tensor(_) => Receiver::Tensor,
                    ITy::Own(_) => Receiver::Own,
                    ITy::Pipe(pipe) => pipe.kind().map_or(Receiver::Scalar, Receiver::Pipe),
                    _ => Receiver::Scalar,
                };
                let method =
                    lookup(receiver, &name.to_string()).ok_or_else(|| self.internal(e.span, "an unknown operation"))?;
                self.method(e, method, recv, generics, args)
            }
            ExprKind::If { cond, then, other } => self.branch(cond, then, other.as_deref(), e.span),
            ExprKind::Block(b) | ExprKind::Unsafe(b) => self.block(b),
            ExprKind::While { .. } | ExprKind::Loop { .. } if self.closure != Closure::None => {
                Err(self.loop_in_closure(e.span))
            }
            ExprKind::For { .. } if self.closure == Closure::Combine => Err(self.loop_in_closure(e.span)),
            ExprKind::For { label, pat, iter, body } => self.for_loop(label.as_ref(), pat, iter, body, e.span),
            ExprKind::While { label, cond, body } => self.while_loop(label.as_ref(), cond, body, e.span),
            ExprKind::Loop { label, body } => self.endless_loop(label.as_ref(), body, e.span),
            ExprKind::Break { label, value } => self.break_loop(label.as_ref(), value.as_deref(), e.span),
            ExprKind::Continue { label } => self.continue_loop(label.as_ref(), e.span),
            ExprKind::Return(value) => self.return_value(value.as_deref(), e.span),
            ExprKind::Array(list, _) => list.iter().map(|e| self.expr(e)).collect::<Lowered<_>>().map(Val::Array),
            ExprKind::Tuple(list, _) if list.is_empty() => Ok(Val::Unit),
            ExprKind::Tuple(list, _) => list.iter().map(|e| self.expr(e)).collect::<Lowered<_>>().map(Val::Tuple),
            ExprKind::Index(base, index) => self.index(base, index),
            ExprKind::Field(base, n, _) => match self.expr(base)? {
                Val::Tuple(list) => list.into_iter().nth(*n).ok_or_else(|| self.internal(e.span, "a missing field")),
                _ => Err(self.internal(e.span, "a field of something else")),
            },
            ExprKind::As(a, _) => {
                let val = self.expr(a)?;
                let v = self.value(val, a.span)?;
                match self.infer.ty(e.id).clone() {
                    ITy::Scalar(to) => {
                        let to = self.elem(to, e.span)?;
                        // rustc takes a literal in front of `as` for one of the type behind it.
                        self.check_float(innermost(a), to, false)?;
                        self.cast(v, to, e.span)
                    }
                    _ => Err(self.internal(e.span, "`as` to something else")),
                }
            }
            ExprKind::Range { lo, hi, inclusive } => self.range(lo, hi, *inclusive, e.span),
            ExprKind::Paren(a, _) | ExprKind::Ref { inner: a, .. } => self.expr(a),
            ExprKind::Macro { name, format, args, .. } => self.mac(&name.to_string(), format.as_deref(), args, e.span),
            ExprKind::Roles { arms, .. } => self.roles(arms, e.span),
            ExprKind::Closure { .. } | ExprKind::Bad => Err(Stop),
        }
    }

    /// The element type of an expression that is a scalar.
    pub(super) fn scalar_elem(&self, e: &Expr) -> Lowered<Elem> {
        match self.infer.ty(e.id) {
            ITy::Scalar(x) => self.elem(*x, e.span),
            _ => Err(self.internal(e.span, "a scalar was expected")),
        }
    }

    pub(super) fn literal(&mut self, e: &Expr, value: ConstValue, too_large: bool) -> Lowered<Val> {
        let elem = self.scalar_elem(e)?;
        if let ExprKind::Int(v, ..) = &e.kind {
            self.check_range(*v, elem, false, e.span)?;
            if too_large && elem == Elem::U64 {
                let bits = u64::try_from(*v).unwrap_or(u64::MAX);
                return Ok(Val::Value(self.sh.b.constant(Const::Int(elem, bits.cast_signed()))));
            }
        }
        self.check_float(e, elem, false)?;
        let c = self.const_of(value, elem, e.span)?;
        let value = self.sh.b.constant(c);
        self.sh.literals.insert(value, e.span);
        Ok(Val::Value(value))
    }

    /// Checks that a float literal, perhaps behind a minus, is not rounded to infinity.
    pub(super) fn check_float(&self, e: &Expr, elem: Elem, negative: bool) -> Lowered<()> {
        match &e.kind {
            // A literal that `f64` does not hold, or its suffix, is infinite.
            ExprKind::Float(v, _, literal) if !v.is_finite() || !elem.holds(*v) => {
                let sign = if negative { "-" } else { "" };
                Err(self.error(Code::LiteralRange, e.span, format!("`{sign}{literal}` is out of range for `{elem}`")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn const_of(&self, value: ConstValue, elem: Elem, span: Span) -> Lowered<Const> {
        match value {
            ConstValue::Int(v) if elem.is_int() => Ok(Const::Int(elem, v)),
            ConstValue::Float(v) if elem.is_float() => Ok(Const::Float(elem, v)),
            ConstValue::Bool(v) if elem == Elem::Bool => Ok(Const::Int(elem, v.into())),
            _ => Err(self.internal(span, "a constant of another type")),
        }
    }

    pub(super) fn check_range(&self, v: u128, elem: Elem, negative: bool, span: Span) -> Lowered<()> {
        let max = match elem {
            e if e.is_signed_int() => (1u128 << (e.bits() - 1)) - u128::from(!negative),
            e if e.is_int() => (1u128 << e.bits()) - 1,
            _ => u128::MAX,
        };
        if v <= max {
            return Ok(());
        }
        let sign = if negative { "-" } else { "" };
        Err(self.error(Code::LiteralRange, span, format!("`{sign}{v}` is out of range for `{elem}`")))
    }

    fn path(&mut self, e: &Expr, path: &Path, res: &Res) -> Lowered<Val> {
        match res {
            Res::Local(var) => self.var(*var, e.span),
            Res::Symbol(name) => match self.sh.symbols.get(name) {
                Some(v) => Ok(Val::Value(*v)),
                None => Err(self.internal(e.span, "a shape name without value")),
            },
            Res::ConstParam(i) => {
                let elem = match self.func().generics[*i].kind {
                    GenericKind::ConstInt(e) => e,
                    _ => Elem::Bool,
                };
                let value = consts::eval(e, &self.env).map_err(|_| self.internal(e.span, "a generic without value"))?;
                let c = self.const_of(value, elem, e.span)?;
                Ok(Val::Value(self.sh.b.constant(c)))
            }
            Res::Builtin => match consts::builtin(path) {
                Some(c) => Ok(Val::Value(self.sh.b.constant(c))),
                None => Err(self.internal(e.span, "an unknown constant")),
            },
            Res::Constant(key) if self.env.items.constants.get(key).is_some_and(|c| c.is_table) => self.table(e, key),
            Res::Assoc(_) | Res::Constant(_) => {
                let elem = self.scalar_elem(e)?;
                let value = match consts::eval(e, &self.env) {
                    Ok(v) => v,
                    Err(consts::NotConst::Error(what)) => {
                        return Err(self.error(Code::ConstEval, e.span, format!("the constant has {what}")));
                    }
                    Err(consts::NotConst::Runtime) => {
                        let title = format!("`{}` is not a constant that kernels can evaluate", path.text());
                        return Err(self.error(Code::ConstEval, e.span, title));
                    }
                };
                let c = self.const_of(value, elem, e.span)?;
                let value = self.sh.b.constant(c);
                // Beside a tile of a smaller type it is rounded as a literal is.
                self.sh.literals.insert(value, e.span);
                Ok(Val::Value(value))
            }
            Res::None => Err(Stop),
        }
    }

    fn assign(&mut self, place: &Expr, val: Val) -> Lowered<Val> {
        match (&place.kind, val) {
            (ExprKind::Path(_, Res::Local(var)), val) => {
                if matches!(val, Val::Tensor(_) | Val::Own(_) | Val::Tiles(_) | Val::Pipe(_)) {
                    let title = "tensors, output tiles and rings cannot be assigned, only bound by `let`";
                    return Err(self.error(Code::Syntax, place.span, title));
                }
                self.name(&val, &self.func().vars[*var].name.to_string());
                self.vars[*var] = Some(val);
                Ok(Val::Unit)
            }
            (ExprKind::Tuple(list, _), Val::Tuple(vals)) | (ExprKind::Array(list, _), Val::Array(vals)) => {
                for (p, v) in list.iter().zip(vals) {
                    self.assign(p, v)?;
                }
                Ok(Val::Unit)
            }
            (ExprKind::Paren(a, _), val) => self.assign(a, val),
            _ => Err(self.error(Code::Syntax, place.span, "only variables can be assigned to")),
        }
    }

    fn index(&mut self, base: &Expr, index: &Expr) -> Lowered<Val> {
        let base = self.expr(base)?;
        match (base, consts::eval(index, &self.env)) {
            (Val::Array(list), Err(_)) => self.chosen(list, index),
            (Val::Array(list), Ok(ConstValue::Int(i))) => {
                let item = usize::try_from(i).ok().and_then(|i| list.into_iter().nth(i));
                item.ok_or_else(|| self.internal(index.span, "an index out of range"))
            }
            _ => Err(self.internal(index.span, "an index of something else")),
        }
    }

    /// A conversion, unless the type is the same already.
    pub(super) fn cast(&mut self, v: Value, to: Elem, span: Span) -> Lowered<Val> {
        if self.ty(v).elem() == to {
            return Ok(Val::Value(v));
        }
        Ok(Val::Value(self.op(span, OpKind::Cast(to), &[v])?))
    }

    fn loop_in_closure(&self, span: Span) -> Stop {
        let help = "the number of iterations would differ between elements: write the loop outside, on whole tiles, with `select` or a mask";
        self.sh.cx.error_help(
            Code::Syntax,
            span,
            "loops are not supported in a closure, or in a function that it calls",
            help,
        );
        Stop
    }

    fn range(&mut self, lo: &Expr, hi: &Expr, inclusive: bool, span: Span) -> Lowered<Val> {
        let (l, h) = (self.expr(lo)?, self.expr(hi)?);
        let (l, mut h) = (self.value(l, lo.span)?, self.value(h, hi.span)?);
        if inclusive {
            let one = self.i32(1);
            h = self.op(span, OpKind::Binary(BinOp::Add), &[h, one])?;
        }
        Ok(Val::Range(super::val::RangeVal { lo: l, hi: h, kind: ForKind::Sequential }))
    }

    fn mac(&mut self, name: &str, format: Option<&str>, args: &[Expr], span: Span) -> Lowered<Val> {
        if name == "static_assert" {
            return self.static_assert(format, args, span);
        }
        let mut values = Vec::new();
        for a in args {
            let val = self.expr(a)?;
            values.push(self.value(val, a.span)?);
        }
        let text = format.unwrap_or_default().to_owned();
        let kind = if name == "tprint" { OpKind::Print(text) } else { OpKind::Assert(text) };
        self.effect(span, kind, &values)
    }

    fn static_assert(&self, message: Option<&str>, args: &[Expr], span: Span) -> Lowered<Val> {
        let Some(cond) = args.first() else {
            return Err(self.error(Code::Syntax, span, "`static_assert!` takes a condition"));
        };
        match consts::eval(cond, &self.env) {
            Ok(ConstValue::Bool(true)) => Ok(Val::Unit),
            Ok(ConstValue::Bool(false)) => {
                let title = format!("the assertion `{}` is false{}", message.unwrap_or_default(), self.instance_note());
                self.sh.cx.error(Code::StaticAssert, span, title);
                Ok(Val::Unit)
            }
            _ => {
                let help =
                    "it may use constants and generic parameters; `tassert!` checks a condition when the kernel runs";
                self.sh.cx.error_help(Code::StaticAssert, cond.span, "the condition must be a constant", help);
                Ok(Val::Unit)
            }
        }
    }

    fn instance_note(&self) -> String {
        let sig = &self.sh.b.kernel().sig;
        if sig.instance.is_empty() { String::new() } else { format!(" in `{}`", sig.full_name()) }
    }

    /// The method on a receiver, after the receiver's kind is known.
    pub(super) fn method(
        &mut self,
        e: &Expr,
        method: Method,
        recv: &Expr,
        generics: &[crate::ast::GenericArg],
        args: &[Expr],
    ) -> Lowered<Val> {
        let r = self.expr(recv)?;
        if self.sh.b.is_terminated() {
            return Ok(Val::Unit);
        }
        match r {
            r if matches!(method, Method::Pipe(_)) => match method {
                Method::Pipe(method) => self.pipe_method(e, method, r, args),
                _ => Err(Stop),
            },
            Val::Tensor(t) => self.tensor_method(e, method, t, generics, args),
            Val::Own(own) => self.own_method(method, &own, args, e.span),
            Val::Value(v) => self.value_method(e, method, v, generics, args),
            _ => Err(self.internal(e.span, "an operation on something else")),
        }
    }
}

/// An expression without the parentheses and the sign around it.
fn innermost(e: &Expr) -> &Expr {
    match &e.kind {
        ExprKind::Paren(a, _) | ExprKind::Unary(crate::ast::UnaryOp::Neg, a) => innermost(a),
        _ => e,
    }
}
