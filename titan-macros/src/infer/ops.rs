//! Operators: which operands can be combined.

use super::advice::load_help;
use super::misfit::shape_help;
use super::pipe::PipeTy;
use super::{E, ITy, Infer, S};
use crate::ast::BinaryOp;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

/// The kind of the result of an operator: a scalar, a tile, or a row or column that can still be broadcast.
enum Spread {
    Scalar,
    Tile(S),
    Row(S),
    Col(S),
}

impl Spread {
    /// The kind of an operand.
    const fn of(ty: &ITy) -> Spread {
        match ty {
            ITy::Tile(_, s) => Spread::Tile(*s),
            ITy::Row(_, s) => Spread::Row(*s),
            ITy::Col(_, s) => Spread::Col(*s),
            _ => Spread::Scalar,
        }
    }
}

impl Infer<'_> {
    /// The type of `a op b`, of two operands with their places.
    pub(super) fn binary(&mut self, op: BinaryOp, a: (&ITy, Span), b: (&ITy, Span), span: Span) -> ITy {
        if self.lacks_operator(op, a.0, b.0, span) {
            return ITy::Unknown;
        }
        let Some((elem, spread)) = self.together(op, a, b, span) else { return ITy::Unknown };
        let elem = if op.is_comparison() { self.known(Elem::Bool) } else { elem };
        match spread {
            Spread::Scalar => ITy::Scalar(elem),
            Spread::Tile(s) => ITy::Tile(elem, s),
            Spread::Row(s) => ITy::Row(elem, s),
            Spread::Col(s) => ITy::Col(elem, s),
        }
    }

    /// The common element and shape of two operands.
    fn together(
        &mut self,
        op: BinaryOp,
        (a, at_a): (&ITy, Span),
        (b, at_b): (&ITy, Span),
        span: Span,
    ) -> Option<(E, Spread)> {
        // A literal of the wrong kind is a mistake of the literal, not of the operator.
        let at = |s: &Self, e: E, operand: Span| if s.is_literal(e) { operand } else { span };
        match (a, b) {
            // As beside a tile, an `f32` is rounded first.
            (ITy::Scalar(x), ITy::Scalar(y)) if self.rounds(*x, *y) => {
                self.settle_beside(*x, *y, at_b, false);
                Some((*x, Spread::Scalar))
            }
            (ITy::Scalar(x), ITy::Scalar(y)) if self.rounds(*y, *x) => {
                self.settle_beside(*y, *x, at_a, false);
                Some((*y, Spread::Scalar))
            }
            (ITy::Scalar(x), ITy::Scalar(y)) => {
                let span = match (self.is_literal(*x), self.is_literal(*y)) {
                    (true, false) if !self.is_precedence(op, *x, *y) => at_a,
                    (false, true) if !self.is_precedence(op, *x, *y) => at_b,
                    // The literal without a decimal point.
                    (true, true) if self.is_int_literal(*x) && !self.is_int_literal(*y) => at_a,
                    (true, true) if self.is_int_literal(*y) && !self.is_int_literal(*x) => at_b,
                    (true | false, true | false) => span,
                };
                self.same_elem(op, (*x, a), (*y, b), span).then_some((*x, Spread::Scalar))
            }
            (ITy::Tile(x, _) | ITy::Row(x, _) | ITy::Col(x, _), ITy::Scalar(y)) => {
                let at = at(self, *y, at_b);
                self.beside(op, (*x, *y), (span, at)).then_some((*x, Spread::of(a)))
            }
            (ITy::Scalar(y), ITy::Tile(x, _) | ITy::Row(x, _) | ITy::Col(x, _)) => {
                let at = at(self, *y, at_a);
                self.beside(op, (*x, *y), (span, at)).then_some((*x, Spread::of(b)))
            }
            (ITy::Tile(x, s), ITy::Tile(y, r))
            | (ITy::Row(x, s), ITy::Row(y, r))
            | (ITy::Col(x, s), ITy::Col(y, r)) => {
                let fits = self.same_elem(op, (*x, a), (*y, b), span);
                if let (true, Err((s, r))) = (fits, self.unify_shape(*s, *r)) {
                    let title =
                        format!("`{}`: {} and {} do not fit together", op.symbol(), self.describe(a), self.describe(b));
                    self.cx.error_help(Code::ShapeMismatch, span, title, shape_help(s, r));
                    return None;
                }
                fits.then_some((*x, Spread::of(a)))
            }
            (ITy::Tile(x, s), line @ (ITy::Row(y, _) | ITy::Col(y, _)))
            | (line @ (ITy::Row(y, _) | ITy::Col(y, _)), ITy::Tile(x, s)) => {
                let fits = self.same_elem(op, (*x, a), (*y, b), span) && self.line_fits(*s, line, span);
                fits.then_some((*x, Spread::Tile(*s)))
            }
            (ITy::Row(x, n), ITy::Col(y, m)) | (ITy::Col(y, m), ITy::Row(x, n)) => {
                if !self.same_elem(op, (*x, a), (*y, b), span) {
                    return None;
                }
                let (n, m) = (self.shape_of(*n)?, self.shape_of(*m)?);
                let s = TileShape::new(&[m[0], n[0]])?;
                Some((*x, Spread::Tile(self.known_shape(s))))
            }
            (ITy::Unknown | ITy::Never, _) | (_, ITy::Unknown | ITy::Never) => None,
            (t @ ITy::Tensor(_), _) | (_, t @ ITy::Tensor(_)) => {
                self.in_memory(t, &format!("`{}` works on tiles and scalars", op.symbol()), span);
                None
            }
            _ => {
                let title = format!("{} and {} do not fit together", self.describe(a), self.describe(b));
                let title = format!("`{}`: {title}", op.symbol());
                self.cx.error_help(Code::Arguments, span, title, operand_kinds(&[a, b]));
                None
            }
        }
    }

    /// Whether a row or column has the length of the tile's axis.
    pub(super) fn line_fits(&mut self, tile: S, line: &ITy, span: Span) -> bool {
        let (axis, s) = match line {
            ITy::Row(_, s) => (1, s),
            ITy::Col(_, s) => (0, s),
            _ => return true,
        };
        let (Some(t), Some(l)) = (self.shape_of(tile), self.shape_of(*s)) else { return true };
        if t.rank() != 2 || t[axis] != l[0] {
            let title = format!("{} does not fit a tile of shape {t}", self.describe(line));
            let help = match line {
                _ if t.rank() != 2 => "rows and columns combine with tiles of rank 2 only",
                ITy::Row(..) if t[0] == l[0] => "its length is that of a column: write `.col()`",
                ITy::Col(..) if t[1] == l[0] => "its length is that of a row: write `.row()`",
                _ => "a row has one element for each column of the tile, a column one for each row",
            };
            self.cx.error_help(Code::ShapeMismatch, span, title, help);
            return false;
        }
        true
    }

    /// Checks an operand that is combined with a tile: a tile, a row, a column or a scalar.
    pub(super) fn beside_tile(&mut self, elem: E, shape: S, operand: &ITy, span: Span) {
        match operand {
            ITy::Scalar(y) => self.settle_beside(elem, *y, span, false),
            ITy::Tile(y, s) => {
                self.elem_or_report(elem, *y, span);
                if let Err((a, b)) = self.unify_shape(shape, *s) {
                    let title = format!("tiles of shape {a} and {b} do not fit together");
                    self.cx.error_help(Code::ShapeMismatch, span, title, shape_help(a, b));
                }
            }
            ITy::Row(y, _) | ITy::Col(y, _) => {
                self.elem_or_report(elem, *y, span);
                let _reported = self.line_fits(shape, operand, span);
            }
            ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("{} cannot be combined with a tile", self.describe(other));
                match other {
                    ITy::Tensor(t) => self.cx.error_help(Code::Arguments, span, title, load_help(t.rank)),
                    _ => self.cx.error_help(Code::Arguments, span, title, operand_kinds(&[other])),
                }
            }
        }
    }
}

/// Help for operands of which one is of a kind that is not computed with.
fn operand_kinds(operands: &[&ITy]) -> &'static str {
    if operands.iter().any(|t| matches!(t, ITy::Pipe(PipeTy::View(..)))) {
        return "`.load()` loads a tile of a stage to registers: `stage.get().load()`";
    }
    "only tiles, rows, columns and scalars are computed with: use the parts of arrays and tuples by `let [i, j] = ..` and `let (a, b) = ..`"
}
