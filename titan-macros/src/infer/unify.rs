//! Unification of types, with errors for mismatches.

use super::misfit::expected_help;
use super::{E, ElemSlot, ITy, Infer, S, ShapeSlot};
use crate::lower::Stop;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    /// Unifies two element types.
    pub(super) fn unify_elem(&mut self, a: E, b: E) -> Result<(), Stop> {
        let (ra, rb) = (self.root(a), self.root(b));
        if ra == rb {
            return Ok(());
        }
        let (sa, sb) = (self.elems[ra.0], self.elems[rb.0]);
        let keep = match (sa, sb) {
            (ElemSlot::Known(x), ElemSlot::Known(y)) if x == y => sa,
            (ElemSlot::Known(x), ElemSlot::Int) | (ElemSlot::Int, ElemSlot::Known(x)) if x.is_int() => {
                ElemSlot::Known(x)
            }
            (ElemSlot::Known(x), ElemSlot::Float) | (ElemSlot::Float, ElemSlot::Known(x))
                if matches!(x, Elem::F32 | Elem::F64) =>
            {
                ElemSlot::Known(x)
            }
            (ElemSlot::Any, other) | (other, ElemSlot::Any) => other,
            (ElemSlot::Int, ElemSlot::Int) | (ElemSlot::Float, ElemSlot::Float) => sa,
            _ => return Err(Stop),
        };
        self.elems[ra.0] = keep;
        self.elems[rb.0] = ElemSlot::Same(ra);
        Ok(())
    }

    pub(super) fn unify_shape(&mut self, a: S, b: S) -> Result<(), (TileShape, TileShape)> {
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

    /// Unifies two types; reports a mismatch at `span` and returns the type with which inference continues.
    pub(crate) fn unify(&mut self, a: &ITy, b: &ITy, span: Span) -> ITy {
        match (a, b) {
            (ITy::Unknown | ITy::Never, t) | (t, ITy::Unknown | ITy::Never) => t.clone(),
            (ITy::Scalar(x), ITy::Scalar(y)) => {
                self.elem_or_report(*x, *y, span);
                a.clone()
            }
            (ITy::Tile(x, s), ITy::Tile(y, r))
            | (ITy::Row(x, s), ITy::Row(y, r))
            | (ITy::Col(x, s), ITy::Col(y, r)) => {
                self.elem_or_report(*x, *y, span);
                if let Err((s, r)) = self.unify_shape(*s, *r) {
                    let title = format!("expected a tile of shape {s}, found shape {r}");
                    self.cx.error_help(Code::ShapeMismatch, span, title, expected_help(s, r));
                    return ITy::Unknown;
                }
                a.clone()
            }
            (ITy::Tuple(x), ITy::Tuple(y)) if x.len() == y.len() => {
                ITy::Tuple(x.iter().zip(y).map(|(x, y)| self.unify(x, y, span)).collect())
            }
            (ITy::Array(x, n), ITy::Array(y, m)) if n == m => ITy::Array(Box::new(self.unify(x, y, span)), *n),
            (ITy::Tensor(x), ITy::Tensor(y)) if x.elem == y.elem && x.rank == y.rank && x.optional == y.optional => {
                a.clone()
            }
            (ITy::Pipe(x), ITy::Pipe(y)) => self.unify_pipe(x, y, span),
            _ if a == b => a.clone(),
            _ => {
                self.wrong_kind(a, b, span);
                ITy::Unknown
            }
        }
    }

    /// Checks a scalar operand of a tile: `f32` is allowed with `f16` and `bf16` tiles, otherwise the tile's type.
    pub(super) fn settle_beside(&mut self, tile: E, scalar: E, span: Span, last: bool) {
        match self.elem_of(tile) {
            Some(Elem::F16 | Elem::Bf16) if self.elem_of(scalar) != self.elem_of(tile) => {
                let f32 = self.known(Elem::F32);
                self.scalar_beside(tile, f32, scalar, span);
            }
            None if !last => self.beside.push((tile, scalar, span)),
            _ => self.scalar_beside(tile, tile, scalar, span),
        }
    }
}
