//! MessagePack, as far as metadata use it: a writer of the shortest encodings, and a reader that checks everything.
//!
//! Source: the MessagePack specification, "Formats". Deliberately absent: extension types and timestamps.

use super::error::ObjectError;

/// The largest nesting depth of arrays and maps.
const DEPTH: u32 = 32;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value nil.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer that fits only `u64`.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Str(String),
    /// A sequence of bytes.
    Bin(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// Pairs, in the order of the file.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// A text value.
    #[must_use]
    pub fn text(text: &str) -> Value {
        Value::Str(text.to_owned())
    }

    /// The value for a key of a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(pairs) = self else { return None };
        pairs.iter().find(|(k, _)| matches!(k, Value::Str(s) if s == key)).map(|(_, v)| v)
    }

    /// The text, if the value is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Str(text) = self { Some(text) } else { None }
    }

    /// The number, if the value is a non-negative integer.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(v) => u64::try_from(*v).ok(),
            Value::Uint(v) => Some(*v),
            Value::Nil
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Bin(_)
            | Value::Array(_)
            | Value::Map(_) => None,
        }
    }

    /// The elements, if the value is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(values) = self { Some(values) } else { None }
    }

    /// Encodes the value.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "each branch checks what fits")]
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.push(0xC0),
            Value::Bool(v) => out.push(0xC2 + u8::from(*v)),
            Value::Int(v @ 0..) => unsigned(out, *v as u64),
            Value::Int(v @ -32..0) => out.push(*v as u8),
            Value::Int(v) => {
                out.push(0xD3);
                out.extend(v.to_be_bytes());
            }
            Value::Uint(v) => unsigned(out, *v),
            Value::Float(v) => {
                out.push(0xCB);
                out.extend(v.to_be_bytes());
            }
            Value::Str(text) => {
                length(out, text.len(), (0xA0, 32), [Some(0xD9), Some(0xDA), Some(0xDB)]);
                out.extend(text.as_bytes());
            }
            Value::Bin(bytes) => {
                length(out, bytes.len(), (0, 0), [Some(0xC4), Some(0xC5), Some(0xC6)]);
                out.extend(bytes);
            }
            Value::Array(values) => {
                length(out, values.len(), (0x90, 16), [None, Some(0xDC), Some(0xDD)]);
                values.iter().for_each(|v| v.write(out));
            }
            Value::Map(pairs) => {
                length(out, pairs.len(), (0x80, 16), [None, Some(0xDE), Some(0xDF)]);
                for (key, value) in pairs {
                    key.write(out);
                    value.write(out);
                }
            }
        }
    }

    /// Decodes one value, which must extend to the end of the bytes.
    ///
    /// # Errors
    /// [`ObjectError::Metadata`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Value, ObjectError> {
        let mut reader = Reader { bytes };
        let value = reader.value(0)?;
        if reader.bytes.is_empty() { Ok(value) } else { wrong("bytes follow the last value") }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each branch checks what fits")]
fn unsigned(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x80 => out.push(value as u8),
        0x80..0x100 => out.extend([0xCC, value as u8]),
        0x100..0x1_0000 => {
            out.push(0xCD);
            out.extend((value as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xCE);
            out.extend((value as u32).to_be_bytes());
        }
        _ => {
            out.push(0xCF);
            out.extend(value.to_be_bytes());
        }
    }
}

/// Writes a length: in the first byte if it is less than `short.1`, or with the codes for 8, 16 and 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "each branch checks what fits; metadata are below 4 GiB")]
fn length(out: &mut Vec<u8>, len: usize, short: (u8, usize), codes: [Option<u8>; 3]) {
    match (len, codes) {
        (len, _) if len < short.1 => out.push(short.0 | len as u8),
        (0..0x100, [Some(code), ..]) => out.extend([code, len as u8]),
        (0..0x1_0000, [_, Some(code), _]) => {
            out.push(code);
            out.extend((len as u16).to_be_bytes());
        }
        (_, [.., code]) => {
            out.extend(code);
            out.extend((len as u32).to_be_bytes());
        }
    }
}

