//! Constant expressions: integers with C's operators.
//!
//! PTX computes them in 64 bits, signed or unsigned by its rules; here 128 bits hold either, and the instruction takes
//! the bits that it needs. Absent: floating-point expressions, casts, and comparisons, which no compiler emits.
//! Source: PTX ISA, "Constant Expressions".

use super::Parser;
use crate::emu::error::EmuError;
use crate::emu::lex::Tok;

/// The binary operators with their precedence.
const OPERATORS: &[(&str, u32)] =
    &[("|", 1), ("^", 2), ("&", 3), ("<<", 4), (">>", 4), ("+", 5), ("-", 5), ("*", 6), ("/", 6), ("%", 6)];

impl Parser<'_> {
    /// Parses and evaluates a constant expression.
    pub(super) fn constant(&mut self) -> Result<i128, EmuError> {
        self.binary(1)
    }

    fn operator(&self) -> Option<(&'static str, u32)> {
        let (a, b) = (self.peek(), self.ahead(1));
        let adjacent = a.span.1 == b.span.0 && a.tok == b.tok;
        let text = match a.tok {
            Tok::Punct('<') if adjacent => "<<",
            Tok::Punct('>') if adjacent => ">>",
            Tok::Punct(_) => a.text,
            _ => return None,
        };
        OPERATORS.iter().find(|(op, _)| *op == text).copied()
    }

    fn binary(&mut self, least: u32) -> Result<i128, EmuError> {
        let mut left = self.unary()?;
        while let Some((op, tight)) = self.operator().filter(|(_, tight)| *tight >= least) {
            for _ in 0..op.len() {
                self.next();
            }
            let right = self.binary(tight + 1)?;
            let shift = || u32::try_from(right).ok().filter(|n| *n < 64);
            let value = match op {
                "|" => Some(left | right),
                "^" => Some(left ^ right),
                "&" => Some(left & right),
                "<<" => shift().map(|n| left << n),
                ">>" => shift().map(|n| left >> n),
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                "/" => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            let limit = 1_i128 << 100;
            left = value
                .filter(|v| (-limit..limit).contains(v))
                .ok_or_else(|| self.error("the constant expression has no value"))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i128, EmuError> {
        self.nested(Self::operand_of_expression)
    }

    fn operand_of_expression(&mut self) -> Result<i128, EmuError> {
        match self.peek().tok {
            Tok::Int(n) => {
                self.next();
                Ok(n.into())
            }
            Tok::Punct('-') => {
                self.next();
                Ok(-self.unary()?)
            }
            Tok::Punct('+') => {
                self.next();
                self.unary()
            }
            Tok::Punct('~') => {
                self.next();
                Ok(!self.unary()?)
            }
            Tok::Punct('!') => {
                self.next();
                Ok(i128::from(self.unary()? == 0))
            }
            Tok::Punct('(') => {
                self.next();
                let value = self.binary(1)?;
                self.expect(')')?;
                Ok(value)
            }
            Tok::Word if self.peek().text == "WARP_SZ" => {
                self.next();
                Ok(32)
            }
            _ => Err(self.expected("an integer constant")),
        }
    }
}
