//! Tokens of the text form.
//!
//! The lexer never fails: an invalid token becomes [`Tok::Bad`] with the reason, which the parser reports when it reaches the token.
//! Comments extend from `;` to the end of the line.

/// A token; the slices are parts of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok<'a> {
    /// A word: an identifier, a keyword, or several with dots between them.
    Word(&'a str),
    /// A value with its `%`, and with a suffix such as `.2` that distinguishes it from others with the same name.
    Value(&'a str),
    /// A token that starts with a digit: a number, or the extents and element type of a tile.
    Number(&'a str),
    /// The text between quotes, with escapes not yet decoded.
    Text(&'a str),
    /// Punctuation.
    Sign(&'static str),
    /// An invalid token, with the reason.
    Bad(&'static str),
    /// The end of the text.
    End,
}

/// A token with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) tok: Tok<'a>,
    /// The byte at which it starts.
    pub(super) at: usize,
    /// Whether it is the first token of its line.
    pub(super) fresh: bool,
}

/// All signs; a sign comes before its prefixes.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "(", ")", "[", "]", "{", "}", "<", ">", ",", "=", ":", "@", "!", "+", "-", "*",
    "/", "$", "|",
];

/// The lexer, which returns one token after another.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// The end of the last token, which is the position of errors at the end of the text.
    pub(super) last_end: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Lexer { text, at: 0, last_end: 0 }
    }

    /// The next token; at the end of the text `End`, repeatedly.
    pub(super) fn token(&mut self) -> Token<'a> {
        let mut fresh = self.at == 0;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'\n') => fresh = true,
                Some(b' ' | b'\t' | b'\r') => {}
                Some(b';') => {
                    self.run(|c| c != '\n');
                    continue;
                }
                Some(_) => break,
                None => return Token { tok: Tok::End, at: self.last_end, fresh: true },
            }
            self.at += 1;
        }
        let at = self.at;
        let tok = self.read();
        self.last_end = self.at;
        Token { tok, at, fresh }
    }

    fn read(&mut self) -> Tok<'a> {
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Tok::End };
        match first {
            '%' => self.value(),
            '"' => self.string(),
            '0'..='9' => self.number(),
            c if starts_word(c) => {
                self.run(in_word);
                while self.text[self.at..].strip_prefix('.').is_some_and(|rest| rest.starts_with(starts_word)) {
                    self.at += 1;
                    self.run(in_word);
                }
                Tok::Word(&self.text[start..self.at])
            }
            c => match SIGNS.iter().find(|s| rest.starts_with(**s)) {
                Some(sign) => {
                    self.at += sign.len();
                    Tok::Sign(sign)
                }
                None => {
                    self.at += c.len_utf8();
                    Tok::Bad("a character that tile IR does not use")
                }
            },
        }
    }

    /// `%name`, `%7`, `%"a name"`, each perhaps with `.2`; a lone `%` is the remainder sign.
    fn value(&mut self) -> Tok<'a> {
        let start = self.at;
        self.at += 1;
        match self.text[self.at..].chars().next() {
            Some('"') => {
                if let bad @ Tok::Bad(_) = self.string() {
                    return bad;
                }
            }
            Some(c) if in_word(c) => self.run(in_word),
            Some(_) | None => return Tok::Sign("%"),
        }
        let tail = &self.text.as_bytes()[self.at..];
        if tail.first() == Some(&b'.') && tail.get(1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.run(|c| c.is_ascii_digit());
        }
        Tok::Value(&self.text[start..self.at])
    }

    /// A string from quote to quote, on one line.
    fn string(&mut self) -> Tok<'a> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        self.at = start;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Tok::Text(&self.text[start..self.at - 1]);
                }
                Some(b'\\') if bytes.get(self.at + 1).is_some_and(|b| *b == b'"' || *b == b'\\') => self.at += 2,
                Some(b'\n') | None => return Tok::Bad("a string without its closing quote"),
                Some(_) => self.at += 1,
            }
        }
    }

    /// A number. Letters and dots belong to it (`0x1f`, `128x64xf16`, `1.5e9`), and so does the sign of an exponent.
    fn number(&mut self) -> Tok<'a> {
        let start = self.at;
        let mut decimal = true;
        let bytes = self.text.as_bytes();
        while let Some(b) = bytes.get(self.at) {
            match b {
                b'0'..=b'9' | b'.' | b'_' => {}
                b'e' | b'E' if decimal && matches!(bytes.get(self.at + 1), Some(b'+' | b'-')) => self.at += 1,
                b'a'..=b'z' | b'A'..=b'Z' => decimal = false,
                _ => break,
            }
            self.at += 1;
        }
        Tok::Number(&self.text[start..self.at])
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }
}

/// Whether a word may start with this character.
pub(super) fn starts_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Whether a word may contain this character.
pub(super) fn in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether the string is a single word, which needs no quotes.
pub(super) fn is_word(s: &str) -> bool {
    s.starts_with(starts_word) && s.chars().all(in_word)
}

/// Appends a string in quotes, with escapes, on one line.
pub(super) fn quote(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Decodes the text between quotes that [`quote`] wrote; the error is the position of an invalid escape, in bytes.
pub(super) fn unquote(raw: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.char_indices();
    while let Some((i, c)) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next().map(|(_, c)| c) {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(c @ ('"' | '\\')) => out.push(c),
            Some('u') => {
                let (code, len) = unicode(chars.as_str()).ok_or(i)?;
                out.push(code);
                chars.nth(len - 1);
            }
            Some(_) | None => return Err(i),
        }
    }
    Ok(out)
}

/// `{1f600}` at the start: the character and the length with braces, all of it ASCII.
fn unicode(rest: &str) -> Option<(char, usize)> {
    let (digits, _) =
        rest.strip_prefix('{')?.split_once('}').filter(|(d, _)| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    Some((char::from_u32(code)?, digits.len() + 2))
}
