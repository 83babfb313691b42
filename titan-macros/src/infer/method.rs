//! Methods of scalars, tiles, tensors and output tiles.

use super::{ITy, Infer, OwnTy, S, TensorTy};
use crate::ast::{Expr, ExprKind, GenericArg, GenericArgValue};
use crate::method::{Method, Receiver, lookup};
use proc_macro2::{Ident, Span};
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape, UnOp};

/// A method call on the way through inference.
struct Call<'a> {
    name: &'a Ident,
    generics: &'a [GenericArg],
    args: &'a [Expr],
}

impl Call<'_> {
    fn span(&self) -> Span {
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

    fn takes(&mut self, call: &Call<'_>, n: usize) -> bool {
        self.arity(call.args, n, &call.name.to_string(), call.span())
    }

    /// The only generic argument, a constant: an axis or an extent.
    fn generic_const(&mut self, call: &Call<'_>, n: usize) -> Option<i64> {
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
    fn generic_shape(&mut self, call: &Call<'_>) -> Option<TileShape> {
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
            Method::Transpose => {
                self.takes(call, 0);
                let mut dims = shape.to_vec();
                let r = dims.len();
                if !(2..=3).contains(&r) {
                    self.cx.error(Code::UnknownOp, span, format!("`t` transposes tiles of rank 2 and 3, not {r}"));
                    return ITy::Unknown;
                }
                dims.swap(r - 1, r - 2);
                TileShape::new(&dims).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
            }
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

    // Tensors.

    fn tensor_method(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        let r = usize::from(t.rank);
        let span = call.span();
        match method {
            Method::IsSome(_) => {
                self.takes(call, 0);
                if !t.optional {
                    return self.no_such(&format!("`{}`", call.name), &ITy::Tensor(t), span);
                }
                ITy::Scalar(self.known(Elem::Bool))
            }
            Method::Dim => {
                if self.takes(call, 1) {
                    self.dim_axis(&call.args[0], r);
                }
                ITy::Scalar(self.known(Elem::I32))
            }
            Method::Load { padded, .. } => {
                if self.takes(call, 1 + usize::from(padded)) {
                    self.coordinates(&call.args[0], r);
                    self.padding(padded, call, t.elem);
                }
                self.tile_of(t, call)
            }
            Method::Store(_) | Method::AtomicTile(_) => {
                if self.takes(call, 2) {
                    self.coordinates(&call.args[0], r);
                    let stored = self.stored(&call.args[1], t, call.generics, span);
                    self.same_rank(stored, r, call.args[1].span);
                }
                ITy::Unit
            }
            Method::Get => {
                if self.takes(call, 1) {
                    self.coordinates(&call.args[0], r);
                }
                ITy::Scalar(self.known(t.elem))
            }
            Method::Set => {
                if self.takes(call, 2) {
                    self.coordinates(&call.args[0], r);
                    self.element(&call.args[1], t.elem);
                }
                ITy::Unit
            }
            Method::Index | Method::Slice => self.view(method, t, call),
            Method::Segment => {
                if self.takes(call, 2) {
                    self.offsets(&call.args[0]);
                    self.index_expr(&call.args[1]);
                }
                ITy::Tensor(t)
            }
            Method::Tiles => {
                self.takes(call, 0);
                match self.generic_shape(call) {
                    Some(shape) => {
                        self.same_rank(Some(shape), r, span);
                        ITy::OwnIter(OwnTy { elem: t.elem, shape, ragged: false })
                    }
                    None => ITy::Unknown,
                }
            }
            Method::Ragged => {
                if self.takes(call, 1) {
                    self.offsets(&call.args[0]);
                }
                match self.generic_shape(call) {
                    Some(shape) => {
                        self.same_rank(Some(shape), r, span);
                        ITy::OwnIter(OwnTy { elem: t.elem, shape, ragged: true })
                    }
                    None => ITy::Unknown,
                }
            }
            Method::Shared => {
                self.takes(call, 0);
                ITy::Tensor(t)
            }
            _ => self.indexed_method(method, t, call),
        }
    }

    fn indexed_method(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        match method {
            Method::GatherRows { padded } => {
                let shape = self.generic_shape(call);
                if self.takes(call, 2 + usize::from(padded)) {
                    self.rows(&call.args[0], usize::from(t.rank), shape.map(|s| s[0]), call.span());
                    self.index_expr(&call.args[1]);
                    self.padding(padded, call, t.elem);
                }
                match shape {
                    Some(s) if s.rank() == 2 => ITy::Tile(self.known(t.elem), self.known_shape(s)),
                    _ => ITy::Unknown,
                }
            }
            Method::ScatterRows => {
                if self.takes(call, 3) {
                    let rows = self.stored(&call.args[2], t, call.generics, call.span());
                    self.rows(&call.args[0], usize::from(t.rank), rows.map(|s| s[0]), call.span());
                    self.index_expr(&call.args[1]);
                }
                ITy::Unit
            }
            Method::Gather { padded } => {
                if !self.takes(call, 1 + usize::from(padded)) {
                    return ITy::Unknown;
                }
                let shape = self.lanes(&call.args[0], usize::from(t.rank));
                self.padding(padded, call, t.elem);
                shape.map_or(ITy::Unknown, |s| ITy::Tile(self.known(t.elem), s))
            }
            Method::Scatter | Method::Atomic(_) => {
                if self.takes(call, 2) {
                    let shape = self.lanes(&call.args[0], usize::from(t.rank));
                    let value = self.expr(&call.args[1]);
                    if let Some(s) = shape {
                        let want = ITy::Tile(self.known(t.elem), s);
                        self.unify(&want, &value, call.args[1].span);
                    }
                }
                ITy::Unit
            }
            _ => self.no_such(&format!("`{}`", call.name), &ITy::Tensor(t), call.span()),
        }
    }

    fn dim_axis(&mut self, arg: &Expr, rank: usize) {
        self.expr(arg);
        match crate::consts::eval(arg, &self.env) {
            Ok(crate::consts::ConstValue::Int(v)) if usize::try_from(v).is_ok_and(|v| v < rank) => {}
            Ok(_) => self.cx.error(Code::ConstEval, arg.span, format!("a tensor of rank {rank} has no such axis")),
            Err(_) => self.cx.error(Code::ConstEval, arg.span, "an axis is a constant"),
        }
    }

    /// `[i, j]`: one `i32` per axis.
    fn coordinates(&mut self, arg: &Expr, rank: usize) {
        let got = self.expr(arg);
        let want = ITy::Array(Box::new(ITy::Scalar(self.known(Elem::I32))), rank);
        match &got {
            ITy::Array(_, n) if *n != rank => {
                let title = format!("{n} coordinates for a tensor of rank {rank}");
                self.cx.error(Code::RankMismatch, arg.span, title);
            }
            ITy::Array(item, _) if !self.index_elem(item, first(arg)) => {}
            _ => drop(self.unify(&want, &got, arg.span)),
        }
    }

    fn padding(&mut self, padded: bool, call: &Call<'_>, elem: Elem) {
        if let (true, Some(pad)) = (padded, call.args.last()) {
            self.element(pad, elem);
        }
    }

    fn element(&mut self, arg: &Expr, elem: Elem) {
        let got = self.expr(arg);
        let want = ITy::Scalar(self.known(elem));
        self.unify(&want, &got, arg.span);
    }

    /// The tile that a load's turbofish names.
    fn tile_of(&mut self, t: TensorTy, call: &Call<'_>) -> ITy {
        match self.generic_shape(call) {
            Some(shape) => {
                self.same_rank(Some(shape), usize::from(t.rank), call.span());
                ITy::Tile(self.known(t.elem), self.known_shape(shape))
            }
            None => ITy::Unknown,
        }
    }

    /// A stored tile: of the tensor's element, and of the turbofish's shape if there is one.
    fn stored(&mut self, arg: &Expr, t: TensorTy, generics: &[GenericArg], span: Span) -> Option<TileShape> {
        let got = self.expr(arg);
        let shape = if generics.is_empty() {
            self.fresh_shape()
        } else {
            let shape = self.env.shape(generics, span);
            let shape = self.fault(shape)?;
            self.known_shape(shape)
        };
        let want = ITy::Tile(self.known(t.elem), shape);
        self.unify(&want, &got, arg.span);
        let known = self.shape_of(shape);
        if known.is_none() && !matches!(got, ITy::Unknown | ITy::Never) {
            self.cannot_infer(arg.span, "the shape of the tile", "write its type where it is made");
        }
        known
    }

    fn same_rank(&mut self, shape: Option<TileShape>, rank: usize, span: Span) {
        if let Some(s) = shape
            && s.rank() != rank
        {
            let title = format!("a tile of rank {} for a tensor of rank {rank}", s.rank());
            self.cx.error(Code::RankMismatch, span, title);
        }
    }

    fn view(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        let axis = self.generic_const(call, 0);
        if self.takes(call, 1) {
            if method == Method::Index {
                self.index_expr(&call.args[0]);
            } else {
                match self.expr(&call.args[0]) {
                    ITy::Range | ITy::Unknown | ITy::Never => {}
                    other => drop(self.no_such("two ends", &other, call.args[0].span)),
                }
            }
        }
        let Some(axis) = axis else { return ITy::Unknown };
        if !(0..i64::from(t.rank)).contains(&axis) {
            self.cx.error(Code::BadAxis, call.span(), format!("a tensor of rank {} has no axis {axis}", t.rank));
            return ITy::Unknown;
        }
        if method == Method::Slice {
            return ITy::Tensor(t);
        }
        if t.rank == 1 {
            return self.no_such("axis left after `index`; `get` reads one element", &ITy::Tensor(t), call.span());
        }
        ITy::Tensor(TensorTy { rank: t.rank - 1, ..t })
    }

    fn offsets(&mut self, arg: &Expr) {
        match self.expr(arg) {
            ITy::Tensor(TensorTy { elem: Elem::I32, rank: 1, optional: false, .. }) | ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("offsets are a `Tensor<i32, 1>`, not {}", self.describe(&other));
                self.cx.error(Code::Arguments, arg.span, title);
            }
        }
    }

    /// Row indices: a `Tile<i32, N>` or an `i32` for each leading axis, as a tuple or alone.
    fn rows(&mut self, arg: &Expr, rank: usize, n: Option<i32>, span: Span) {
        let ty = self.expr(arg);
        let list = match ty {
            ITy::Tuple(list) => list,
            ITy::Unknown | ITy::Never => return,
            one => vec![one],
        };
        if list.len() + 1 != rank {
            let title = format!("{} row indices for a tensor of rank {rank}: one for each leading axis", list.len());
            self.cx.error(Code::RankMismatch, span, title);
        }
        for ty in list {
            match &ty {
                ITy::Tile(e, s) => {
                    let i32 = self.known(Elem::I32);
                    self.elem_or_report(i32, *e, arg.span);
                    if let (Some(n), Some(s)) = (n, self.shape_of(*s))
                        && s[..] != [n]
                    {
                        self.cx.error(Code::ShapeMismatch, arg.span, format!("row indices of {s} for {n} rows"));
                    }
                }
                ITy::Scalar(e) => {
                    let i32 = self.known(Elem::I32);
                    self.elem_or_report(i32, *e, arg.span);
                }
                ITy::Unknown | ITy::Never => {}
                other => {
                    let title = format!("a row index is an `i32` or a `Tile<i32, N>`, not {}", self.describe(other));
                    self.cx.error(Code::Arguments, arg.span, title);
                }
            }
        }
    }

    /// Index tiles of one shape, one per axis.
    fn lanes(&mut self, arg: &Expr, rank: usize) -> Option<S> {
        match self.expr(arg) {
            ITy::Array(item, n) => {
                if n != rank {
                    let title = format!("{n} index tiles for a tensor of rank {rank}");
                    self.cx.error(Code::RankMismatch, arg.span, title);
                }
                let ITy::Tile(e, s) = *item else {
                    self.cx.error(Code::Arguments, arg.span, "indices are tiles of `i32`");
                    return None;
                };
                let i32 = self.known(Elem::I32);
                self.elem_or_report(i32, e, arg.span);
                Some(s)
            }
            ITy::Unknown | ITy::Never => None,
            other => {
                let title = format!("indices are an array of tiles, one per axis, not {}", self.describe(&other));
                self.cx.error(Code::Arguments, arg.span, title);
                None
            }
        }
    }

    // Output tiles.

    fn own_method(&mut self, method: Method, o: OwnTy, call: &Call<'_>) -> ITy {
        let i32 = ITy::Scalar(self.known(Elem::I32));
        match method {
            Method::OwnIndex => {
                self.takes(call, 0);
                ITy::Array(Box::new(i32), o.shape.rank())
            }
            Method::OwnGroup => {
                self.takes(call, 0);
                if !o.ragged {
                    let help = "only the tiles of `y.ragged::<..>(off)` are grouped, by the segments of `off`";
                    self.cx.error_help(Code::Operands, call.span(), "this output tile has no group", help);
                    return ITy::Unknown;
                }
                i32
            }
            Method::OwnLoad => {
                self.takes(call, 0);
                ITy::Tile(self.known(o.elem), self.known_shape(o.shape))
            }
            Method::OwnStore => {
                if self.takes(call, 1) {
                    let got = self.expr(&call.args[0]);
                    let want = ITy::Tile(self.known(o.elem), self.known_shape(o.shape));
                    self.unify(&want, &got, call.args[0].span);
                }
                ITy::Unit
            }
            _ => {
                self.takes(call, 0);
                ITy::Unit
            }
        }
    }
}

/// The first of the written coordinates.
fn first(arg: &Expr) -> Span {
    let ExprKind::Array(list, _) = &arg.kind else { return arg.span };
    list.first().map_or(arg.span, |e| e.span)
}
