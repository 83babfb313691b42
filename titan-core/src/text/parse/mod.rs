//! The parser: recursive descent with one token of lookahead; errors are collected for each statement.
//!
//! An operation ends with its line; a list continues after a comma, and inside of brackets. After an error the rest of the statement is
//! skipped, with its block if it has one, and the values that it defines are *poisoned*: errors in uses of them are not reported.

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
use crate::collections::SortedMap;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Block, Kernel, Loc, Typed, Value};

/// The maximum nesting depth of blocks and host expressions; greater than the verifier allows, so that every verified kernel can be parsed.
pub const MAX_DEPTH: usize = 136;

/// The number of errors after which the parser stops.
const MAX_ERRORS: usize = 64;

/// A kernel with its positions in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The positions of the kernel and its operations.
    pub at: Positions,
    /// The kernel.
    pub kernel: Kernel,
}

/// Where the locations of a kernel's operations are in the text. An operation may state its location in the source from which the kernel was
/// made, `@3:14`; the location of any other is its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Positions {
    /// The position of the word `kernel`.
    pub start: TextPos,
    /// For each stated location the position of the first operation that states it.
    stated: SortedMap<Loc, TextPos>,
}

impl Positions {
    /// The position of the operation at a location; that of the kernel if it is unknown.
    #[must_use]
    pub fn of(&self, loc: Loc) -> TextPos {
        let Loc { line, column } = loc;
        let stated = self.stated.get(&loc).copied();
        stated.unwrap_or(if line == 0 { self.start } else { TextPos { line, column } })
    }

    /// The location itself, if operations state it: its line counts from the first line of the kernel in its source.
    #[must_use]
    pub fn source(&self, loc: Loc) -> Option<Loc> {
        self.stated.contains_key(&loc).then_some(loc)
    }
}

/// The kernels of a text.
///
/// # Errors
/// All errors of the text (T0805), invalid types (T02xx, T0801), and stated types that differ from the inferred ones (T0804), in the order
/// of the text.
pub fn parse(text: &str) -> Result<Vec<Kernel>, Vec<Diagnostic<TextPos>>> {
    run(text, false).map(|kernels| kernels.into_iter().map(|k| k.kernel).collect())
}

/// The only kernel of a text.
///
/// # Errors
/// The errors of [`parse`]; also if there is no kernel, or more than one.
pub fn parse_one(text: &str) -> Result<Kernel, Vec<Diagnostic<TextPos>>> {
    let mut kernels = run(text, false)?.into_iter();
    match (kernels.next(), kernels.next()) {
        (Some(one), None) => Ok(one.kernel),
        (None, _) => Err(vec![Diagnostic::new(Code::Text, position(text, 0), "there is no kernel in this text")]),
        (Some(_), Some(second)) => {
            Err(vec![Diagnostic::new(Code::Text, second.at.start, "a second kernel, where one is wanted")])
        }
    }
}

/// The kernels of a text, in which every operation without a stated location has its position in the text as location; [`Positions`] has those
/// of the others.
///
/// # Errors
/// The errors of [`parse`].
pub fn parse_located(text: &str) -> Result<Vec<Located>, Vec<Diagnostic<TextPos>>> {
    run(text, true)
}

fn run(text: &str, located: bool) -> Result<Vec<Located>, Vec<Diagnostic<TextPos>>> {
    let mut lexer = Lexer::new(text);
    let next = lexer.token();
    let mut parser =
        Parser { text, lexer, next, ended: 0, located: located.then_some(Found::START), errors: Vec::new() };
    let mut kernels = Vec::new();
    while parser.next.tok != Tok::End && parser.errors.len() < MAX_ERRORS {
        let at = parser.next.at;
        let kernel = parser.kernel();
        let found = parser.located.as_mut().map(Found::end_of_kernel).unwrap_or_default();
        if let Ok(kernel) = kernel {
            kernels.push((at, kernel, found));
        }
    }
    if parser.errors.is_empty() {
        let located = |(at, kernel, (stated, own)): (usize, Kernel, (_, Vec<Loc>))| {
            let start = position(text, at);
            Located { at: Positions { start, stated: unambiguous(stated, &own, start) }, kernel }
        };
        return Ok(kernels.into_iter().map(located).collect());
    }
    Err(parser.errors.into_iter().map(|e| e.map_site(|at| position(text, at))).collect())
}

