//! Parses tokens to an [`Ast`]: the grammar of modules.
//!
//! Names are resolved here, by scope, and calls of functions are replaced by their code. Valid PTX that the emulator does not support is an
//! error at its line; sections of debug information, and directives without an effect on the meaning, are skipped.
//! Source: PTX ISA, "Directives".

mod body;
mod call;
mod declare;
mod expr;
mod operand;

use super::ast::{Ast, Entry, Name, Var};
use super::error::{EmuError, ErrorCode};
use super::lex::{Tok, Token, tokens};
use super::ty::Space;
use std::collections::BTreeMap;

/// Parses a module.
pub(crate) fn module(text: &str) -> Result<Ast, EmuError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        ast: Ast {
            text: text.into(),
            version: (0, 0),
            target: String::new(),
            files: BTreeMap::new(),
            vars: Vec::new(),
            entries: Vec::new(),
        },
        names: BTreeMap::new(),
        functions: BTreeMap::new(),
        depth: 0,
    };
    parser.module()?;
    parser.replace_calls()?;
    Ok(parser.ast)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    ast: Ast,
    /// The variables of the module, by name.
    names: BTreeMap<String, Name>,
    /// The functions, with the position of the first token after `.func`; `None` for one that is declared and not defined.
    functions: BTreeMap<String, Option<usize>>,
    /// The current nesting depth of braces and parentheses.
    depth: u32,
}

/// The largest nesting depth of braces and parentheses.
const DEEPEST: u32 = 64;

