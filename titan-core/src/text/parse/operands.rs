//! Parses operands, and the integers in angle brackets before them.

use super::{Body, Parse, Parser};
use crate::diag::{Code, Diagnostic};
use crate::ir::Value;
use crate::ir::op_table::syntax::{Form, Named};
use crate::text::lex::Tok;
use crate::text::suggest::closest;

/// The operands, as they are written.
#[derive(Default)]
pub(super) struct Operands {
    /// The values; `None` if poisoned.
    pub(super) values: Vec<Option<Value>>,
    /// The number of operands in brackets, from the second on; `None` if there are no brackets.
    indexed: Option<usize>,
    /// Whether the last operand follows `or`.
    padded: bool,
    /// The string, and the number of operands before it.
    pub(super) text: Option<(String, usize)>,
}

impl Operands {
    /// Whether they have the arrangement that the operation requires.
    pub(super) fn fits(&self, form: Form) -> bool {
        let n = self.values.len();
        match form {
            Form::Plain => self.indexed.is_none() && !self.padded && self.text.is_none(),
            Form::At => self.indexed == Some(n.saturating_sub(1)) && !self.padded && self.text.is_none(),
            Form::AtOr => self.indexed == Some(n.saturating_sub(2)) && self.padded && self.text.is_none(),
            Form::AtValue => self.indexed == Some(n.saturating_sub(2)) && n >= 2 && !self.padded && self.text.is_none(),
            Form::AtMany => self.indexed.is_some() && !self.padded && self.text.is_none(),
            Form::TextFirst => {
                self.indexed.is_none() && !self.padded && self.text.as_ref().is_some_and(|(_, i)| *i == 0)
            }
            Form::TextLast => {
                self.indexed.is_none() && !self.padded && self.text.as_ref().is_some_and(|(_, i)| *i == n)
            }
        }
    }
}

impl<'a> Parser<'a> {
    /// Parses a value that is used; `None` if it is poisoned.
    pub(super) fn operand(&mut self, body: &mut Body<'a>) -> Parse<Option<Value>> {
        let name = self.value("a value")?;
        if let Some((value, _)) = body.values.get(name.text) {
            return Ok(*value);
        }
        let mut error = Diagnostic::new(Code::Text, name.at, format!("`{}` is not defined above", name.text));
        if let Some(near) = closest(name.text, body.values.keys().copied()) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        self.report(error);
        body.values.insert(name.text, (None, name.at));
        Ok(None)
    }

    /// `<1, 64>` after a mnemonic.
    pub(super) fn attributes(&mut self) -> Parse<Vec<i64>> {
        if self.eat("<") { self.list(">", |p| p.int("an integer")) } else { Ok(Vec::new()) }
    }

    /// `{ proxy = generic, bytes = 4096 }` after the operands.
    pub(super) fn named(&mut self) -> Parse<Vec<(String, Named)>> {
        if self.next.fresh || !self.eat("{") {
            return Ok(Vec::new());
        }
        self.list("}", |p| {
            let name = p.name("the name of an attribute")?;
            p.expect("=")?;
            let value = match p.next.tok {
                Tok::Word(_) | Tok::Text(_) => Named::Word(p.name("a word")?),
                Tok::Value(_) | Tok::Number(_) | Tok::Sign(_) | Tok::Bad(_) | Tok::End => {
                    Named::Int(p.int("an integer")?)
                }
            };
            Ok((name, value))
        })
    }

    pub(super) fn operands(&mut self, body: &mut Body<'a>) -> Parse<Operands> {
        let mut operands = Operands::default();
        let mut more = !self.next.fresh && matches!(self.next.tok, Tok::Value(_) | Tok::Text(_) | Tok::Bad(_));
        while more {
            if let (Tok::Text(_), None) = (self.next.tok, &operands.text) {
                operands.text = Some((self.string("a text")?, operands.values.len()));
            } else {
                operands.values.push(self.operand(body)?);
                if operands.values.len() == 1 && self.eat("[") {
                    let indices = self.list("]", |p| p.operand(body))?;
                    operands.indexed = Some(indices.len());
                    operands.values.extend(indices);
                }
            }
            more = self.eat(",");
        }
        if self.eat_word("or") {
            operands.values.push(self.operand(body)?);
            operands.padded = true;
        }
        Ok(operands)
    }
}
