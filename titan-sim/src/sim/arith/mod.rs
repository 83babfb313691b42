//! The results of operations on elements, as specified in `docs/semantics.md`. Written for readability: one element at a time, except
//! matrix products ([`product`]).
//!
//! Shares no code with the back ends; with the compiler it shares the conversions of [`titan_core::num`] and the integer rules of
//! [`titan_core::ir::fold`].

pub(super) mod bytes;
pub(super) mod cast;
pub(super) mod float;
pub(super) mod int;
pub(super) mod product;
pub(super) mod reduce;
pub(super) mod shape;

use super::value::{Cells, Num};
use titan_core::ir::{BinOp, Elem, Pred, UnOp};

/// Applies a binary operation to values of this element type.
pub(super) fn binary(op: BinOp, elem: Elem, a: Num, b: Num) -> Num {
    match (a, b) {
        (Num::Float(a), Num::Float(b)) => Num::Float(float::binary(op, elem, a, b)),
        (a, b) => Num::Int(int::binary(op, elem, a.int(), b.int())),
    }
}

/// Applies a unary operation to a value of this element type.
pub(super) fn unary(op: UnOp, elem: Elem, a: Num) -> Num {
    match a {
        Num::Float(x) if op == UnOp::IsNan => Num::Int(x.is_nan().into()),
        Num::Float(x) => Num::Float(float::unary(op, elem, x)),
        Num::Int(v) => Num::Int(int::unary(op, elem, v)),
    }
}

/// Applies a comparison to values of this element type.
pub(super) fn compare(pred: Pred, elem: Elem, a: Num, b: Num) -> bool {
    match (a, b) {
        (Num::Float(a), Num::Float(b)) => match pred {
            Pred::Eq => a == b,
            Pred::Ne => a != b,
            Pred::Lt => a < b,
            Pred::Le => a <= b,
            Pred::Gt => a > b,
            Pred::Ge => a >= b,
        },
        (a, b) => int::compare(pred, elem, a.int(), b.int()),
    }
}

/// Applies `f` to each pair of elements; the results are elements of type `elem`.
pub(super) fn zip(elem: Elem, a: &Cells, b: &Cells, f: impl Fn(Num, Num) -> Num) -> Cells {
    Cells::collect(elem, (0..a.len()).map(|i| f(a.get(i), b.get(i))))
}

/// Applies `f` to each element; the results are elements of type `elem`.
pub(super) fn map(elem: Elem, a: &Cells, f: impl Fn(Num) -> Num) -> Cells {
    Cells::collect(elem, (0..a.len()).map(|i| f(a.get(i))))
}

/// A tile of `n` equal elements.
pub(super) fn splat(n: usize, x: Num) -> Cells {
    match x {
        Num::Int(v) => Cells::Int(vec![v; n]),
        Num::Float(x) => Cells::Float(vec![x; n]),
    }
}
