//! Types of a function's expressions, for one instance: forward, with unification where Rust lets the context decide
//! (`.cast()`, literals, `Tile::zeros()`).
//!
//! Extents are concrete here; rustc checks them as parameters in the shadow. Errors that rustc reports are recorded with their
//! code too: they stop the build if rustc does not report them.

mod advice;
mod call;
mod control;
mod device;
mod expr;
mod indices;
mod memory;
mod method;
mod misfit;
mod ops;
mod parts;
pub(crate) mod pipe;
mod shapes;
#[cfg(test)]
mod tests;
mod unify;
mod views;
mod written;

pub(crate) use parts::joined;

use crate::ast::{Expr, ExprId, LoopId, Stmt};
use crate::ctxt::Ctxt;
use crate::items::{Fault, FnEnv};
use proc_macro2::Span;
use titan_core::collections::SortedSet;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Access, Elem, TileShape};

/// An element type that may not be known yet: an index into the table of element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct E(usize);

/// The shape of a tile, which may not be known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct S(usize);

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ITy {
    Unit,
    /// Control flow does not reach this expression.
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
    /// A value of a pipeline: a ring, a token, an MMA in flight.
    Pipe(pipe::PipeTy),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TensorTy {
    pub(crate) elem: Elem,
    pub(crate) rank: u8,
    pub(crate) access: Access,
    pub(crate) optional: bool,
    /// For a read-only view of an output, the method that made it.
    pub(crate) reads: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OwnTy {
    pub(crate) elem: Elem,
    pub(crate) shape: TileShape,
    pub(crate) ragged: bool,
    /// The number of rows of tiles in a group; 1 is row-major order.
    pub(crate) group: i32,
}

/// The knowledge about an element type.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ElemSlot {
    Known(Elem),
    Same(E),
    /// Any type is possible.
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
    /// Scalar operands of tiles: `f32` is allowed with `f16` and `bf16` tiles, otherwise the type is that of the tile.
    beside: Vec<(E, E, Span)>,
    ret: ITy,
    /// The enclosing loops: their numbers, if they have labels, and the results of their `break` values.
    loops: Vec<(Option<LoopId>, ITy)>,
    /// Tensors that are indexed as if they had another rank, with that rank.
    other_ranks: SortedSet<(String, usize)>,
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
            other_ranks: SortedSet::new(),
        }
    }

    /// Infers the body with these parameter types. `ret` is the declared result.
    pub(crate) fn run(&mut self, params: Vec<ITy>) {
        for (i, ty) in params.into_iter().enumerate() {
            self.vars[i] = ty;
        }
        self.ret = self.env.func.ret.as_ref().map_or(ITy::Unit, |t| self.ty_ref(t));
        let body = &self.env.func.body;
        let got = self.block(body);
        let last = match body.stmts.last() {
            Some(Stmt::Expr { expr, semi: None }) => expr.span,
            _ => body.close,
        };
        let want = self.ret.clone();
        if want == ITy::Unit && !matches!(got, ITy::Unit | ITy::Never | ITy::Unknown) {
            let title =
                format!("`{}` returns nothing, but ends with a value: {}", self.env.func.name, self.describe(&got));
            let help = "store it to a `&mut Tensor` parameter, or add a `;`";
            self.cx.error_help(Code::Arguments, last, title, help);
        } else {
            self.unify(&want, &got, last);
        }
        self.solve();
    }

    /// Determines the types that are still open: scalar operands of tiles, then literals.
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

    fn fault<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.cx.push(fault)).ok()
    }

    fn cannot_infer(&mut self, span: Span, what: &str, help: &str) -> ITy {
        self.cx.unless_broken(
            Diagnostic::new(Code::CannotInfer, span, format!("{what} cannot be inferred here")).help(help),
        );
        ITy::Unknown
    }

    // Written types.

    /// A type, as messages call it.
    pub(crate) fn describe(&self, ty: &ITy) -> String {
        let elem = |e: &E| describe_slot(self.elem_slot(*e));
        let dims = |s: &S| {
            self.shape_of(*s).map_or("_".to_owned(), |s| {
                let dims: Vec<String> = s.iter().map(ToString::to_string).collect();
                dims.join(", ")
            })
        };
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
            ITy::OwnIter(_) => "an iterator over output tiles".to_owned(),
            ITy::Range => "a range".to_owned(),
            ITy::Array(t, n) => format!("an array of {n} {}", self.describe(t)),
            ITy::Tuple(list) => {
                let list: Vec<String> = list.iter().map(|t| self.describe(t)).collect();
                format!("({})", list.join(", "))
            }
            ITy::Pipe(ty) => self.describe_pipe(ty),
        }
    }

    /// Records the type of an expression.
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
