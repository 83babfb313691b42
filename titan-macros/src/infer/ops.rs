//! Operators: which operands stand beside each other.

use super::{E, ITy, Infer, S};
use crate::ast::BinaryOp;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    /// The type of `a op b`.
    pub(super) fn binary(&mut self, op: BinaryOp, a: &ITy, b: &ITy, span: Span) -> ITy {
        let Some((elem, shape)) = self.together(op, a, b, span) else { return ITy::Unknown };
        let elem = if op.is_comparison() { self.known(Elem::Bool) } else { elem };
        match shape {
            Some(s) => ITy::Tile(elem, s),
            None => ITy::Scalar(elem),
        }
    }

    /// The common element and shape of two operands; a shape of `None` is a scalar.
    fn together(&mut self, op: BinaryOp, a: &ITy, b: &ITy, span: Span) -> Option<(E, Option<S>)> {
        match (a, b) {
            (ITy::Scalar(x), ITy::Scalar(y)) => {
                self.elem_or_report(*x, *y, span);
                Some((*x, None))
            }
            (ITy::Tile(x, s), ITy::Scalar(y)) | (ITy::Scalar(y), ITy::Tile(x, s)) => {
                self.settle_beside(*x, *y, span, false);
                Some((*x, Some(*s)))
            }
            (ITy::Tile(x, s), ITy::Tile(y, r)) => {
                self.elem_or_report(*x, *y, span);
                if let Err((s, r)) = self.unify_shape(*s, *r) {
                    let title = format!("a tile of {s} and one of {r} do not fit together");
                    self.cx.error(Code::ShapeMismatch, span, title);
                }
                Some((*x, Some(*s)))
            }
            (ITy::Tile(x, s), line @ (ITy::Row(y, _) | ITy::Col(y, _)))
            | (line @ (ITy::Row(y, _) | ITy::Col(y, _)), ITy::Tile(x, s)) => {
                self.elem_or_report(*x, *y, span);
                self.line_fits(*s, line, span);
                Some((*x, Some(*s)))
            }
            (ITy::Row(x, n), ITy::Col(y, m)) | (ITy::Col(y, m), ITy::Row(x, n)) => {
                self.elem_or_report(*x, *y, span);
                let (n, m) = (self.shape_of(*n)?, self.shape_of(*m)?);
                let s = TileShape::new(&[m[0], n[0]])?;
                Some((*x, Some(self.known_shape(s))))
            }
            (ITy::Unknown | ITy::Never, _) | (_, ITy::Unknown | ITy::Never) => None,
            _ => {
                let title = format!("{} and {} do not fit together", self.describe(a), self.describe(b));
                self.cx.error(Code::ShapeMismatch, span, format!("`{}`: {title}", op.symbol()));
                None
            }
        }
    }

    /// Whether a row or column has the length of the tile's axis.
    pub(super) fn line_fits(&mut self, tile: S, line: &ITy, span: Span) {
        let (axis, s) = match line {
            ITy::Row(_, s) => (1, s),
            ITy::Col(_, s) => (0, s),
            _ => return,
        };
        let (Some(t), Some(l)) = (self.shape_of(tile), self.shape_of(*s)) else { return };
        if t.rank() != 2 || t[axis] != l[0] {
            let title = format!("{} does not fit a tile of {t}", self.describe(line));
            self.cx.error(Code::ShapeMismatch, span, title);
        }
    }

    /// An operand that may stand beside a tile: a tile, a row, a column or a scalar.
    pub(super) fn beside_tile(&mut self, elem: E, shape: S, operand: &ITy, span: Span) {
        match operand {
            ITy::Scalar(y) => self.settle_beside(elem, *y, span, false),
            ITy::Tile(y, s) => {
                self.elem_or_report(elem, *y, span);
                if let Err((a, b)) = self.unify_shape(shape, *s) {
                    let title = format!("a tile of {a} and one of {b} do not fit together");
                    self.cx.error(Code::ShapeMismatch, span, title);
                }
            }
            ITy::Row(y, _) | ITy::Col(y, _) => {
                self.elem_or_report(elem, *y, span);
                self.line_fits(shape, operand, span);
            }
            ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("{} cannot stand beside a tile", self.describe(other));
                self.cx.error(Code::ShapeMismatch, span, title);
            }
        }
    }
}
