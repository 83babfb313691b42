//! The parser: recursive descent over one token of lookahead, errors collected per statement.
//!
//! An operation ends with its line; a list goes on after a comma, and inside brackets. After an error the rest of the
//! statement is skipped, with its block if it has one, and the values it names are *poisoned*: what uses them is not
//! reported again.

mod constant;
mod expr;
mod op;
mod operands;
mod place;
mod region;
mod signature;
mod types;

use super::TextPos;
use super::lex::{Lexer, Tok, Token, unquote};
use crate::diag::{Code, Diagnostic};
use crate::ir::{Block, Kernel, Typed, Value};
use std::collections::BTreeMap;

/// How deep blocks may nest, and host expressions: deeper than the verifier allows, so that every verified kernel is read.
pub const MAX_DEPTH: usize = 136;

/// After this many errors the parser stops.
const MAX_ERRORS: usize = 64;

/// A kernel and the place of the word `kernel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Where it starts.
    pub at: TextPos,
    /// The kernel.
    pub kernel: Kernel,
}

/// The kernels of a text.
///
/// # Errors
/// Everything that is wrong with the text (T0805), types that cannot be (T02xx, T0801) and written types that are not the
/// ones that follow (T0804), in the order of the text.
pub fn parse(text: &str) -> Result<Vec<Kernel>, Vec<Diagnostic<TextPos>>> {
    run(text, false).map(|kernels| kernels.into_iter().map(|k| k.kernel).collect())
}

/// The one kernel of a text.
///
/// # Errors
/// As [`parse`]; also if there is no kernel or a second one.
pub fn parse_one(text: &str) -> Result<Kernel, Vec<Diagnostic<TextPos>>> {
    let mut kernels = run(text, false)?.into_iter();
    match (kernels.next(), kernels.next()) {
        (Some(one), None) => Ok(one.kernel),
        (None, _) => Err(vec![Diagnostic::new(Code::Text, position(text, 0), "there is no kernel in this text")]),
        (Some(_), Some(second)) => {
            Err(vec![Diagnostic::new(Code::Text, second.at, "a second kernel, where one is wanted")])
        }
    }
}

/// The kernels of a text, where every operation without a written place has its place in the text.
///
/// # Errors
/// As [`parse`].
pub fn parse_located(text: &str) -> Result<Vec<Located>, Vec<Diagnostic<TextPos>>> {
    run(text, true)
}

fn run(text: &str, located: bool) -> Result<Vec<Located>, Vec<Diagnostic<TextPos>>> {
    let mut lexer = Lexer::new(text);
    let next = lexer.token();
    let mut parser =
        Parser { text, lexer, next, ended: 0, located: located.then_some(Cursor::START), errors: Vec::new() };
    let mut kernels = Vec::new();
    while parser.next.tok != Tok::End && parser.errors.len() < MAX_ERRORS {
        let at = parser.next.at;
        if let Ok(kernel) = parser.kernel() {
            kernels.push((at, kernel));
        }
    }
    if parser.errors.is_empty() {
        return Ok(kernels.into_iter().map(|(at, kernel)| Located { at: position(text, at), kernel }).collect());
    }
    Err(parser.errors.into_iter().map(|e| e.map_site(|at| position(text, at))).collect())
}

/// The place of a byte.
fn position(text: &str, at: usize) -> TextPos {
    let mut cursor = Cursor::START;
    cursor.advance(text, at);
    cursor.pos
}

/// A byte and its place.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    at: usize,
    pos: TextPos,
}

impl Cursor {
    const START: Cursor = Cursor { at: 0, pos: TextPos { line: 1, column: 1 } };

    fn advance(&mut self, text: &str, to: usize) {
        for c in text.get(self.at..to).unwrap_or("").chars() {
            if c == '\n' {
                self.pos = TextPos { line: self.pos.line.saturating_add(1), column: 1 };
            } else {
                self.pos.column = self.pos.column.saturating_add(1);
            }
        }
        self.at = to;
    }
}

/// The error has been recorded.
#[derive(Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Token<'a>,
    /// Where the token before the next one ended.
    ended: usize,
    /// If operations get their places in the text: how far these have been counted.
    located: Option<Cursor>,
    errors: Vec<Diagnostic<usize>>,
}

/// A value's name in the text.
#[derive(Clone, Copy, Debug)]
struct Name<'a> {
    text: &'a str,
    at: usize,
}

/// What is known of the kernel that is being read.
struct Body<'a> {
    kernel: Kernel,
    /// `None` for poisoned values, and where each was defined.
    values: BTreeMap<&'a str, (Option<Value>, usize)>,
    /// Open blocks, outermost first.
    open: Vec<Block>,
    /// Open loops, outermost first: the types of the values that a `break` took out of it.
    loops: Vec<Option<Vec<Typed>>>,
}

impl<'a> Parser<'a> {
    fn error<T>(&mut self, error: Diagnostic<usize>) -> Parse<T> {
        self.report(error);
        Err(Failed)
    }

