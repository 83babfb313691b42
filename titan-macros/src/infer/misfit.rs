//! Messages about operands whose element types or shapes do not fit together, with help that makes them fit.

use super::{E, ElemSlot, ITy, Infer, describe_slot};
use crate::ast::BinaryOp;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    /// Unifies the element types of two operands; reports a mismatch.
    pub(super) fn same_elem(&mut self, op: BinaryOp, a: (E, &ITy), b: (E, &ITy), span: Span) -> bool {
        let slots = (self.elem_slot(a.0), self.elem_slot(b.0));
        let fits = self.unify_elem(a.0, b.0).is_ok();
        if !fits {
            let (left, right) = (self.describe(a.1), self.describe(b.1));
            let title = format!("`{}`: {left} and {right} do not fit together", op.symbol());
            let help = precedence(op, slots.0, slots.1).unwrap_or_else(|| operand_help(slots.0, slots.1));
            self.cx.error_help(Code::ElementMismatch, span, title, help);
        }
        fits
    }

    /// Whether the element type of an operand is that of a literal, which nothing else has determined yet.
    pub(super) fn is_literal(&self, e: E) -> bool {
        matches!(self.elem_slot(e), ElemSlot::Int | ElemSlot::Float)
    }

    /// Whether the element type of an operand is that of an integer literal.
    pub(super) fn is_int_literal(&self, e: E) -> bool {
        matches!(self.elem_slot(e), ElemSlot::Int)
    }

    /// Whether a scalar is an `f32` or a float literal, and is rounded beside an `f16` or `bf16`.
    pub(super) fn rounds(&self, half: E, scalar: E) -> bool {
        matches!(self.elem_slot(half), ElemSlot::Known(Elem::F16 | Elem::Bf16))
            && matches!(self.elem_slot(scalar), ElemSlot::Float | ElemSlot::Known(Elem::F32))
    }

    /// Whether a mask and a number are the operands of `&`, `|` or `^` because these bind more tightly than comparisons.
    pub(super) fn is_precedence(&self, op: BinaryOp, a: E, b: E) -> bool {
        precedence(op, self.elem_slot(a), self.elem_slot(b)).is_some()
    }

    /// Whether a scalar operand fits a tile, a row or a column, as far as the types are known; reports a mismatch. The places are those of the
    /// operator and of the scalar.
    pub(super) fn beside(&mut self, op: BinaryOp, (tile, scalar): (E, E), (span, at): (Span, Span)) -> bool {
        if let Some(help) = precedence(op, self.elem_slot(tile), self.elem_slot(scalar)) {
            let title = format!(
                "`{}`: `{}` and `{}` do not fit together",
                op.symbol(),
                describe_slot(self.elem_slot(tile)),
                describe_slot(self.elem_slot(scalar))
            );
            self.cx.error_help(Code::ElementMismatch, span, title, help);
            return false;
        }
        let before = self.cx.reports();
        self.settle_beside(tile, scalar, at, false);
        self.cx.reports() == before
    }

    /// Whether an operand has elements that do not have the operator; reports it.
    pub(super) fn lacks_operator(&mut self, op: BinaryOp, a: &ITy, b: &ITy, span: Span) -> bool {
        let slot = |t: &ITy| match t {
            ITy::Scalar(e) | ITy::Tile(e, _) | ITy::Row(e, _) | ITy::Col(e, _) => Some(self.elem_slot(*e)),
            _ => None,
        };
        let (Some(x), Some(y)) = (slot(a), slot(b)) else { return false };
        let lacking = |s: ElemSlot| if let ElemSlot::Known(e) = s { (!has_operator(op, e)).then_some(e) } else { None };
        let Some(elem) = lacking(x).or(lacking(y)).filter(|_| precedence(op, x, y).is_none()) else { return false };
        // A mask and a number is a different mistake, reported elsewhere.
        if x != y && (x == ElemSlot::Known(Elem::Bool) || y == ElemSlot::Known(Elem::Bool)) {
            return false;
        }
        let help = match op {
            BinaryOp::Shl | BinaryOp::Shr if elem.is_float() => {
                "it shifts integers; multiply a float by a power of two"
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor if elem.is_arith_float() => {
                "it takes `bool` and integers; `.bitcast::<u32>()` reads the bits of an `f32` as an integer"
            }
            _ => "convert it first: `.cast::<f32>()` or `.cast::<i32>()`",
        };
        self.cx.error_help(
            Code::ElementUnsupported,
            span,
            format!("`{}` is not defined for `{elem}`", op.symbol()),
            help,
        );
        true
    }

    /// Unifies as [`Infer::same_elem`] does, where `a` is expected.
    pub(super) fn elem_or_report(&mut self, a: E, b: E, span: Span) {
        let (want, got) = (self.elem_slot(a), self.elem_slot(b));
        if self.unify_elem(a, b).is_err() {
            let title = format!("expected `{}`, found `{}`", describe_slot(want), describe_slot(got));
            self.cx.error_help(Code::ElementMismatch, span, title, conversion(got, want));
        }
    }

    /// Unifies the element type of a scalar operand of a tile with `want`; reports a mismatch.
    pub(super) fn scalar_beside(&mut self, tile: E, want: E, scalar: E, span: Span) {
        let (to, got) = (self.elem_slot(want), self.elem_slot(scalar));
        if self.unify_elem(want, scalar).is_err() {
            let title = format!(
                "a scalar `{}` does not fit a tile of `{}`",
                describe_slot(got),
                describe_slot(self.elem_slot(tile))
            );
            self.cx.error_help(Code::ElementMismatch, span, title, conversion(got, to));
        }
    }
}

