//! Splits PTX text into tokens.
//!
//! An opcode or a name is taken with its dots: `ld.global.L1::no_allocate.v4.b32` and `%tid.x` are one token each. A directive or type ends
//! before the next dot: `.reg.b32` is two tokens, as `.reg .b32` is.
//! Source: PTX ISA, "Syntax" (identifiers, integer, floating-point and predicate constants).

use super::error::{EmuError, ErrorCode};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tok {
    /// An identifier or opcode with all its dotted parts, or a directive.
    Word,
    /// A quoted string.
    Str,
    Int(u64),
    /// `0f` and eight hexadecimal digits.
    F32(u32),
    /// `0d` and sixteen hexadecimal digits, or a decimal constant.
    F64(u64),
    Punct(char),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) tok: Tok,
    /// The text of the token; for a string, the text between the quotes.
    pub(crate) text: &'a str,
    /// The line, from 1.
    pub(crate) line: u32,
    /// The first and the end position of the token in the text.
    pub(crate) span: (usize, usize),
}

pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, EmuError> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut all = Vec::new();
    loop {
        lexer.skip_blank()?;
        let token = lexer.token()?;
        all.push(token);
        if token.tok == Tok::End {
            return Ok(all);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

const fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&self, message: impl Into<String>) -> EmuError {
        EmuError::at(ErrorCode::Syntax, self.line, message)
    }

    fn skip_blank(&mut self) -> Result<(), EmuError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (b'/', b'/') => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                (b'/', b'*') => {
                    let rest = &self.text[self.at..];
                    let len = rest.find("*/").ok_or_else(|| self.error("the comment does not end"))? + 2;
                    self.line += u32::try_from(rest[..len].matches('\n').count()).unwrap_or(0);
                    self.at += len;
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token<'a>, EmuError> {
        let (start, line, c) = (self.at, self.line, self.peek(0));
        let next = self.peek(1);
        let done = |lexer: &Self, tok| Token { tok, text: &lexer.text[start..lexer.at], line, span: (start, lexer.at) };
        if start >= self.text.len() {
            return Ok(Token { tok: Tok::End, text: "", line, span: (start, start) });
        }
        let begins_word = c.is_ascii_alphabetic()
            || c == b'_'
            || c == b'$'
            || (c == b'%' && (next.is_ascii_alphabetic() || next == b'_' || next == b'$'))
            || (c == b'.' && (next.is_ascii_alphabetic() || next == b'_'));
        if begins_word {
            self.word(c != b'.');
            return Ok(done(self, Tok::Word));
        }
        if c.is_ascii_digit() || (c == b'.' && next.is_ascii_digit()) {
            let tok = self.number()?;
            return Ok(done(self, tok));
        }
        if c == b'"' {
            let rest = &self.text[start + 1..];
            let len = rest.find('"').ok_or_else(|| self.error("the string does not end"))?;
            self.at += len + 2;
            return Ok(Token { tok: Tok::Str, text: &rest[..len], line, span: (start, self.at) });
        }
        let c = self.text[start..].chars().next().unwrap_or('\0');
        if !",;:{}[]()<>+-*/%!@|=~&^?#".contains(c) {
            return Err(self.error(format!("`{c}` is no part of PTX")));
        }
        self.at += c.len_utf8();
        Ok(done(self, Tok::Punct(c)))
    }

    fn word(&mut self, has_dots: bool) {
        self.at += 1;
        loop {
            if is_word(self.peek(0)) {
                self.at += 1;
            } else if has_dots && self.peek(0) == b'.' && is_word(self.peek(1)) {
                self.at += 2;
            } else if self.peek(0) == b':' && self.peek(1) == b':' && is_word(self.peek(2)) {
                self.at += 3;
            } else {
                return;
            }
        }
    }

    fn digits(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while accept(self.peek(0)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn integer(&mut self, radix: u32, accept: impl Fn(u8) -> bool) -> Result<Tok, EmuError> {
        let digits = self.digits(accept);
        let value = u64::from_str_radix(digits, radix);
        let value = value.map_err(|_| self.error(format!("`{digits}` is no integer of 64 bits")))?;
        if self.peek(0) == b'U' {
            self.at += 1;
        }
        Ok(Tok::Int(value))
    }

    fn number(&mut self) -> Result<Tok, EmuError> {
        match (self.peek(0), self.peek(1)) {
            (b'0', b'f' | b'F' | b'd' | b'D') => {
                let wide = self.peek(1).eq_ignore_ascii_case(&b'd');
                self.at += 2;
                let digits = self.digits(|c| c.is_ascii_hexdigit());
                let want = if wide { 16 } else { 8 };
                let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == want);
                let bits = bits.ok_or_else(|| self.error(format!("the constant needs {want} hexadecimal digits")))?;
                Ok(if wide { Tok::F64(bits) } else { Tok::F32(u32::try_from(bits).unwrap_or(0)) })
            }
            (b'0', b'x' | b'X') => {
                self.at += 2;
                self.integer(16, |c| c.is_ascii_hexdigit())
            }
            (b'0', b'b' | b'B') => {
                self.at += 2;
                self.integer(2, |c| c == b'0' || c == b'1')
            }
            _ => self.decimal(),
        }
    }

    fn decimal(&mut self) -> Result<Tok, EmuError> {
        let start = self.at;
        self.digits(|c| c.is_ascii_digit());
        let mut float = false;
        if self.peek(0) == b'.' {
            float = true;
            self.at += 1;
            self.digits(|c| c.is_ascii_digit());
        }
        let exponent = matches!(self.peek(0), b'e' | b'E')
            && (self.peek(1).is_ascii_digit()
                || (matches!(self.peek(1), b'+' | b'-') && self.peek(2).is_ascii_digit()));
        if exponent {
            float = true;
            self.at += 2;
            self.digits(|c| c.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        if float {
            let value: f64 = text.parse().map_err(|_| self.error(format!("`{text}` is no number")))?;
            return Ok(Tok::F64(value.to_bits()));
        }
        self.at = start;
        let octal = text.len() > 1 && text.starts_with('0');
        self.integer(if octal { 8 } else { 10 }, |c| c.is_ascii_digit())
    }
}
