//! Parses `const`: literals, whose meaning depends on the type.

use super::op::Left;
use super::{Body, Parse, Parser};
use crate::diag::{Code, Diagnostic};
use crate::ir::{Const, Elem, OpKind, Place, Ty, Typed};
use crate::text::lex::Tok;

impl<'a> Parser<'a> {
    /// `const 1.5 : f32`
    pub(super) fn constant(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let at = self.next.at;
        let negative = self.eat("-");
        let literal = self.bump();
        let bits = if literal.tok == Tok::Word("nan") && self.eat("(") { Some(self.nan_bits()?) } else { None };
        if !self.is(":") {
            let examples = "`const 0 : i32`, `const 0.0 : f32`, `const true : bool`";
            return self.expected("`:` and the type of the constant").or_else(|f| self.add_help(f, examples));
        }
        let types = self.types()?;
        let [Typed { ty: Ty::Scalar(elem), place: Place::None }] = types[..] else {
            return self.fail(at, "a constant is a scalar");
        };
        let constant = match bits {
            Some(bits) => Some(Const::Float(elem, f64::from_bits(bits))).filter(|_| elem.is_float() && !negative),
            None => literal_of(literal.tok, negative, elem),
        };
        let Some(constant) = constant else {
            let wanted = if elem.is_float() {
                "`1.0`, `-2.5e-3`, `inf`, `nan` or `nan(0x7ff8000000000001)`"
            } else if elem == Elem::Bool {
                "`true` or `false`"
            } else {
                "an integer of 64 bits"
            };
            let error = Diagnostic::new(Code::Text, at, format!("not a constant of type `{elem}`"));
            return self.error(error.help(format!("write {wanted}")));
        };
        let kind = OpKind::Const(constant);
        let tail = self.tail(left)?;
        let op = tail.op(kind, vec![], vec![]);
        self.finish(body, left, op, &types)
    }

    /// `0x7ff8000000000001)`
    fn nan_bits(&mut self) -> Parse<u64> {
        let Tok::Number(n) = self.next.tok else { return self.expected("the bits of a NaN") };
        let at = self.bump().at;
        self.expect(")")?;
        let bits = n.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match bits.filter(|b| f64::from_bits(*b).is_nan()) {
            Some(bits) => Ok(bits),
            None => self.fail(at, format!("`{n}` are not the 64 bits of a NaN")),
        }
    }
}

/// The constant of a type that a literal denotes.
fn literal_of(literal: Tok<'_>, negative: bool, elem: Elem) -> Option<Const> {
    let float = |v: f64| elem.is_float().then_some(Const::Float(elem, v));
    match literal {
        Tok::Number(n) => number(n, negative, elem),
        Tok::Word("inf") => float(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
        Tok::Word("nan") if !negative => float(f64::NAN),
        Tok::Word(word @ ("true" | "false")) if !negative && elem == Elem::Bool => {
            Some(Const::Int(elem, i64::from(word == "true")))
        }
        Tok::Word(_) | Tok::Value(_) | Tok::Text(_) | Tok::Sign(_) | Tok::Bad(_) | Tok::End => None,
    }
}

/// A literal of digits.
fn number(digits: &str, negative: bool, elem: Elem) -> Option<Const> {
    let sign = if negative { "-" } else { "" };
    if !digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    if elem.is_float() {
        return format!("{sign}{digits}").parse().ok().filter(|v: &f64| v.is_finite()).map(|v| Const::Float(elem, v));
    }
    let value: i128 = format!("{sign}{digits}").parse().ok()?;
    let as_signed = i64::try_from(value).ok();
    let bits =
        if elem == Elem::U64 { as_signed.or(u64::try_from(value).ok().map(u64::cast_signed)) } else { as_signed };
    bits.map(|v| Const::Int(elem, v))
}
