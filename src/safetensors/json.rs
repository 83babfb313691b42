//! The header of a safetensors file: the subset of JSON that it consists of. Deliberately absent: values as a tree; what is not needed is
//! skipped.

use super::{Info, malformed};
use crate::Result;

/// Nested deeper than this is no header, whose values are at most three levels deep.
const DEPTH: usize = 32;

/// A reader of JSON.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Reader { text, at: 0 }
    }

    /// The tensors of a header, in its order; data about the file itself is skipped.
    pub(super) fn header(&mut self) -> Result<Vec<Info>> {
        let mut tensors = Vec::new();
        self.object(|reader, name| {
            if name == "__metadata__" {
                return reader.skip(0);
            }
            tensors.push(reader.tensor(name)?);
            Ok(())
        })?;
        self.space();
        if self.at < self.text.len() { self.expected("the end of the header") } else { Ok(tensors) }
    }

    fn tensor(&mut self, name: String) -> Result<Info> {
        let (mut dtype, mut shape, mut bytes) = (None, None, None);
        self.object(|reader, key| {
            match key.as_str() {
                "dtype" => dtype = Some(reader.string()?),
                "shape" => shape = Some(reader.numbers()?),
                "data_offsets" => bytes = Some(reader.numbers()?),
                _ => reader.skip(0)?,
            }
            Ok(())
        })?;
        let (Some(dtype), Some(shape), Some(bytes)) = (dtype, shape, bytes) else {
            let problem = format!("tensor `{name}` lacks one of `dtype`, `shape` and `data_offsets`");
            return Err(malformed(problem));
        };
        let [first, end] = bytes[..] else {
            let problem = format!("`data_offsets` of tensor `{name}` are {} numbers instead of 2", bytes.len());
            return Err(malformed(problem));
        };
        Ok(Info { name, dtype, shape, bytes: (first, end) })
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        Err(malformed(format!("its header is not JSON of the format: {what} is expected at byte {}", self.at)))
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

    fn take(&mut self, byte: u8) -> Result<()> {
        if self.takes(byte) { Ok(()) } else { self.expected(&format!("`{}`", char::from(byte))) }
    }

    /// An object: calls `member` at the value of each key.
    fn object(&mut self, mut member: impl FnMut(&mut Self, String) -> Result<()>) -> Result<()> {
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
    fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
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

    fn numbers(&mut self) -> Result<Vec<usize>> {
        let mut numbers = Vec::new();
        self.array(|reader| {
            numbers.push(reader.number()?);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// A number that is an extent or a position.
    fn number(&mut self) -> Result<usize> {
        self.space();
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.text[self.at..][..digits]).unwrap_or_default();
        let Ok(number) = text.parse() else { return self.expected("a whole number of at most 64 bits") };
        self.at += digits;
        Ok(number)
    }

    fn string(&mut self) -> Result<String> {
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
    fn escape(&mut self) -> Result<char> {
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
    fn unicode(&mut self) -> Result<char> {
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

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let text = digits.and_then(|d| std::str::from_utf8(d).ok());
        let Some(code) = text.and_then(|t| u32::from_str_radix(t, 16).ok()) else {
            return self.expected("four hexadecimal digits");
        };
        self.at += 4;
        Ok(code)
    }

    /// Any value.
    fn skip(&mut self, depth: usize) -> Result<()> {
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