impl<'a> Parser<'a> {
    /// Parses a nested construct, unless it is nested too deeply.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, EmuError>) -> Result<T, EmuError> {
        if self.depth >= DEEPEST {
            return Err(self.error("nested too deep"));
        }
        self.depth += 1;
        let done = parse(self);
        self.depth -= 1;
        done
    }

    fn peek(&self) -> Token<'a> {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> Token<'a> {
        let end = Token { tok: Tok::End, text: "", line: 0, span: (0, 0) };
        self.tokens.get(self.at + n).or(self.tokens.last()).copied().unwrap_or(end)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    fn error(&self, message: impl Into<String>) -> EmuError {
        EmuError::at(ErrorCode::Syntax, self.peek().line, message)
    }

    fn expected(&self, what: &str) -> EmuError {
        let found = match self.peek().tok {
            Tok::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.peek().text),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    fn is(&self, c: char) -> bool {
        self.peek().tok == Tok::Punct(c)
    }

    fn accept(&mut self, c: char) -> bool {
        let is = self.is(c);
        if is {
            self.next();
        }
        is
    }

    fn expect(&mut self, c: char) -> Result<(), EmuError> {
        if self.accept(c) { Ok(()) } else { Err(self.expected(&format!("`{c}`"))) }
    }

    /// Takes the next word if it is this one.
    fn accept_word(&mut self, word: &str) -> bool {
        let is = self.peek().tok == Tok::Word && self.peek().text == word;
        if is {
            self.next();
        }
        is
    }

    fn word(&mut self, what: &str) -> Result<&'a str, EmuError> {
        if self.peek().tok == Tok::Word { Ok(self.next().text) } else { Err(self.expected(what)) }
    }

    fn int(&mut self) -> Result<u64, EmuError> {
        match self.peek().tok {
            Tok::Int(n) => {
                self.next();
                Ok(n)
            }
            _ => Err(self.expected("an integer")),
        }
    }

    fn small(&mut self) -> Result<u32, EmuError> {
        let line = self.peek().line;
        u32::try_from(self.int()?).map_err(|_| EmuError::at(ErrorCode::Syntax, line, "the number is too large"))
    }

    fn module(&mut self) -> Result<(), EmuError> {
        loop {
            let token = self.peek();
            match (token.tok, token.text) {
                (Tok::End, _) => return self.check_header(),
                (Tok::Word, ".version") => self.version()?,
                (Tok::Word, ".target") => {
                    self.next();
                    self.ast.target = self.word("a target")?.to_owned();
                    while self.accept(',') {
                        self.word("an option of the target")?;
                    }
                }
                (Tok::Word, ".address_size") => {
                    self.next();
                    if self.int()? != 64 {
                        return Err(EmuError::at(ErrorCode::Unknown, token.line, "only 64-bit addresses are emulated"));
                    }
                }
                (Tok::Word, ".file") => self.file()?,
                (Tok::Word, ".loc") => {
                    self.loc()?;
                }
                (Tok::Word, ".section") => self.section()?,
                (Tok::Word, ".pragma") => self.pragma()?,
                (Tok::Word, ".alias") => {
                    return Err(EmuError::at(ErrorCode::Unknown, token.line, "`.alias` is not emulated"));
                }
                (Tok::Word, _) => self.declaration()?,
                (Tok::Punct(';'), _) => {
                    self.next();
                }
                _ => return Err(self.expected("a directive")),
            }
        }
    }

    fn check_header(&self) -> Result<(), EmuError> {
        if self.ast.version == (0, 0) || self.ast.target.is_empty() {
            return Err(EmuError::at(ErrorCode::Syntax, 1, "a module begins with `.version` and `.target`"));
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(), EmuError> {
        self.next();
        let token = self.next();
        let parts = token.text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        self.ast.version =
            parts.ok_or_else(|| EmuError::at(ErrorCode::Syntax, token.line, "a version is two numbers with a dot"))?;
        Ok(())
    }

    fn file(&mut self) -> Result<(), EmuError> {
        self.next();
        let index = self.int()?;
        let token = self.next();
        if token.tok != Tok::Str {
            return Err(EmuError::at(ErrorCode::Syntax, token.line, "expected the name of a file, in quotes"));
        }
        self.ast.files.insert(index, token.text.to_owned());
        while self.accept(',') {
            self.int()?;
        }
        Ok(())
    }

    fn pragma(&mut self) -> Result<(), EmuError> {
        self.next();
        while !self.accept(';') {
            if self.next().tok == Tok::End {
                return Err(self.expected("`;`"));
            }
        }
        Ok(())
    }

    /// Skips a section of debug information.
    fn section(&mut self) -> Result<(), EmuError> {
        self.next();
        self.word("the name of a section")?;
        self.expect('{')?;
        let mut depth = 1;
        while depth > 0 {
            match self.next().tok {
                Tok::Punct('{') => depth += 1,
                Tok::Punct('}') => depth -= 1,
                Tok::End => return Err(self.expected("`}`")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Parses linkage, then a function or variables.
    fn declaration(&mut self) -> Result<(), EmuError> {
        let mut is_extern = false;
        loop {
            let token = self.peek();
            match token.text {
                ".visible" | ".weak" | ".common" => {
                    self.next();
                }
                ".extern" => {
                    is_extern = true;
                    self.next();
                }
                ".entry" => return self.entry(),
                ".func" => return self.func(),
                word => {
                    let space = word.strip_prefix('.').and_then(Space::named);
                    let Some(space) = space.filter(|s| *s != Space::Param) else {
                        let message = format!("`{word}` is no directive of a module that is emulated");
                        return Err(EmuError::at(ErrorCode::Unknown, token.line, message));
                    };
                    self.next();
                    for var in self.variables(space, is_extern)? {
                        self.define_global(var, token.line)?;
                    }
                    return Ok(());
                }
            }
        }
    }

    fn define_global(&mut self, var: Var, line: u32) -> Result<(), EmuError> {
        let name = Name::Global(self.ast.vars.len());
        if self.names.insert(var.name.clone(), name).is_some() {
            return Err(EmuError::at(ErrorCode::Symbol, line, format!("`{}` is declared twice", var.name)));
        }
        self.ast.vars.push(var);
        Ok(())
    }

    /// Records a function, and skips its body: it is parsed when a kernel calls it.
    fn func(&mut self) -> Result<(), EmuError> {
        self.next();
        let start = self.at;
        if self.is('(') {
            self.parentheses()?;
        }
        let name = self.word("the name of a function")?.to_owned();
        let defined = self.functions.entry(name).or_insert(None);
        let mut depth = 0;
        loop {
            match self.tokens.get(self.at).map_or(Tok::End, |token| token.tok) {
                Tok::Punct(';') if depth == 0 => {
                    self.at += 1;
                    return Ok(());
                }
                Tok::Punct('}') if depth == 1 => {
                    self.at += 1;
                    *defined = Some(start);
                    return Ok(());
                }
                Tok::Punct('{') => depth += 1,
                Tok::Punct('}') => depth -= 1,
                Tok::End => return Err(self.expected("the end of the function")),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn parentheses(&mut self) -> Result<(), EmuError> {
        while !self.accept(')') {
            if self.next().tok == Tok::End {
                return Err(self.expected("`)`"));
            }
        }
        Ok(())
    }

    fn push_entry(&mut self, entry: Entry, line: u32) -> Result<(), EmuError> {
        if self.ast.entries.iter().any(|e| e.name == entry.name) {
            return Err(EmuError::at(ErrorCode::Symbol, line, format!("kernel `{}` is declared twice", entry.name)));
        }
        self.ast.entries.push(entry);
        Ok(())
    }
}