/// The positions of stated locations. One that is also the position of an operation which states none is shown at the start of the kernel,
/// since it is not known which of the two is meant.
fn unambiguous(stated: Vec<(Loc, TextPos)>, own: &[Loc], start: TextPos) -> SortedMap<Loc, TextPos> {
    let mut all = SortedMap::new();
    for (loc, at) in stated {
        all.entry(loc).or_insert(if own.contains(&loc) { start } else { at });
    }
    all
}

/// The line and column of a byte.
fn position(text: &str, at: usize) -> TextPos {
    let mut cursor = Cursor::START;
    cursor.advance(text, at);
    cursor.pos
}

/// A byte with its line and column.
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

/// The locations of a kernel's operations that were parsed so far.
#[derive(Debug)]
struct Found {
    /// The position up to which lines have been counted.
    cursor: Cursor,
    /// Stated locations with the positions of their operations.
    stated: Vec<(Loc, TextPos)>,
    /// The positions of operations that state no location.
    own: Vec<Loc>,
}

impl Found {
    const START: Found = Found { cursor: Cursor::START, stated: Vec::new(), own: Vec::new() };

    fn end_of_kernel(&mut self) -> (Vec<(Loc, TextPos)>, Vec<Loc>) {
        (std::mem::take(&mut self.stated), std::mem::take(&mut self.own))
    }
}

/// The error that an error has been recorded.
#[derive(Debug)]
struct Failed;

type Parse<T> = Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Token<'a>,
    /// The end of the last token.
    ended: usize,
    /// If operations get their positions in the text as locations: what was found so far.
    located: Option<Found>,
    errors: Vec<Diagnostic<usize>>,
}

/// A value's name in the text.
#[derive(Clone, Copy, Debug)]
struct Name<'a> {
    text: &'a str,
    at: usize,
}

/// The state of the kernel that is being parsed.
struct Body<'a> {
    kernel: Kernel,
    /// The values by name, `None` if they are poisoned, each with the position of its definition.
    values: SortedMap<&'a str, (Option<Value>, usize)>,
    /// The open blocks, the outermost first.
    open: Vec<Block>,
    /// The open loops, the outermost first: for each, the types of the operands of its `break`, once known.
    loops: Vec<Option<Vec<Typed>>>,
}

impl<'a> Parser<'a> {
    fn error<T>(&mut self, error: Diagnostic<usize>) -> Parse<T> {
        self.report(error);
        Err(Failed)
    }

    /// At the end of the text, every enclosing block would report the same error.
    fn report(&mut self, error: Diagnostic<usize>) {
        let again = self.errors.last().is_some_and(|last| last.site == error.site && last.title == error.title);
        if !again {
            self.errors.push(error);
        }
    }

    fn fail<T>(&mut self, at: usize, message: impl Into<String>) -> Parse<T> {
        self.error(Diagnostic::new(Code::Text, at, message))
    }

    /// The error that the next token is not the required one. If it is on another line, the error is on the line that ended too early.
    fn expected<T>(&mut self, what: &str) -> Parse<T> {
        if self.next.fresh && self.next.tok != Tok::End && self.ended > 0 {
            return self.fail(self.ended, format!("expected {what}, found the end of the line"));
        }
        let error = self.unexpected(what);
        self.error(error)
    }

    /// The error that the next token is not one of those that are allowed.
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

    /// A decimal integer, which may be negative.
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

    /// Parses `item, item, …` and the sign `close`; a comma may follow the last item.
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
