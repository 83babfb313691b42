//! Indices of memory: coordinates, row indices, index tiles, offsets of segments.

use super::{E, ITy, Infer, S, TensorTy};
use crate::ast::{Expr, ExprKind};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::Elem;

impl Infer<'_> {
    /// `[i, j]`: one `i32` per axis.
    pub(super) fn coordinates(&mut self, arg: &Expr, rank: usize) {
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

    pub(super) fn offsets(&mut self, arg: &Expr) {
        match self.expr(arg) {
            ITy::Tensor(TensorTy { elem: Elem::I32, rank: 1, optional: false, .. }) | ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("offsets are a `Tensor<i32, 1>`, not {}", self.describe(&other));
                self.cx.error(Code::Arguments, arg.span, title);
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
            let title = format!("{} row indices for a tensor of rank {rank}: one for each leading axis", list.len());
            self.cx.error(Code::RankMismatch, span, title);
        }
        for ty in list {
            match &ty {
                ITy::Tile(e, s) => {
                    self.index_tile(*e, first(arg));
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
    pub(super) fn lanes(&mut self, arg: &Expr, rank: usize) -> Option<S> {
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
                self.index_tile(e, first(arg));
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

    /// The element type of index tiles.
    pub(super) fn index_tile(&mut self, e: E, span: Span) {
        match self.elem_of(e) {
            Some(Elem::I32) => {}
            Some(other) => {
                let title = format!("indices are tiles of `i32`, not of `{other}`");
                self.cx.error_help(Code::IndexType, span, title, "`.cast::<i32>()` where the values fit");
            }
            None => {
                let i32 = self.known(Elem::I32);
                self.elem_or_report(i32, e, span);
            }
        }
    }
}

/// The first of the written coordinates.
fn first(arg: &Expr) -> Span {
    let ExprKind::Array(list, _) = &arg.kind else { return arg.span };
    list.first().map_or(arg.span, |e| e.span)
}
