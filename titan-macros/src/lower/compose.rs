//! Elementwise operations that are made of a few others.
//!
//! Deliberately absent: operations for which machines have an instruction of their own, or that need more than elements in their place.

use super::{FnLower, Lowered, Stop};
use crate::method::Composed;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{BinOp, Const, Elem, OpKind, Pred, Ty, UnOp, Value};

impl FnLower<'_, '_, '_> {
    pub(super) fn composed(&mut self, composed: Composed, v: Value, span: Span) -> Lowered<Value> {
        let elem = self.ty(v).elem();
        let (name, ok, help) = match composed {
            Composed::IsFinite => ("is_finite", elem.is_arith_float(), None),
            Composed::IsInfinite => ("is_infinite", elem.is_arith_float(), None),
            Composed::Signum => ("signum", elem.is_arith(), None),
            Composed::TrailingZeros => {
                let help = "it takes integers; `.bitcast::<u32>()` reads the bits of an `f32` as an integer";
                ("trailing_zeros", elem.is_arith_int(), Some(help))
            }
        };
        if !ok {
            let title = format!("`{name}` is not defined for `{elem}`");
            let help = help.unwrap_or("convert it first: `.cast::<f32>()`");
            return Err(self.push_diag(Diagnostic::new(Code::ElementUnsupported, span, title).help(help)));
        }
        match composed {
            // NaN is neither below infinity nor equal to it.
            Composed::IsFinite => self.beside_infinity(Pred::Lt, v, span),
            Composed::IsInfinite => self.beside_infinity(Pred::Eq, v, span),
            Composed::Signum if elem.is_float() => self.sign_of_float(v, span),
            Composed::Signum => self.sign_of_integer(v, span),
            Composed::TrailingZeros => {
                // The zeros below the lowest one become ones by subtracting 1, and no other bit is 0 before and 1 after.
                let one = self.everywhere(v, Const::Int(elem, 1), span)?;
                let less = self.op(span, OpKind::Binary(BinOp::Sub), &[v, one])?;
                let zeros = self.op(span, OpKind::Unary(UnOp::Not), &[v])?;
                let below = self.op(span, OpKind::Binary(BinOp::And), &[zeros, less])?;
                self.op(span, OpKind::Unary(UnOp::CountOnes), &[below])
            }
        }
    }

    /// A constant in the shape of a value.
    pub(super) fn everywhere(&mut self, like: Value, c: Const, span: Span) -> Lowered<Value> {
        let c = self.sh.b.constant(c);
        match self.ty(like) {
            Ty::Tile(_, shape) => self.op(span, OpKind::Splat(shape), &[c]),
            _ => Ok(c),
        }
    }

    fn beside_infinity(&mut self, pred: Pred, v: Value, span: Span) -> Lowered<Value> {
        let magnitude = self.op(span, OpKind::Unary(UnOp::Abs), &[v])?;
        let infinity = self.everywhere(v, Const::Float(self.ty(v).elem(), f64::INFINITY), span)?;
        self.op(span, OpKind::Cmp(pred), &[magnitude, infinity])
    }

    /// 1 with the sign bit of the number; NaN stays NaN.
    fn sign_of_float(&mut self, v: Value, span: Span) -> Lowered<Value> {
        let elem = self.ty(v).elem();
        let (bits, sign, one) = match elem {
            Elem::F64 => (Elem::U64, i64::MIN, 0x3ff0_0000_0000_0000),
            Elem::F32 => (Elem::U32, 0x8000_0000, 0x3f80_0000),
            Elem::F16 => (Elem::U16, 0x8000, 0x3c00),
            Elem::Bf16 => (Elem::U16, 0x8000, 0x3f80),
            Elem::Tf32
            | Elem::E4m3
            | Elem::E5m2
            | Elem::I64
            | Elem::I32
            | Elem::I16
            | Elem::I8
            | Elem::I4
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::U4
            | Elem::Bool => return Err(Stop),
        };
        let (sign, one) =
            (self.everywhere(v, Const::Int(bits, sign), span)?, self.everywhere(v, Const::Int(bits, one), span)?);
        let word = self.op(span, OpKind::Bitcast(bits), &[v])?;
        let word = self.op(span, OpKind::Binary(BinOp::And), &[word, sign])?;
        let word = self.op(span, OpKind::Binary(BinOp::Or), &[word, one])?;
        let signed = self.op(span, OpKind::Bitcast(elem), &[word])?;
        let nan = self.op(span, OpKind::Unary(UnOp::IsNan), &[v])?;
        self.op(span, OpKind::Select, &[nan, v, signed])
    }

    /// The number between −1 and 1 that is nearest.
    fn sign_of_integer(&mut self, v: Value, span: Span) -> Lowered<Value> {
        let elem = self.ty(v).elem();
        let one = self.everywhere(v, Const::Int(elem, 1), span)?;
        let least = self.op(span, OpKind::Binary(BinOp::Min), &[v, one])?;
        if !elem.is_signed_int() {
            return Ok(least);
        }
        let minus = self.everywhere(v, Const::Int(elem, -1), span)?;
        self.op(span, OpKind::Binary(BinOp::Max), &[least, minus])
    }
}