/// Help that makes tiles of two shapes fit together.
pub(super) fn shape_help(a: TileShape, b: TileShape) -> String {
    let (large, small) = if a.rank() >= b.rank() { (a, b) } else { (b, a) };
    let reversed: Vec<i32> = b.iter().rev().copied().collect();
    match (&large[..], &small[..]) {
        ([m, n], [k]) if m == n && k == m => {
            "`.row()` repeats the vector in every row, `.col()` in every column".to_owned()
        }
        ([_, n], [k]) if k == n => "`.row()` repeats the vector in every row".to_owned(),
        ([m, _], [k]) if k == m => "`.col()` repeats the vector in every column".to_owned(),
        (l, s) if l.len() != s.len() => {
            "`.broadcast::<AXIS, N>()` adds an axis; `.reshape::<..>()` changes the shape of the same elements"
                .to_owned()
        }
        _ if a.rank() == 2 && a[..] == reversed[..] => "`.t()` exchanges rows and columns".to_owned(),
        _ if a.len() == b.len() => format!("`.reshape::<{}>()` changes the shape of the same elements", extents(a)),
        _ => "both operands must have the same extents".to_owned(),
    }
}

/// Help for a tile of shape `got` where one of shape `want` is expected: the expression that makes it one, if there is one.
pub(super) fn expected_help(want: TileShape, got: TileShape) -> String {
    let reversed: Vec<i32> = got.iter().rev().copied().collect();
    match (&want[..], &got[..]) {
        (w, [_, _]) if w == &reversed[..] => "`.t()` exchanges rows and columns".to_owned(),
        _ if want.len() == got.len() => {
            format!("`.reshape::<{}>()` changes the shape of the same elements", extents(want))
        }
        ([m, _], [k]) if m == k => format!("`.broadcast::<1, {}>()` repeats the vector in every column", want[1]),
        ([_, n], [k]) if n == k => format!("`.broadcast::<0, {}>()` repeats the vector in every row", want[0]),
        _ => format!("load or create it with the extents of the other one, `::<{}>`", extents(want)),
    }
}

pub(super) fn extents(shape: TileShape) -> String {
    let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
    dims.join(", ")
}

fn is_float(slot: ElemSlot) -> bool {
    matches!(slot, ElemSlot::Float) || matches!(slot, ElemSlot::Known(e) if e.is_float())
}

/// Help that converts a value of one element type to another.
fn conversion(from: ElemSlot, to: ElemSlot) -> String {
    match (from, to) {
        (ElemSlot::Int, _) if is_float(to) => "write a float literal with a decimal point: `2.0`".to_owned(),
        (ElemSlot::Float, ElemSlot::Known(e)) if e.is_int() => {
            "write an integer literal without a decimal point, `2`, or convert the integers by `.cast::<f32>()`"
                .to_owned()
        }
        (ElemSlot::Float, _) if matches!(to, ElemSlot::Int) => {
            "write both literals with a decimal point: `2.0`".to_owned()
        }
        (_, ElemSlot::Known(Elem::Bool)) => "a comparison is a `bool`: `x != 0`".to_owned(),
        (_, ElemSlot::Known(to)) => format!("convert it: `.cast::<{to}>()`"),
        _ => "`.cast::<..>()` converts values".to_owned(),
    }
}

/// Help for a mask and a number as operands of `&`, `|` or `^`, which bind more tightly than comparisons.
fn precedence(op: BinaryOp, a: ElemSlot, b: ElemSlot) -> Option<String> {
    let bits = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
    let mask = |s: ElemSlot| s == ElemSlot::Known(Elem::Bool);
    let number = |s: ElemSlot| {
        matches!(s, ElemSlot::Int | ElemSlot::Float) || matches!(s, ElemSlot::Known(e) if e != Elem::Bool)
    };
    let symbol = op.symbol();
    (bits && (mask(a) && number(b) || number(a) && mask(b)))
        .then(|| format!("`{symbol}` binds more tightly than a comparison: write `(a > b) {symbol} (c < d)`"))
}

/// Whether elements have an operator.
fn has_operator(op: BinaryOp, elem: Elem) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => elem.is_arith(),
        BinaryOp::Eq | BinaryOp::Ne => elem.is_arith() || elem == Elem::Bool,
        BinaryOp::Shl | BinaryOp::Shr => elem.is_arith_int(),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => elem.is_arith_int() || elem == Elem::Bool,
    }
}

/// Help that gives two operands the same element type.
fn operand_help(a: ElemSlot, b: ElemSlot) -> String {
    match (a, b) {
        (ElemSlot::Known(Elem::Bool), ElemSlot::Known(e)) | (ElemSlot::Known(e), ElemSlot::Known(Elem::Bool)) => {
            format!("`select(mask, a, b)` chooses by a mask; `.cast::<{e}>()` converts it to the numbers 0 and 1")
        }
        (ElemSlot::Known(a), ElemSlot::Known(b)) => {
            format!("convert one of them: `.cast::<{a}>()` or `.cast::<{b}>()`")
        }
        (literal @ (ElemSlot::Int | ElemSlot::Float), other) | (other, literal @ (ElemSlot::Int | ElemSlot::Float)) => {
            conversion(literal, other)
        }
        _ => "`.cast::<..>()` converts values".to_owned(),
    }
}
