//! Methods of tensors and output tiles.

use super::method::Call;
use super::{ITy, Infer, OwnTy, TensorTy};
use crate::ast::{Expr, GenericArg};
use crate::method::Method;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    pub(super) fn tensor_method(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        let r = usize::from(t.rank);
        let span = call.span();
        if let Some(made_by) = t.reads.filter(|_| method.writes()) {
            self.read_only(made_by, call);
        }
        match method {
            Method::IsSome(_) => {
                self.takes(call, 0);
                if !t.optional {
                    let help = "an optional tensor is a parameter `x: Option<&Tensor<f32, 1>>`";
                    let title = format!("{} is not optional", self.describe(&ITy::Tensor(t)));
                    self.cx.error_help(Code::UnknownOp, span, title, help);
                    return ITy::Unknown;
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
                let mut at = None;
                if self.takes(call, 1 + usize::from(padded)) {
                    at = self.coordinates(&call.args[0], t, call);
                    self.padding(padded, call, t.elem);
                }
                self.tile_of(t, call, at)
            }
            Method::Store(_) | Method::AtomicTile(_) => {
                if self.takes(call, 2) {
                    let at = self.coordinates(&call.args[0], t, call);
                    let stored = self.stored(&call.args[1], t, call.generics, span);
                    self.same_rank(stored.filter(|s| Some(s.rank()) != at), r, call.args[1].span);
                }
                ITy::Unit
            }
            Method::Get => {
                if self.takes(call, 1) {
                    self.coordinates(&call.args[0], t, call);
                }
                ITy::Scalar(self.known(t.elem))
            }
            Method::Set => {
                if self.takes(call, 2) {
                    self.coordinates(&call.args[0], t, call);
                    self.element(&call.args[1], t.elem);
                }
                ITy::Unit
            }
            Method::Index | Method::Slice => self.view(method, t, call),
            Method::Segment => self.segment(t, call),
            Method::Source(_) | Method::SourceRows => self.source(method, t, call),
            Method::Work { grouped } => self.work(t, grouped, call, span),
            Method::Tiles { grouped: true } => self.grouped_iter(t, call),
            Method::Tiles { grouped: false } | Method::Ragged => self.own_iter(method == Method::Ragged, t, call),
            Method::Shared => {
                self.takes(call, 0);
                ITy::Tensor(t)
            }
            _ => self.indexed_method(method, t, call),
        }
    }

    /// `c.tiles::<..>()` and `y.ragged::<..>(off)`
    fn own_iter(&mut self, ragged: bool, t: TensorTy, call: &Call<'_>) -> ITy {
        if self.takes(call, usize::from(ragged))
            && let [off] = call.args
        {
            self.offsets(off);
        }
        let Some(shape) = self.generic_shape(call) else { return ITy::Unknown };
        self.same_rank(Some(shape), usize::from(t.rank), call.span());
        ITy::OwnIter(OwnTy { elem: t.elem, shape, ragged, group: 1 })
    }

    /// `c.tiles_grouped::<.., G>()`
    fn grouped_iter(&mut self, t: TensorTy, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        match self.grouped_shape(t, call) {
            Some((shape, group)) => ITy::OwnIter(OwnTy { elem: t.elem, shape, ragged: false, group }),
            None => ITy::Unknown,
        }
    }

    /// The tile and the rows of a group: `::<BM, BN, G>`.
    pub(super) fn grouped_shape(&mut self, t: TensorTy, call: &Call<'_>) -> Option<(TileShape, i32)> {
        if t.rank < 2 {
            let title = format!("`{}` groups rows of tiles, but a tensor of rank 1 has no rows", call.name);
            let help = "use `y.tiles::<64>()` or `y.work::<64>()`, which take the tiles in order";
            self.cx.error_help(Code::UnknownOp, call.span(), title, help);
            return None;
        }
        let (tile, group) = call.generics.split_at(call.generics.len().saturating_sub(1));
        let usage = format!("c.{}::<64, 64, 8>()", call.name);
        let group = self.group_rows(group, &usage, call.span());
        let group = group?;
        if tile.is_empty() {
            let help = format!("write `{usage}`: the extents of a tile, then the number of rows in a group");
            self.cannot_infer(call.span(), "the shape", &help);
            return None;
        }
        let shape = self.env.shape(tile, call.span());
        let shape = self.fault(shape)?;
        self.same_rank(Some(shape), usize::from(t.rank), call.span());
        Some((shape, group))
    }

    /// The number of rows of a group, the generic argument of what `usage` shows.
    pub(super) fn group_rows(&mut self, generics: &[GenericArg], usage: &str, span: Span) -> Option<i32> {
        let [rows] = generics else {
            self.cannot_infer(span, "the number of rows in a group", &format!("write `{usage}`"));
            return None;
        };
        let rows = self.env.const_arg(rows);
        let rows = self.fault(rows)?;
        match i32::try_from(rows) {
            Ok(n @ 1..) => Some(n),
            _ => {
                let title = format!("a group cannot have {rows} rows");
                self.cx.error_help(
                    Code::TileSize,
                    span,
                    title,
                    "a group has at least one row; with one, the tiles are taken row by row",
                );
                None
            }
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
                let shape = self.lanes(&call.args[0], t, call);
                self.padding(padded, call, t.elem);
                shape.map_or(ITy::Unknown, |s| ITy::Tile(self.known(t.elem), s))
            }
            Method::Scatter | Method::Atomic(_) => {
                if self.takes(call, 2) {
                    let shape = self.lanes(&call.args[0], t, call);
                    let value = self.expr(&call.args[1]);
                    if let Some(s) = shape {
                        let want = ITy::Tile(self.known(t.elem), s);
                        self.unify(&want, &value, call.args[1].span);
                    }
                }
                ITy::Unit
            }
            Method::Fetch(_) => self.fetch(1, t, call),
            Method::CompareExchange => match self.fetch(2, t, call) {
                ITy::Unknown => ITy::Unknown,
                found => {
                    let bool = self.known(Elem::Bool);
                    let done = if let ITy::Tile(_, s) = found { ITy::Tile(bool, s) } else { ITy::Scalar(bool) };
                    ITy::Tuple(vec![found, done])
                }
            },
            _ => self.no_method(&ITy::Tensor(t), None, call.name),
        }
    }

    /// An atomic update that returns what it found, with so many operands beside the indices: index tiles and tiles, or coordinates and scalars.
    fn fetch(&mut self, operands: usize, t: TensorTy, call: &Call<'_>) -> ITy {
        if !self.takes(call, 1 + operands) {
            return ITy::Unknown;
        }
        let lanes = self.lanes_or_one(&call.args[0], t, call);
        let found = lanes.map(|lanes| match lanes {
            Some(shape) => ITy::Tile(self.known(t.elem), shape),
            None => ITy::Scalar(self.known(t.elem)),
        });
        for arg in &call.args[1..] {
            let value = self.expr(arg);
            if let Some(want) = &found {
                self.unify(want, &value, arg.span);
            }
        }
        found.unwrap_or(ITy::Unknown)
    }

    fn dim_axis(&mut self, arg: &Expr, rank: usize) {
        self.expr(arg);
        match crate::consts::eval(arg, &self.env) {
            Ok(crate::consts::ConstValue::Int(v)) if usize::try_from(v).is_ok_and(|v| v < rank) => {}
            Ok(_) => {
                self.cx.error(Code::ConstEval, arg.span, format!("a tensor of rank {rank} does not have this axis"))
            }
            Err(_) => self.cx.error_help(
                Code::ConstEval,
                arg.span,
                "an axis must be a constant",
                "write a number or a constant parameter",
            ),
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

    /// The tile type in a load's turbofish, with this number of coordinates.
    fn tile_of(&mut self, t: TensorTy, call: &Call<'_>, at: Option<usize>) -> ITy {
        match self.generic_shape(call) {
            Some(shape) => {
                self.same_rank(Some(shape).filter(|s| Some(s.rank()) != at), usize::from(t.rank), call.span());
                // Which of the two ranks is the mistake is unknown, and so is the rank of the tile.
                if shape.rank() != usize::from(t.rank) {
                    return ITy::Unknown;
                }
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
            self.cannot_infer(arg.span, "the shape of the tile", "write its type where it is created");
        }
        known
    }

    fn same_rank(&mut self, shape: Option<TileShape>, rank: usize, span: Span) {
        if let Some(s) = shape
            && s.rank() != rank
        {
            let title = format!("a tile of rank {} for a tensor of rank {rank}", s.rank());
            let help = if s.rank() < rank {
                "write an extent for each axis, as in `load_tile::<1, 64>([i, j])`; `.reshape::<1, 64>()` adds an axis to a tile that is stored"
            } else {
                "write an extent for each axis; `.reshape::<..>()` changes the rank of a tile"
            };
            self.cx.error_help(Code::RankMismatch, span, title, help);
        }
    }

    // Output tiles.

    pub(super) fn own_method(&mut self, method: Method, o: OwnTy, call: &Call<'_>) -> ITy {
        let i32 = ITy::Scalar(self.known(Elem::I32));
        match method {
            Method::OwnIndex => {
                self.takes(call, 0);
                ITy::Array(Box::new(i32), o.shape.rank())
            }
            Method::OwnGroup => {
                self.takes(call, 0);
                if !o.ragged {
                    let help = "only the tiles of `y.ragged::<..>(off)` have one, the index of their segment in `off`";
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
            Method::OwnStoreFrom => {
                if self.takes(call, 1) {
                    return self.store_from(o, &call.args[0]);
                }
                ITy::Unknown
            }
            _ => {
                self.takes(call, 0);
                ITy::Unit
            }
        }
    }
}