fn wrong<T>(why: &str) -> Result<T, ObjectError> {
    Err(ObjectError::Metadata { why: why.to_owned() })
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], ObjectError> {
        match self.bytes.split_at_checked(n) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => wrong("they are cut off"),
        }
    }

    fn unsigned(&mut self, n: usize) -> Result<u64, ObjectError> {
        Ok(self.take(n)?.iter().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    fn len(&mut self, n: usize) -> Result<usize, ObjectError> {
        usize::try_from(self.unsigned(n)?).or_else(|_| wrong("a length is too large"))
    }

    #[expect(clippy::cast_possible_wrap, clippy::cast_possible_truncation, reason = "two's complement is the format")]
    fn value(&mut self, depth: u32) -> Result<Value, ObjectError> {
        if depth > DEPTH {
            return wrong("they are nested too deeply");
        }
        let [code] = self.take(1)? else { return wrong("they are cut off") };
        let code = *code;
        let low = |mask: u8| usize::from(code & mask);
        Ok(match code {
            0x00..=0x7F => Value::Int(code.into()),
            0x80..=0x8F => self.map(low(15), depth)?,
            0x90..=0x9F => self.array(low(15), depth)?,
            0xA0..=0xBF => self.text(low(31))?,
            0xC0 => Value::Nil,
            0xC2 | 0xC3 => Value::Bool(code == 0xC3),
            0xC4..=0xC6 => {
                let len = self.len(1 << (code - 0xC4))?;
                Value::Bin(self.take(len)?.to_vec())
            }
            0xCA => Value::Float(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xCB => Value::Float(f64::from_bits(self.unsigned(8)?)),
            0xCC..=0xCF => {
                let value = self.unsigned(1 << (code - 0xCC))?;
                i64::try_from(value).map_or(Value::Uint(value), Value::Int)
            }
            0xD0 => Value::Int((self.unsigned(1)? as i8).into()),
            0xD1 => Value::Int((self.unsigned(2)? as i16).into()),
            0xD2 => Value::Int((self.unsigned(4)? as i32).into()),
            0xD3 => Value::Int(self.unsigned(8)? as i64),
            0xD9..=0xDB => {
                let len = self.len(1 << (code - 0xD9))?;
                self.text(len)?
            }
            0xDC | 0xDD => {
                let len = self.len(2 << (code - 0xDC))?;
                self.array(len, depth)?
            }
            0xDE | 0xDF => {
                let len = self.len(2 << (code - 0xDE))?;
                self.map(len, depth)?
            }
            0xE0..=0xFF => Value::Int((code as i8).into()),
            0xC1 | 0xC7..=0xC9 | 0xD4..=0xD8 => return wrong("a value is of a kind that metadata do not have"),
        })
    }

    fn text(&mut self, len: usize) -> Result<Value, ObjectError> {
        match std::str::from_utf8(self.take(len)?) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => wrong("a text is not UTF-8"),
        }
    }

    /// Checks a count against the number of remaining bytes, since each value takes at least one.
    fn count(&self, n: usize) -> Result<usize, ObjectError> {
        if n > self.bytes.len() { wrong("they are cut off") } else { Ok(n) }
    }

    fn array(&mut self, n: usize, depth: u32) -> Result<Value, ObjectError> {
        (0..self.count(n)?).map(|_| self.value(depth + 1)).collect::<Result<_, _>>().map(Value::Array)
    }

    fn map(&mut self, n: usize, depth: u32) -> Result<Value, ObjectError> {
        let pairs = (0..self.count(n)?).map(|_| Ok((self.value(depth + 1)?, self.value(depth + 1)?)));
        pairs.collect::<Result<_, _>>().map(Value::Map)
    }
}
