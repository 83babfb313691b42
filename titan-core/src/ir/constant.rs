//! Scalar constants.

use super::Elem;
use crate::num;

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

impl Elem {
    /// Whether a float type has a value near this number, which is not the case if it is rounded to infinity, or, in a type without, beyond the
    /// greatest value.
    #[must_use]
    pub fn holds(self, v: f64) -> bool {
        if !v.is_finite() {
            return true;
        }
        match self {
            Elem::F64 => true,
            #[expect(clippy::cast_possible_truncation, reason = "it is rounded")]
            Elem::F32 => (v as f32).is_finite(),
            Elem::Tf32 => num::tf32_from_f64(v).is_finite(),
            Elem::F16 => num::f16_to_f64(num::f16_from_f64(v)).is_finite(),
            Elem::Bf16 => num::bf16_to_f64(num::bf16_from_f64(v)).is_finite(),
            // These saturate. Between the greatest value and the next one that would be are half of its last place.
            Elem::E4m3 => v.abs() <= 464.0,
            Elem::E5m2 => v.abs() < 61440.0,
            Elem::I64
            | Elem::I32
            | Elem::I16
            | Elem::I8
            | Elem::I4
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::U4
            | Elem::Bool => false,
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
