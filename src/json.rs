//! A reader of JSON, for formats whose members are known, and its strings. Deliberately absent: values as a tree; what is not needed is skipped.
//!
//! A text that is not JSON is an error, as a clause that says what is expected at which byte.

use std::fmt::Write as _;

/// Nested deeper than this is none of the formats here.
const DEPTH: usize = 32;

/// What a reader returns.
pub(crate) type Read<T> = Result<T, String>;

/// A reader of JSON.
pub(crate) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Reader { text, at: 0 }
    }

    pub(crate) fn expected<T>(&self, what: &str) -> Read<T> {
        Err(format!("{what} is expected at byte {}", self.at))
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Whether the next byte is this one; then it is taken.
    fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take(&mut self, byte: u8) -> Read<()> {
        if self.takes(byte) { Ok(()) } else { self.expected(&format!("`{}`", char::from(byte))) }
    }

    /// An object: calls `member` at the value of each key.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, String) -> Read<()>) -> Read<()> {
        self.take(b'{')?;
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.take(b':')?;
            member(self, key)?;
            if !self.takes(b',') {
                return self.take(b'}');
            }
        }
    }

    /// An array: calls `element` at each element.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.take(b'[')?;
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.takes(b',') {
                return self.take(b']');
            }
        }
    }

    pub(crate) fn numbers(&mut self) -> Read<Vec<usize>> {
        let mut numbers = Vec::new();
        self.array(|reader| {
            numbers.push(reader.number()?);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// The end of the text, before which there are spaces at most.
    pub(crate) fn end_of(&mut self, what: &str) -> Read<()> {
        self.space();
        if self.at < self.text.len() { self.expected(what) } else { Ok(()) }
    }

    /// A number, with a fraction or an exponent if it has one.
    pub(crate) fn float(&mut self) -> Read<f64> {
        self.space();
        let is_part = |b: &&u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
        let digits = self.text[self.at..].iter().take_while(is_part).count();
        let text = std::str::from_utf8(&self.text[self.at..][..digits]).unwrap_or_default();
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
        let Some(number) = number else { return self.expected("a number") };
        self.at += digits;
        Ok(number)
    }

    /// A number that is an extent or a position.
    pub(crate) fn number(&mut self) -> Read<usize> {
        self.space();
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.text[self.at..][..digits]).unwrap_or_default();
        let Ok(number) = text.parse() else { return self.expected("a whole number of at most 64 bits") };
        self.at += digits;
        Ok(number)
    }

    pub(crate) fn string(&mut self) -> Read<String> {
        self.take(b'"')?;
        let mut out = Vec::new();
        loop {
            let Some(byte) = self.text.get(self.at).copied() else { return self.expected("`\"`") };
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let mut utf8 = [0; 4];
                    out.extend_from_slice(self.escape()?.encode_utf8(&mut utf8).as_bytes());
                }
                0..0x20 => {
                    self.at -= 1;
                    return self.expected("a character of a string");
                }
                _ => out.push(byte),
            }
        }
        String::from_utf8(out).or_else(|_| self.expected("UTF-8 before this"))
    }

    /// The character that follows a backslash.
    fn escape(&mut self) -> Read<char> {
        let byte = self.text.get(self.at).copied();
        self.at += 1;
        Ok(match byte {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= 1;
                return self.expected("an escape sequence");
            }
        })
    }

    /// The character of `\uXXXX`, or of two of them.
    fn unicode(&mut self) -> Read<char> {
        let first = self.hex()?;
        let is_high = (0xD800..0xDC00).contains(&first);
        if !is_high {
            return char::from_u32(first).map_or_else(|| self.expected("a character before this"), Ok);
        }
        if self.text[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.hex()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return char::from_u32(code).map_or_else(|| self.expected("a character before this"), Ok);
            }
        }
        self.expected("the second half of a character before this")
    }

    fn hex(&mut self) -> Read<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let text = digits.and_then(|d| std::str::from_utf8(d).ok());
        let Some(code) = text.and_then(|t| u32::from_str_radix(t, 16).ok()) else {
            return self.expected("four hexadecimal digits");
        };
        self.at += 4;
        Ok(code)
    }

    /// Any value.
    pub(crate) fn skip(&mut self, depth: usize) -> Read<()> {
        if depth > DEPTH {
            return self.expected("a value that is nested less deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(|reader, _| reader.skip(depth + 1)),
            Some(b'[') => self.array(|reader| reader.skip(depth + 1)),
            Some(b'"') => self.string().map(drop),
            Some(_) | None => {
                let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
                let length = self.text[self.at..].iter().take_while(is_part).count();
                self.at += length;
                if length == 0 { self.expected("a value") } else { Ok(()) }
            }
        }
    }
}

/// A text as a string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..'\u{20}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}
