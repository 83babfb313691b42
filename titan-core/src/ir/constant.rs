//! Scalar constants.

use super::Elem;

/// A scalar constant: its element type and its value. A float is stored as an `f64` that was rounded once to its type.
#[derive(Clone, Copy, Debug)]
pub enum Const {
    /// An integer, sign- or zero-extended; `bool` is 0 or 1.
    Int(Elem, i64),
    /// A float.
    Float(Elem, f64),
}

impl Const {
    /// The element type.
    #[must_use]
    pub const fn elem(self) -> Elem {
        match self {
            Const::Int(e, _) | Const::Float(e, _) => e,
        }
    }
}

impl PartialEq for Const {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Const::Int(e, a), Const::Int(f, b)) => e == f && a == b,
            (Const::Float(e, a), Const::Float(f, b)) => e == f && a.to_bits() == b.to_bits(),
            (Const::Int(..), Const::Float(..)) | (Const::Float(..), Const::Int(..)) => false,
        }
    }
}

impl Eq for Const {}
