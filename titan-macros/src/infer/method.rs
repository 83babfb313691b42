//! Methods of scalars and tiles; those of tensors are in [`super::memory`].

use super::{ITy, Infer, S, TensorTy};
use crate::ast::{Expr, ExprKind, GenericArg, GenericArgValue};
use crate::method::{Method, Receiver, lookup};
use proc_macro2::{Ident, Span};
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape, UnOp};

/// A method call on the way through inference.
pub(super) struct Call<'a> {
    pub(super) name: &'a Ident,
    pub(super) generics: &'a [GenericArg],
    pub(super) args: &'a [Expr],
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
            self.cx.error_help(Code::MaybeAbsent, name.span(), title, format!("`if let Some({option}) = {option} {{ .. }}`"));
            return ITy::Unknown;
        }
        let receiver = match &ty {
            ITy::Scalar(_) => Receiver::Scalar,
            ITy::Tile(..) => Receiver::Tile,
            ITy::Tensor(_) => Receiver::Tensor,
            ITy::Own(_) => Receiver::Own,
            ITy::Unknown | ITy::Never => {
                args.iter().filter(|a| !matches!(a.kind, ExprKind::Closure { .. })).for_each(|a| drop(self.expr(a)));
                return ITy::Unknown;
            }
            _ => return self.no_such(&format!("`{name}`"), &ty, name.span()),
        };
        let call = Call { name, generics, args };
        let Some(method) = lookup(receiver, &name.to_string()) else {
            let title = format!("{} has no operation `{name}`", receiver.describe());
            self.cx.error(Code::UnknownOp, name.span(), title);
            args.iter().filter(|a| !matches!(a.kind, ExprKind::Closure { .. })).for_each(|a| drop(self.expr(a)));
            return ITy::Unknown;
        };
        match ty {
            ITy::Tensor(t) => self.tensor_method(method, t, &call),
            ITy::Own(o) => self.own_method(method, o, &call),
            value => self.value_method(method, &value, &call),
        }
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
                self.cannot_infer(call.span(), "a constant of this operation", "write it between `::<` and `>`");
                None
            }
        }
    }

    /// The shape in the turbofish.
    pub(super) fn generic_shape(&mut self, call: &Call<'_>) -> Option<TileShape> {
        if call.generics.is_empty() {
            let help = format!("write `{}::<..>` with the extents", call.name);
            self.cannot_infer(call.span(), "the shape", &help);
            return None;
        }
        let shape = self.env.shape(call.generics, call.span());
        self.fault(shape)
    }

    fn value_method(&mut self, method: Method, recv: &ITy, call: &Call<'_>) -> ITy {
        match method {
            Method::Unary(op) => {
                self.takes(call, 0);
                match (op, recv) {
                    (UnOp::IsNan, ITy::Tile(_, s)) => ITy::Tile(self.known(Elem::Bool), *s),
                    (UnOp::IsNan, _) => ITy::Scalar(self.known(Elem::Bool)),
                    _ => recv.clone(),
                }
            }
            Method::Extremum(_) => {
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
                other => self.no_such(&format!("`{}`", call.name), other, call.span()),
            },
        }
    }

    /// An operand beside a scalar or tile receiver.
    fn operand(&mut self, recv: &ITy, arg: &Expr) {
        let ty = self.expr(arg);
        match recv {
            ITy::Tile(e, s) => self.beside_tile(*e, *s, &ty, arg.span),
            scalar => drop(self.unify(scalar, &ty, arg.span)),
        }
    }

    fn tile_method(&mut self, method: Method, e: super::E, s: S, call: &Call<'_>) -> ITy {
        let Some(shape) = self.shape_of(s) else {
            return self.cannot_infer(call.span(), "the shape of the tile", "write its type where it is made");
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
            Method::Broadcast => self.broadcast(e, shape, call),
            Method::Transpose => self.transpose(e, shape, call),
            Method::Permute => self.permute(e, shape, call),
            Method::Row | Method::Col => {
                self.takes(call, 0);
                if shape.rank() != 1 {
                    return self.no_such(&format!("`{}`", call.name), &ITy::Tile(e, s), span);
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
            _ => self.no_such(&format!("`{}`", call.name), &ITy::Tile(e, s), span),
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

    fn closure(&mut self, arg: &Expr, params: &[ITy], result: &ITy) {
        let ExprKind::Closure { params: pats, body } = &arg.kind else {
            self.cx.error(Code::Arguments, arg.span, "a closure stands here, as in `|a, b| a + b`");
            return;
        };
        if pats.len() != params.len() {
            self.cx.error(Code::Arguments, arg.span, format!("the closure takes {} arguments", params.len()));
            return;
        }
        pats.iter().zip(params).for_each(|(p, t)| self.bind(p, t));
        let got = self.expr(body);
        self.unify(result, &got, body.span);
    }

    /// The axis in the turbofish.
    fn axis(&mut self, shape: TileShape, call: &Call<'_>) -> Option<usize> {
        let axis = self.generic_const(call, 0)?;
        match usize::try_from(axis) {
            Ok(a) if a < shape.rank() => Some(a),
            _ => {
                self.cx.error(Code::BadAxis, call.span(), format!("a tile of {shape} has no axis {axis}"));
                None
            }
        }
    }

    fn reduced(&mut self, e: super::E, shape: TileShape, call: &Call<'_>) -> ITy {
        let Some(axis) = self.axis(shape, call) else { return ITy::Unknown };
        match shape.without(axis) {
            Some(rest) => ITy::Tile(e, self.known_shape(rest)),
            None => ITy::Scalar(e),
        }
    }

    fn counted_shape(&mut self, call: &Call<'_>, from: TileShape, want: usize) -> Option<TileShape> {
        let to = self.generic_shape(call)?;
        if to.len() == want {
            return Some(to);
        }
        let title = format!("a tile of {from} has {} elements, one of {to} has {}", from.len(), to.len());
        let at = call.generics.first().map_or(call.span(), |g| g.span);
        self.cx.error_help(Code::ElementCount, at, title, "a reshape keeps the number of elements");
        None
    }

    fn doubled(&mut self, call: &Call<'_>, from: TileShape) -> Option<TileShape> {
        let mut dims = from.to_vec();
        let last = dims.len() - 1;
        dims[last] *= 2;
        let want = TileShape::new(&dims)?;
        self.written_shape(call, want, "`interleave` doubles the last extent")
    }

    fn halved(&mut self, call: &Call<'_>, from: TileShape) -> Option<TileShape> {
        let mut dims = from.to_vec();
        let last = dims.len() - 1;
        if dims[last] % 2 != 0 {
            let title = format!("the last extent of {from} is odd");
            self.cx.error_help(Code::ElementCount, call.span(), title, "`split` halves the last axis");
            return None;
        }
        dims[last] /= 2;
        let want = TileShape::new(&dims)?;
        self.written_shape(call, want, "`split` halves the last extent")
    }

    /// The shape in the turbofish, which must be `want`.
    fn written_shape(&mut self, call: &Call<'_>, want: TileShape, rule: &str) -> Option<TileShape> {
        let to = self.generic_shape(call)?;
        if to == want {
            return Some(to);
        }
        let at = call.generics.first().map_or(call.span(), |g| g.span);
        self.cx.error_help(Code::ElementCount, at, format!("the result has the shape {want}, not {to}"), rule);
        None
    }

    fn broadcast(&mut self, e: super::E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let (Some(axis), Some(n)) = (self.generic_const(call, 0), self.generic_const(call, 1)) else { return ITy::Unknown };
        let to = usize::try_from(axis).ok().zip(i32::try_from(n).ok()).and_then(|(a, n)| shape.with(a, n));
        match to {
            Some(to) => match to.problem() {
                None => ITy::Tile(e, self.known_shape(to)),
                Some(p) => {
                    self.cx.error(Code::TileSize, call.span(), p);
                    ITy::Unknown
                }
            },
            None => {
                self.cx.error(Code::BadAxis, call.span(), format!("an axis {axis} cannot be inserted into a tile of {shape}"));
                ITy::Unknown
            }
        }
    }

    fn transpose(&mut self, e: super::E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let mut dims = shape.to_vec();
        let r = dims.len();
        if !(2..=3).contains(&r) {
            self.cx.error(Code::UnknownOp, call.span(), format!("`t` transposes tiles of rank 2 and 3, not {r}"));
            return ITy::Unknown;
        }
        dims.swap(r - 1, r - 2);
        TileShape::new(&dims).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
    }

    fn permute(&mut self, e: super::E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let axes: Vec<i64> = (0..shape.rank()).filter_map(|i| self.generic_const(call, i)).collect();
        let dims: Vec<i32> = axes.iter().filter_map(|a| shape.get(usize::try_from(*a).ok()?).copied()).collect();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if dims.len() != shape.rank() || sorted.len() != shape.rank() {
            self.cx.error(Code::BadAxis, call.span(), format!("{axes:?} is not an order of the axes of {shape}"));
            return ITy::Unknown;
        }
        TileShape::new(&dims).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
    }
}
