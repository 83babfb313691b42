//! Indices into tensors: coordinates, row indices, index tiles, offsets of segments.

use super::advice::{in_brackets, load_help};
use super::method::Call;
use super::{E, ITy, Infer, S, TensorTy};
use crate::ast::{Expr, ExprKind};
use proc_macro2::Span;
use titan_core::diag::{Code, counted};
use titan_core::ir::Elem;

impl Infer<'_> {
    /// `[i, j]`: one `i32` per axis. Returns the number of coordinates.
    ///
    /// A tensor that is indexed as one of another rank is reported once: its type may be the mistake.
    pub(super) fn coordinates(&mut self, arg: &Expr, t: TensorTy, call: &Call<'_>) -> Option<usize> {
        let (rank, got) = (usize::from(t.rank), self.expr(arg));
        let want = ITy::Array(Box::new(ITy::Scalar(self.known(Elem::I32))), rank);
        match &got {
            ITy::Array(_, n) if *n != rank => {
                let title = format!("{} for a tensor of rank {rank}", counted(*n, "coordinate"));
                match &call.on {
                    Some(name) if !self.other_ranks.insert((name.clone(), *n)) => {}
                    Some(name) if call.generics.len() == *n => {
                        let help = format!(
                            "declare `{name}` as `Tensor<{}, {n}>`, or write an extent and a coordinate for each of its axes",
                            t.elem
                        );
                        self.cx.error_help(Code::RankMismatch, arg.span, title, help);
                    }
                    _ => self.cx.error_help(Code::RankMismatch, arg.span, title, in_brackets(rank)),
                }
            }
            ITy::Array(item, _) if !self.index_elem(item, first(arg)) => {}
            ITy::Array(..) | ITy::Unknown | ITy::Never => drop(self.unify(&want, &got, arg.span)),
            other => {
                let title = format!("coordinates must be an array of `i32`, not {}", self.describe(other));
                self.cx.error_help(Code::Arguments, arg.span, title, in_brackets(rank));
            }
        }
        if let ITy::Array(_, n) = got { Some(n) } else { None }
    }

    pub(super) fn offsets(&mut self, arg: &Expr) {
        match self.expr(arg) {
            ITy::Tensor(TensorTy { elem: Elem::I32, rank: 1, optional: false, .. }) | ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("the offsets must be a tensor of `i32`, not {}", self.describe(&other));
                let help = "take a parameter `off: &Tensor<i32, 1>`; segment `e` is the rows `off[e] .. off[e + 1]`";
                self.cx.error_help(Code::Arguments, arg.span, title, help);
            }
        }
    }

    /// Row indices: a `Tile<i32, N>` or an `i32` for each leading axis, as a tuple or alone.
    pub(super) fn rows(&mut self, arg: &Expr, rank: usize, n: Option<i32>, span: Span) {
        let ty = self.expr(arg);
        let list = match ty {
            ITy::Tuple(list) => list,
            ITy::Unknown | ITy::Never => return,
            one => vec![one],
        };
        if list.len() + 1 != rank {
            let title = format!("{} for a tensor of rank {rank}", counted(list.len(), "row index"));
            let help = "write one for each axis but the last, `ix` for rank 2 and `(i, j)` for rank 3, each an `i32` or a `Tile<i32, N>`";
            self.cx.error_help(Code::RankMismatch, span, title, help);
        }
        for ty in list {
            match &ty {
                ITy::Tile(e, s) => {
                    self.index_tile(*e, first(arg));
                    if let (Some(n), Some(s)) = (n, self.shape_of(*s))
                        && s[..] != [n]
                    {
                        let title = format!("row indices of shape {s} for {}", counted(n, "row"));
                        let help = format!("one index for each row: a `Tile<i32, {n}>`");
                        self.cx.error_help(Code::ShapeMismatch, arg.span, title, help);
                    }
                }
                ITy::Scalar(e) => {
                    let i32 = self.known(Elem::I32);
                    self.elem_or_report(i32, *e, arg.span);
                }
                ITy::Unknown | ITy::Never => {}
                other => {
                    let title =
                        format!("a row index must be an `i32` or a `Tile<i32, N>`, not {}", self.describe(other));
                    let help = match other {
                        ITy::Tensor(t) => load_help(t.rank),
                        _ => "write the number of one row, or load or compute a tile of them, as in `iota::<N>()`"
                            .to_owned(),
                    };
                    self.cx.error_help(Code::Arguments, arg.span, title, help);
                }
            }
        }
    }

    /// Index tiles of one shape, one per axis.
    pub(super) fn lanes(&mut self, arg: &Expr, t: TensorTy, call: &Call<'_>) -> Option<S> {
        let ty = self.expr(arg);
        self.lanes_of(ty, arg, t, call)
    }

    /// Index tiles of one shape, one per axis, or an `i32` per axis: `Some(None)`.
    pub(super) fn lanes_or_one(&mut self, arg: &Expr, t: TensorTy, call: &Call<'_>) -> Option<Option<S>> {
        let ty = self.expr(arg);
        if let ITy::Array(item, n) = &ty
            && let ITy::Scalar(e) = **item
            && *n == usize::from(t.rank)
        {
            let i32 = self.known(Elem::I32);
            if !self.index_elem(item, first(arg)) {
                return None;
            }
            self.elem_or_report(i32, e, first(arg));
            return Some(None);
        }
        self.lanes_of(ty, arg, t, call).map(Some)
    }

    fn lanes_of(&mut self, ty: ITy, arg: &Expr, t: TensorTy, call: &Call<'_>) -> Option<S> {
        let rank = usize::from(t.rank);
        match ty {
            ITy::Array(item, n) => {
                if n != rank {
                    let title = format!("{} for a tensor of rank {rank}", counted(n, "index tile"));
                    self.cx.error_help(Code::RankMismatch, arg.span, title, in_brackets(rank));
                    return None;
                }
                let ITy::Tile(e, s) = *item else {
                    if !matches!(*item, ITy::Unknown | ITy::Never) {
                        let title = format!(
                            "`{}` takes a tile of indices for each axis, not {}",
                            call.name,
                            self.describe(&item)
                        );
                        self.cx.error_help(Code::Arguments, first(arg), title, one_element(&call.name.to_string()));
                    }
                    return None;
                };
                self.index_tile(e, first(arg));
                Some(s)
            }
            ITy::Unknown | ITy::Never => None,
            other => {
                let title = format!("`{}` takes an array of index tiles, not {}", call.name, self.describe(&other));
                self.cx.error_help(Code::Arguments, arg.span, title, in_brackets(rank));
                None
            }
        }
    }

    /// The element type of index tiles.
    pub(super) fn index_tile(&mut self, e: E, span: Span) {
        match self.elem_of(e) {
            Some(Elem::I32) => {}
            Some(other) => {
                let title = format!("indices must be tiles of `i32`, not of `{other}`");
                self.cx.error_help(Code::IndexType, span, title, "convert them by `.cast::<i32>()`, if all values fit");
            }
            None => {
                let i32 = self.known(Elem::I32);
                self.elem_or_report(i32, e, span);
            }
        }
    }
}

/// The way in which an operation on index tiles is written for one element.
fn one_element(name: &str) -> String {
    match name {
        "scatter" => "`y.set([i], v)` writes one element".to_owned(),
        n if n.starts_with("atomic_") => format!(
            "`y.{}([i], v)` updates one element, and returns what it was; for a tile of `y`, write `y.{n}_tile([i], v)`",
            n.replace("atomic_", "fetch_")
        ),
        _ => "`x.get([i])` reads one element".to_owned(),
    }
}

/// The first of the written coordinates.
fn first(arg: &Expr) -> Span {
    let ExprKind::Array(list, _) = &arg.kind else { return arg.span };
    list.first().map_or(arg.span, |e| e.span)
}
