//! Methods of scalars and tiles; those of tensors are in [`super::memory`].

use super::{ITy, Infer, S, TensorTy, pipe};
use crate::ast::{Expr, ExprKind, GenericArg, GenericArgValue, Res};
use crate::items;
use crate::method::{Composed, Method, Receiver, lookup};
use proc_macro2::{Ident, Span};
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

/// A method call.
pub(super) struct Call<'a> {
    pub(super) name: &'a Ident,
    pub(super) generics: &'a [GenericArg],
    pub(super) args: &'a [Expr],
    /// The name of the receiver, if it is a variable.
    pub(super) on: Option<String>,
}

impl Call<'_> {
    pub(super) fn span(&self) -> Span {
        self.name.span()
    }
}

impl Infer<'_> {
    pub(super) fn method(&mut self, recv: &Expr, name: &Ident, generics: &[GenericArg], args: &[Expr]) -> ITy {
        let ty = self.expr(recv);
        if let ITy::Tensor(TensorTy { optional: true, .. }) = ty
            && !matches!(lookup(Receiver::Tensor, &name.to_string()), Some(Method::IsSome(_)))
        {
            let option = if let ExprKind::Path(path, _) = &recv.kind { path.text() } else { "this".to_owned() };
            let title = format!("`{option}` is optional and may be absent here");
            self.cx.error_help(
                Code::MaybeAbsent,
                name.span(),
                title,
                format!("use it inside `if let Some({option}) = {option} {{ .. }}`"),
            );
            return ITy::Unknown;
        }
        let kind = if let ITy::Pipe(pipe) = &ty { pipe.kind() } else { None };
        let receiver = match &ty {
            _ if kind.is_some() => kind.map_or(Receiver::Scalar, Receiver::Pipe),
            ITy::Scalar(_) => Receiver::Scalar,
            ITy::Tile(..) => Receiver::Tile,
            ITy::Tensor(_) => Receiver::Tensor,
            ITy::Own(_) => Receiver::Own,
            ITy::Unknown | ITy::Never => {
                args.iter().filter(|a| !matches!(a.kind, ExprKind::Closure { .. })).for_each(|a| drop(self.expr(a)));
                return ITy::Unknown;
            }
            ITy::Tuple(parts) if name == "reduce" || name == "scan" => {
                let call = Call { name, generics, args, on: None };
                return self.tuple_fold(parts, &call);
            }
            other => {
                args.iter().filter(|a| !matches!(a.kind, ExprKind::Closure { .. })).for_each(|a| drop(self.expr(a)));
                return self.rusts_own(other, name, args);
            }
        };
        let on = if let ExprKind::Path(path, _) = &recv.kind { Some(path.text()) } else { None };
        let call = Call { name, generics, args, on };
        let Some(method) = lookup(receiver, &name.to_string()) else {
            args.iter().filter(|a| !matches!(a.kind, ExprKind::Closure { .. })).for_each(|a| drop(self.expr(a)));
            return match &ty {
                ITy::Pipe(_) => {
                    // A token that the user takes for another kind is reported once, not at each use.
                    if let ExprKind::Path(_, Res::Local(var)) = &recv.kind {
                        self.vars[*var] = ITy::Unknown;
                    }
                    self.rusts_own(&ty, name, args)
                }
                _ => self.no_method(&ty, Some(receiver), name),
            };
        };
        match ty {
            ITy::Pipe(pipe) => match method {
                Method::Pipe(method) => self.pipe_method(method, &pipe, &call),
                _ => ITy::Unknown,
            },
            ITy::Tensor(t) => self.tensor_method(method, t, &call),
            ITy::Own(o) => self.own_method(method, o, &call),
            value => self.value_method(method, &value, &call),
        }
    }

    /// Reports a method of a range, an iterator of a ring and the like: Rust may have it, kernels do not.
    fn rusts_own(&mut self, ty: &ITy, name: &Ident, args: &[Expr]) -> ITy {
        let title = format!("{} does not support `{name}` in kernels", self.describe(ty));
        let help = match (ty, name.to_string().as_str()) {
            (ITy::Range, "step_by") => {
                let by = match args {
                    [Expr { kind: ExprKind::Int(by, ..), .. }] => by.to_string(),
                    [Expr { kind: ExprKind::Path(path, _), .. }] => path.text(),
                    _ => "step".to_owned(),
                };
                format!("count the steps: `for i in 0..cdiv(n, {by}) {{ let at = {by} * i; .. }}`")
            }
            (ITy::Range, "rev") => "count down inside: `for i in 0..n { let at = n - 1 - i; .. }`".to_owned(),
            (ITy::Range, _) => "write a loop `for i in 0..n { .. }`, with a variable for the result".to_owned(),
            (ITy::Pipe(pipe::PipeTy::Filled(_)), _) => {
                "write `if let Some(stage) = ready.wait_filled() { .. }`".to_owned()
            }
            (
                ITy::Pipe(_),
                "step_by" | "rev" | "enumerate" | "take" | "skip" | "zip" | "map" | "filter" | "for_each" | "chain",
            ) => "use it directly in a `for` loop".to_owned(),
            (ITy::OwnIter(_), _) => "use it directly in a `for` loop".to_owned(),
            (ITy::Pipe(pipe::PipeTy::Ready(_)), "get" | "release" | "split" | "a" | "b" | "c" | "d") => {
                let title = format!("{} has no operation `{name}`", self.describe(ty));
                let help = format!("call `.wait()` first: it returns the stage, which has `{name}`");
                self.cx.error_help(Code::UnknownOp, name.span(), title, help);
                return ITy::Unknown;
            }
            (ITy::Pipe(pipe), _) => return self.no_method(ty, pipe.kind().map(Receiver::Pipe), name),
            _ => return self.no_method(ty, None, name),
        };
        self.cx.error_help(Code::Syntax, name.span(), title, help);
        ITy::Unknown
    }

    pub(super) fn takes(&mut self, call: &Call<'_>, n: usize) -> bool {
        self.arity(call.args, n, &call.name.to_string(), call.span())
    }

    /// The only generic argument, a constant: an axis or an extent.
    pub(super) fn generic_const(&mut self, call: &Call<'_>, n: usize) -> Option<i64> {
        match call.generics.get(n) {
            Some(arg) => {
                let value = self.env.const_arg(arg);
                self.fault(value)
            }
            None => {
                let help = format!("write it as a generic argument, as in `.{}::<0>(..)`", call.name);
                self.cannot_infer(
                    call.span(),
                    if n == 1 && call.name == "broadcast" { "the extent" } else { "the axis" },
                    &help,
                );
                None
            }
        }
    }

    /// The shape in the turbofish.
    pub(super) fn generic_shape(&mut self, call: &Call<'_>) -> Option<TileShape> {
        if call.generics.is_empty() {
            let help = format!("write the extents as generic arguments: `{}::<..>`", call.name);
            self.cannot_infer(call.span(), "the shape", &help);
            return None;
        }
        let changes = ["split", "interleave", "reshape"].iter().any(|name| *call.name == name);
        let help: &dyn Fn(&str) -> String = if changes { &items::steps_help } else { &items::extent_help };
        let shape = self.env.shape_or(call.generics, call.span(), help);
        self.fault(shape)
    }

    fn value_method(&mut self, method: Method, recv: &ITy, call: &Call<'_>) -> ITy {
        match method {
            Method::Unary(op) => {
                self.takes(call, 0);
                self.of_element(recv, op.of_another_element())
            }
            Method::Composed(composed) => {
                self.takes(call, 0);
                self.of_element(
                    recv,
                    match composed {
                        Composed::IsFinite | Composed::IsInfinite => Some(Elem::Bool),
                        Composed::TrailingZeros => Some(Elem::U32),
                        Composed::Signum => None,
                    },
                )
            }
            Method::Binary(_) => {
                if self.takes(call, 1) {
                    self.operand(recv, &call.args[0]);
                }
                recv.clone()
            }
            Method::Clamp | Method::MulAdd => {
                if self.takes(call, 2) {
                    call.args.iter().for_each(|a| self.operand(recv, a));
                }
                recv.clone()
            }
            Method::Cast | Method::Bitcast => {
                self.takes(call, 0);
                let e = match call.generics {
                    [GenericArg { value: GenericArgValue::Type(t), .. }] => self.elem_ref(t),
                    _ => self.fresh(super::ElemSlot::Any),
                };
                match recv {
                    ITy::Tile(_, s) => ITy::Tile(e, *s),
                    _ => ITy::Scalar(e),
                }
            }
            _ => match recv {
                ITy::Tile(e, s) => self.tile_method(method, *e, *s, call),
                other => self.no_method(other, None, call.name),
            },
        }
    }

    /// The type of a result with the shape of the receiver and this element, or the receiver's.
    fn of_element(&mut self, recv: &ITy, elem: Option<Elem>) -> ITy {
        match (elem, recv) {
            (None, _) => recv.clone(),
            (Some(elem), ITy::Tile(_, s)) => ITy::Tile(self.known(elem), *s),
            (Some(elem), _) => ITy::Scalar(self.known(elem)),
        }
    }

    /// The operand of a method with a scalar or tile receiver.
    fn operand(&mut self, recv: &ITy, arg: &Expr) {
        let ty = self.expr(arg);
        match recv {
            ITy::Tile(e, s) => self.beside_tile(*e, *s, &ty, arg.span),
            scalar => match (scalar, &ty) {
                (ITy::Scalar(x), ITy::Scalar(y)) if self.rounds(*x, *y) => self.settle_beside(*x, *y, arg.span, false),
                _ => drop(self.unify(scalar, &ty, arg.span)),
            },
        }
    }

    fn tile_method(&mut self, method: Method, e: super::E, s: S, call: &Call<'_>) -> ITy {
        let Some(shape) = self.shape_of(s) else {
            return self.cannot_infer(call.span(), "the shape of the tile", "write its type where it is created");
        };
        let span = call.span();
        match method {
            Method::Map => self.map(e, s, call),
            Method::Reshape => {
                self.takes(call, 0);
                self.counted_shape(call, shape, shape.len())
                    .map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
            }
            Method::Interleave => {
                if self.takes(call, 1) {
                    self.operand(&ITy::Tile(e, s), &call.args[0]);
                }
                self.doubled(call, shape).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
            }
            Method::Split => {
                self.takes(call, 0);
                match self.halved(call, shape) {
                    Some(to) => {
                        let half = ITy::Tile(e, self.known_shape(to));
                        ITy::Tuple(vec![half.clone(), half])
                    }
                    None => ITy::Unknown,
                }
            }
            Method::Part => self.part(e, shape, call),
            Method::Concat => self.concat(e, shape, call),
            Method::At => self.element_at(e, shape, call),
            Method::Broadcast => self.broadcast(e, shape, call),
            Method::Transpose => self.transpose(e, shape, call),
            Method::Permute => self.permute(e, shape, call),
            Method::Row | Method::Col => {
                self.takes(call, 0);
                if shape.rank() != 1 {
                    let title = format!(
                        "{} cannot become a row or column: only tiles of rank 1 can",
                        self.describe(&ITy::Tile(e, s))
                    );
                    let help = "`.t()` exchanges rows and columns of a tile of rank 2; a reduction such as `.reduce_max::<1>()` makes a vector of it";
                    self.cx.error_help(Code::UnknownOp, span, title, help);
                    return ITy::Unknown;
                }
                if method == Method::Row { ITy::Row(e, s) } else { ITy::Col(e, s) }
            }
            Method::Reduce(_) => {
                self.takes(call, 0);
                self.reduced(e, shape, call)
            }
            Method::ArgReduce(_) => {
                self.takes(call, 0);
                let i = self.known(Elem::I32);
                let (value, index) = (self.reduced(e, shape, call), self.reduced(i, shape, call));
                ITy::Tuple(vec![value, index])
            }
            Method::Quantifier(_) => {
                self.takes(call, 0);
                let bool = self.known(Elem::Bool);
                self.elem_or_report(bool, e, span);
                self.reduced(e, shape, call)
            }
            Method::Scan(_) => {
                self.takes(call, 0);
                self.axis(shape, call);
                ITy::Tile(e, s)
            }
            Method::ReduceWith | Method::ScanWith => {
                if self.takes(call, 2) {
                    let init = self.expr(&call.args[0]);
                    self.unify(&ITy::Scalar(e), &init, call.args[0].span);
                    self.closure(&call.args[1], &[ITy::Scalar(e), ITy::Scalar(e)], &ITy::Scalar(e));
                }
                if method == Method::ReduceWith {
                    return self.reduced(e, shape, call);
                }
                self.axis(shape, call);
                ITy::Tile(e, s)
            }
            _ => self.no_method(&ITy::Tile(e, s), None, call.name),
        }
    }

    /// `x.map(|v| ..)`: the closure sees one element; its result's element is the new tile's.
    fn map(&mut self, e: super::E, s: S, call: &Call<'_>) -> ITy {
        if !self.takes(call, 1) {
            return ITy::Unknown;
        }
        let result = self.fresh(super::ElemSlot::Any);
        self.closure(&call.args[0], &[ITy::Scalar(e)], &ITy::Scalar(result));
        ITy::Tile(result, s)
    }

    pub(super) fn closure(&mut self, arg: &Expr, params: &[ITy], result: &ITy) {
        let ExprKind::Closure { params: pats, body } = &arg.kind else {
            let example = if params.len() == 1 { "`|v| v * 2.0`" } else { "`|a, b| a + b`" };
            match self.expr(arg) {
                ITy::Unknown | ITy::Never => {}
                other => {
                    let title = format!("expected a closure, found {}", self.describe(&other));
                    self.cx.error_help(Code::Arguments, arg.span, title, format!("as in {example}"));
                }
            }
            return;
        };
        if pats.len() != params.len() {
            let (count, help) = if params.len() == 1 {
                ("one parameter", "its argument is one element: `|v| v * 2.0`")
            } else {
                ("two parameters", "its arguments are two elements: `|a, b| a + b`")
            };
            let title = format!("expected a closure with {count}, found one with {}", pats.len());
            self.cx.error_help(Code::Arguments, arg.span, title, help);
            return;
        }
        pats.iter().zip(params).for_each(|(p, t)| self.bind(p, t));
        let got = self.expr(body);
        self.unify(result, &got, body.span);
    }

    /// The axis in the turbofish.
    pub(super) fn axis(&mut self, shape: TileShape, call: &Call<'_>) -> Option<usize> {
        let axis = self.generic_const(call, 0)?;
        match usize::try_from(axis) {
            Ok(a) if a < shape.rank() => Some(a),
            _ => {
                self.cx.error(Code::BadAxis, call.span(), format!("a tile of shape {shape} has no axis {axis}"));
                None
            }
        }
    }

    pub(super) fn reduced(&mut self, e: super::E, shape: TileShape, call: &Call<'_>) -> ITy {
        let Some(axis) = self.axis(shape, call) else { return ITy::Unknown };
        match shape.without(axis) {
            Some(rest) => ITy::Tile(e, self.known_shape(rest)),
            None => ITy::Scalar(e),
        }
    }
}