    /// Every enclosing block would find the same end of the text.
    fn report(&mut self, error: Diagnostic<usize>) {
        let again = self.errors.last().is_some_and(|last| last.site == error.site && last.title == error.title);
        if !again {
            self.errors.push(error);
        }
    }

    fn fail<T>(&mut self, at: usize, message: impl Into<String>) -> Parse<T> {
        self.error(Diagnostic::new(Code::Text, at, message))
    }

    /// The token that comes next is not what must come here; if it is on another line, that is the line that ended early.
    fn expected<T>(&mut self, what: &str) -> Parse<T> {
        if self.next.fresh && self.next.tok != Tok::End && self.ended > 0 {
            return self.fail(self.ended, format!("expected {what}, found the end of the line"));
        }
        let error = self.unexpected(what);
        self.error(error)
    }

    /// The token that comes next is not what may come here.
    fn unexpected(&self, what: &str) -> Diagnostic<usize> {
        let found = match self.next.tok {
            Tok::Bad(why) => return Diagnostic::new(Code::Text, self.next.at, why),
            Tok::Word(w) | Tok::Value(w) | Tok::Number(w) => format!("`{w}`"),
            Tok::Text(_) => "a string".to_owned(),
            Tok::Sign(s) => format!("`{s}`"),
            Tok::End => "the end of the text".to_owned(),
        };
        Diagnostic::new(Code::Text, self.next.at, format!("expected {what}, found {found}"))
    }

    fn add_help<T>(&mut self, failed: Failed, help: &str) -> Parse<T> {
        if let Some(last) = self.errors.last_mut() {
            last.help.push(help.to_owned());
        }
        Err(failed)
    }

    fn bump(&mut self) -> Token<'a> {
        self.ended = self.lexer.last_end;
        std::mem::replace(&mut self.next, self.lexer.token())
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.next.tok, Tok::Sign(s) if s == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Parse<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    fn is_word(&self, word: &str) -> bool {
        self.next.tok == Tok::Word(word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    /// A word, or any text in quotes.
    fn name(&mut self, what: &str) -> Parse<String> {
        match self.next.tok {
            Tok::Word(w) => {
                self.bump();
                Ok(w.to_owned())
            }
            Tok::Text(_) => self.string(what),
            Tok::Value(_) | Tok::Number(_) | Tok::Sign(_) | Tok::Bad(_) | Tok::End => self.expected(what),
        }
    }

    fn string(&mut self, what: &str) -> Parse<String> {
        let Tok::Text(raw) = self.next.tok else { return self.expected(what) };
        let at = self.bump().at;
        match unquote(raw) {
            Ok(s) => Ok(s),
            Err(offset) => {
                let error = Diagnostic::new(Code::Text, at + 1 + offset, "an escape that strings do not have");
                self.error(error.help(r#"strings have `\n`, `\t`, `\r`, `\"`, `\\` and `\u{7f}`"#))
            }
        }
    }

    fn value(&mut self, what: &str) -> Parse<Name<'a>> {
        let Tok::Value(text) = self.next.tok else { return self.expected(what) };
        Ok(Name { text, at: self.bump().at })
    }

    /// A decimal integer, perhaps negative.
    fn int<T: TryFrom<i128>>(&mut self, what: &str) -> Parse<T> {
        let at = self.next.at;
        let negative = self.eat("-");
        let Tok::Number(digits) = self.next.tok else { return self.expected(what) };
        self.bump();
        let parsed = if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse::<i128>().ok() } else { None };
        match parsed.map(|v| if negative { -v } else { v }).map(T::try_from) {
            Some(Ok(v)) => Ok(v),
            Some(Err(_)) => {
                self.fail(at, format!("{}{digits} is out of range for {what}", if negative { "-" } else { "" }))
            }
            None => self.fail(at, format!("expected {what}, found `{digits}`")),
        }
    }

    /// `item, item, …` up to `close`, which is taken too; a comma may follow the last one.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
            if !self.eat(",") {
                if self.eat(close) {
                    break;
                }
                return self.expected(&format!("`,` or `{close}`"));
            }
        }
        Ok(items)
    }

    /// Skips to the end of the statement that starts at `start`, with its block if it has one.
    fn recover(&mut self, start: usize) {
        let mut depth = 0usize;
        while !(self.next.fresh && self.next.at != start && depth == 0) || self.is_word("else") {
            match self.next.tok {
                Tok::End => return,
                Tok::Sign("{") => depth += 1,
                Tok::Sign("}") if depth == 0 => return,
                Tok::Sign("}") => depth -= 1,
                Tok::Word("kernel") if self.next.fresh => return,
                Tok::Word(_) | Tok::Value(_) | Tok::Number(_) | Tok::Text(_) | Tok::Sign(_) | Tok::Bad(_) => {}
            }
            self.bump();
        }
    }
}
