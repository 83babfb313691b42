//! Types of a function's expressions, for one instance: forward, with unification where Rust lets the context decide
//! (`.cast()`, literals, `Tile::zeros()`).
//!
//! Extents are concrete here; the shadow is where rustc checks them as parameters. Rules that rustc reports are recorded with
//! their code all the same: they stop the build if rustc should miss them.

mod call;
mod expr;
mod memory;
mod method;
mod ops;

use crate::ast::{Expr, ExprId, Pat, PatKind, TypeKind, TypeRef};
use crate::ctxt::Ctxt;
use crate::items::{Fault, FnEnv};
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Access, Elem, TileShape};

/// An element type, perhaps not known yet: an index into the table of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct E(usize);

/// A tile's shape, perhaps not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct S(usize);

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ITy {
    Unit,
    /// Control does not come here.
    Never,
    /// An error has been reported.
    Unknown,
    Scalar(E),
    Tile(E, S),
    /// A rank-1 tile as a row or column.
    Row(E, S),
    Col(E, S),
    Tensor(TensorTy),
    /// An output tile.
    Own(OwnTy),
    /// The iterator of `c.tiles()` and `y.ragged(off)`.
    OwnIter(OwnTy),
    /// `lo..hi`
    Range,
    Array(Box<ITy>, usize),
    Tuple(Vec<ITy>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TensorTy {
    pub(crate) elem: Elem,
    pub(crate) rank: u8,
    pub(crate) access: Access,
    pub(crate) optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnTy {
    pub(crate) elem: Elem,
    pub(crate) shape: TileShape,
    pub(crate) ragged: bool,
}

/// What is known of an element.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ElemSlot {
    Known(Elem),
    Same(E),
    /// Any type will do so far.
    Any,
    /// An integer literal.
    Int,
    /// A float literal.
    Float,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ShapeSlot {
    Known(TileShape),
    Same(S),
    Any,
}

/// The types of one function body.
pub(crate) struct Infer<'a> {
    pub(crate) cx: &'a Ctxt,
    pub(crate) env: FnEnv<'a>,
    elems: Vec<ElemSlot>,
    shapes: Vec<ShapeSlot>,
    types: Vec<ITy>,
    vars: Vec<ITy>,
    /// A scalar beside a tile: `f32` beside half tiles, the tile's own type otherwise.
    beside: Vec<(E, E, Span)>,
    ret: ITy,
    /// The results of the enclosing loops' `break` values.
    loops: Vec<(Option<String>, ITy)>,
}

impl<'a> Infer<'a> {
    pub(crate) fn new(cx: &'a Ctxt, env: FnEnv<'a>) -> Self {
        Infer {
            cx,
            env,
            elems: Vec::new(),
            shapes: Vec::new(),
            types: vec![ITy::Unknown; env.func.n_exprs],
            vars: vec![ITy::Unknown; env.func.vars.len()],
            beside: Vec::new(),
            ret: ITy::Unit,
            loops: Vec::new(),
        }
    }

    /// Infers the body with these parameter types. `ret` is the declared result.
    pub(crate) fn run(&mut self, params: Vec<ITy>) {
        for (i, ty) in params.into_iter().enumerate() {
            self.vars[i] = ty;
        }
        self.ret = self.env.func.ret.as_ref().map_or(ITy::Unit, |t| self.ty_ref(t));
        let got = self.block(&self.env.func.body);
        let (want, close) = (self.ret.clone(), self.env.func.body.close);
        if want != ITy::Unit {
            self.unify(&got, &want, close);
        }
        self.solve();
    }

    /// Settles what is still open: scalars beside tiles, then literals.
    fn solve(&mut self) {
        for (tile, scalar, span) in std::mem::take(&mut self.beside) {
            self.settle_beside(tile, scalar, span, true);
        }
        for i in 0..self.elems.len() {
            let e = E(i);
            match self.elem_slot(e) {
                ElemSlot::Int => self.set_elem(e, Elem::I32),
                ElemSlot::Float => self.set_elem(e, Elem::F64),
                ElemSlot::Any | ElemSlot::Known(_) | ElemSlot::Same(_) => {}
            }
        }
    }

    // Tables.

    pub(crate) fn known(&mut self, elem: Elem) -> E {
        self.elems.push(ElemSlot::Known(elem));
        E(self.elems.len() - 1)
    }

    fn fresh(&mut self, slot: ElemSlot) -> E {
        self.elems.push(slot);
        E(self.elems.len() - 1)
    }

    pub(crate) fn known_shape(&mut self, shape: TileShape) -> S {
        self.shapes.push(ShapeSlot::Known(shape));
        S(self.shapes.len() - 1)
    }

    fn fresh_shape(&mut self) -> S {
        self.shapes.push(ShapeSlot::Any);
        S(self.shapes.len() - 1)
    }

    fn root(&self, mut e: E) -> E {
        while let ElemSlot::Same(next) = self.elems[e.0] {
            e = next;
        }
        e
    }

    fn elem_slot(&self, e: E) -> ElemSlot {
        self.elems[self.root(e).0]
    }

    fn set_elem(&mut self, e: E, elem: Elem) {
        let root = self.root(e);
        self.elems[root.0] = ElemSlot::Known(elem);
    }

    /// The element, if it is known.
    pub(crate) fn elem_of(&self, e: E) -> Option<Elem> {
        match self.elem_slot(e) {
            ElemSlot::Known(elem) => Some(elem),
            ElemSlot::Same(_) | ElemSlot::Any | ElemSlot::Int | ElemSlot::Float => None,
        }
    }

    fn shape_root(&self, mut s: S) -> S {
        while let ShapeSlot::Same(next) = self.shapes[s.0] {
            s = next;
        }
        s
    }

    /// The shape, if it is known.
    pub(crate) fn shape_of(&self, s: S) -> Option<TileShape> {
        match self.shapes[self.shape_root(s).0] {
            ShapeSlot::Known(shape) => Some(shape),
            ShapeSlot::Same(_) | ShapeSlot::Any => None,
        }
    }

    /// The type of an expression.
    pub(crate) fn ty(&self, e: ExprId) -> &ITy {
        &self.types[e]
    }

    // Unification.

    fn unify_elem(&mut self, a: E, b: E) -> Result<(), (String, String)> {
        let (ra, rb) = (self.root(a), self.root(b));
        if ra == rb {
            return Ok(());
        }
        let (sa, sb) = (self.elems[ra.0], self.elems[rb.0]);
        let keep = match (sa, sb) {
            (ElemSlot::Known(x), ElemSlot::Known(y)) if x == y => sa,
            (ElemSlot::Known(x), ElemSlot::Int) | (ElemSlot::Int, ElemSlot::Known(x)) if x.is_int() => ElemSlot::Known(x),
            (ElemSlot::Known(x), ElemSlot::Float) | (ElemSlot::Float, ElemSlot::Known(x)) if matches!(x, Elem::F32 | Elem::F64) => {
                ElemSlot::Known(x)
            }
            (ElemSlot::Any, other) | (other, ElemSlot::Any) => other,
            (ElemSlot::Int, ElemSlot::Int) | (ElemSlot::Float, ElemSlot::Float) => sa,
            _ => return Err((describe_slot(sa), describe_slot(sb))),
        };
        self.elems[ra.0] = keep;
        self.elems[rb.0] = ElemSlot::Same(ra);
        Ok(())
    }

    fn unify_shape(&mut self, a: S, b: S) -> Result<(), (TileShape, TileShape)> {
        let (ra, rb) = (self.shape_root(a), self.shape_root(b));
        if ra == rb {
            return Ok(());
        }
        let keep = match (self.shapes[ra.0], self.shapes[rb.0]) {
            (ShapeSlot::Known(x), ShapeSlot::Known(y)) => {
                if x != y {
                    return Err((x, y));
                }
                ShapeSlot::Known(x)
            }
            (ShapeSlot::Known(x), _) | (_, ShapeSlot::Known(x)) => ShapeSlot::Known(x),
            _ => ShapeSlot::Any,
        };
        self.shapes[ra.0] = keep;
        self.shapes[rb.0] = ShapeSlot::Same(ra);
        Ok(())
    }

    /// Makes two types one; reports a mismatch at `span` and gives the type to go on with.
    pub(crate) fn unify(&mut self, a: &ITy, b: &ITy, span: Span) -> ITy {
        match (a, b) {
            (ITy::Unknown | ITy::Never, t) | (t, ITy::Unknown | ITy::Never) => t.clone(),
            (ITy::Scalar(x), ITy::Scalar(y)) => {
                self.elem_or_report(*x, *y, span);
                a.clone()
            }
            (ITy::Tile(x, s), ITy::Tile(y, r)) | (ITy::Row(x, s), ITy::Row(y, r)) | (ITy::Col(x, s), ITy::Col(y, r)) => {
                self.elem_or_report(*x, *y, span);
                if let Err((s, r)) = self.unify_shape(*s, *r) {
                    self.cx.error(Code::ShapeMismatch, span, format!("a tile of {r} where one of {s} is expected"));
                }
                a.clone()
            }
            (ITy::Tuple(x), ITy::Tuple(y)) if x.len() == y.len() => {
                ITy::Tuple(x.iter().zip(y).map(|(x, y)| self.unify(x, y, span)).collect())
            }
            (ITy::Array(x, n), ITy::Array(y, m)) if n == m => ITy::Array(Box::new(self.unify(x, y, span)), *n),
            (ITy::Tensor(x), ITy::Tensor(y)) if x.elem == y.elem && x.rank == y.rank && x.optional == y.optional => a.clone(),
            _ if a == b => a.clone(),
            _ => {
                let title = format!("{} where {} is expected", self.describe(b), self.describe(a));
                self.cx.error(Code::ShapeMismatch, span, title);
                ITy::Unknown
            }
        }
    }

    fn elem_or_report(&mut self, a: E, b: E, span: Span) {
        if let Err((a, b)) = self.unify_elem(a, b) {
            self.cx.error(Code::ElementMismatch, span, format!("`{b}` where `{a}` is expected"));
        }
    }

    /// A scalar beside a tile: `f32` beside half tiles, otherwise the tile's type.
    fn settle_beside(&mut self, tile: E, scalar: E, span: Span, last: bool) {
        match self.elem_of(tile) {
            Some(Elem::F16 | Elem::Bf16) if self.elem_of(scalar) != self.elem_of(tile) => {
                let f32 = self.known(Elem::F32);
                self.elem_or_report(f32, scalar, span);
            }
            None if !last => self.beside.push((tile, scalar, span)),
            _ => self.elem_or_report(tile, scalar, span),
        }
    }

    fn fault<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(v) => Some(v),
            Err((code, span, title)) => {
                self.cx.error(code, span, title);
                None
            }
        }
    }

    fn cannot_infer(&mut self, span: Span, what: &str, help: &str) -> ITy {
        self.cx.unless_broken(Diagnostic::new(Code::CannotInfer, span, format!("{what} is not known here")).help(help));
        ITy::Unknown
    }

    // Written types.

    /// The type that a written type means.
    pub(crate) fn ty_ref(&mut self, t: &TypeRef) -> ITy {
        match &t.kind {
            TypeKind::Infer => ITy::Unknown,
            TypeKind::Elem(name, _) => match self.env.elem(&name.to_string()) {
                Some(e) => ITy::Scalar(self.known(e)),
                None => {
                    self.cx.error(Code::UnknownName, t.span, format!("`{name}` is not an element type"));
                    ITy::Unknown
                }
            },
            TypeKind::Tile(elem, dims, _) => {
                let e = self.elem_ref(elem);
                match self.env.shape(dims, t.span) {
                    Ok(s) => ITy::Tile(e, self.known_shape(s)),
                    Err(fault) => {
                        self.fault::<()>(Err(fault));
                        ITy::Unknown
                    }
                }
            }
            TypeKind::Tensor { elem, rank, mutable, optional, .. } => {
                let e = self.elem_ref(elem);
                let access = if *mutable { Access::Mut } else { Access::In };
                match self.elem_of(e) {
                    Some(elem) => ITy::Tensor(TensorTy { elem, rank: *rank, access, optional: *optional }),
                    None => ITy::Unknown,
                }
            }
            TypeKind::Tuple(list) if list.is_empty() => ITy::Unit,
            TypeKind::Tuple(list) => ITy::Tuple(list.iter().map(|t| self.ty_ref(t)).collect()),
            TypeKind::Array(t, n) => {
                let item = self.ty_ref(t);
                match crate::consts::eval(n, &self.env) {
                    Ok(crate::consts::ConstValue::Int(n @ 0..=64)) => ITy::Array(Box::new(item), usize::try_from(n).unwrap_or(0)),
                    _ => ITy::Unknown,
                }
            }
            TypeKind::Dims(_) => ITy::Unknown,
        }
    }

    /// The element type of a turbofish or tile type; `_` is open.
    fn elem_ref(&mut self, t: &TypeRef) -> E {
        match &t.kind {
            TypeKind::Elem(name, _) => match self.env.elem(&name.to_string()) {
                Some(e) => self.known(e),
                None => {
                    self.cx.error(Code::UnknownName, t.span, format!("`{name}` is not an element type"));
                    self.fresh(ElemSlot::Any)
                }
            },
            _ => self.fresh(ElemSlot::Any),
        }
    }

    /// Gives the names of a pattern their types.
    fn bind(&mut self, pat: &Pat, ty: &ITy) {
        match (&pat.kind, ty) {
            (PatKind::Bind { var, .. }, t) => self.vars[*var] = t.clone(),
            (PatKind::Tuple(pats), ITy::Tuple(tys)) if pats.len() == tys.len() => {
                pats.iter().zip(tys).for_each(|(p, t)| self.bind(p, t));
            }
            (PatKind::Array(pats), ITy::Array(t, n)) if pats.len() == *n => pats.iter().for_each(|p| self.bind(p, t)),
            (PatKind::Wild | PatKind::Bad, _) | (PatKind::Tuple(_) | PatKind::Array(_), ITy::Unknown | ITy::Never) => {}
            (PatKind::Tuple(_) | PatKind::Array(_), t) => {
                let title = format!("a pattern for {}", self.describe(t));
                self.cx.error(Code::Arguments, pat.span, title);
            }
        }
    }

    /// A type in the user's words.
    pub(crate) fn describe(&self, ty: &ITy) -> String {
        let elem = |e: &E| describe_slot(self.elem_slot(*e));
        let dims = |s: &S| self.shape_of(*s).map_or("_".to_owned(), |s| {
            let dims: Vec<String> = s.iter().map(ToString::to_string).collect();
            dims.join(", ")
        });
        match ty {
            ITy::Unit => "`()`".to_owned(),
            ITy::Never | ITy::Unknown => "a value".to_owned(),
            ITy::Scalar(e) => format!("`{}`", elem(e)),
            ITy::Tile(e, s) => format!("`Tile<{}, {}>`", elem(e), dims(s)),
            ITy::Row(e, s) => format!("a row of `Tile<{}, {}>`", elem(e), dims(s)),
            ITy::Col(e, s) => format!("a column of `Tile<{}, {}>`", elem(e), dims(s)),
            ITy::Tensor(t) if t.optional => format!("`Option<&Tensor<{}, {}>>`", t.elem, t.rank),
            ITy::Tensor(t) => format!("`Tensor<{}, {}>`", t.elem, t.rank),
            ITy::Own(_) => "an output tile".to_owned(),
            ITy::OwnIter(_) => "the tiles of an output".to_owned(),
            ITy::Range => "a range".to_owned(),
            ITy::Array(t, n) => format!("an array of {n} times {}", self.describe(t)),
            ITy::Tuple(list) => {
                let list: Vec<String> = list.iter().map(|t| self.describe(t)).collect();
                format!("({})", list.join(", "))
            }
        }
    }

    /// Notes the type of an expression.
    fn record(&mut self, e: &Expr, ty: ITy) -> ITy {
        self.types[e.id] = ty.clone();
        ty
    }
}

fn describe_slot(slot: ElemSlot) -> String {
    match slot {
        ElemSlot::Known(e) => e.name().to_owned(),
        ElemSlot::Int => "{integer}".to_owned(),
        ElemSlot::Float => "{float}".to_owned(),
        ElemSlot::Any | ElemSlot::Same(_) => "_".to_owned(),
    }
}
