//! Compression of code: texts whose lines are similar except for numbers.
//!
//! PTX and tile IR consist of lines of few *forms*. A form is a line without its numbers: those that stand alone and those that end a name,
//! such as `%r12`. Writer and reader store for each form the numbers of its last line, by how much they had changed, and the form of the
//! following line. From that, both *predict* a line: the form that followed the last time, with its numbers changed as they changed the
//! last time. A line that is predicted correctly is encoded by one bit, other lines by the form and the differences of numbers. All texts
//! of an artifact share this state, since variants of a kernel consist of nearly the same lines.
//!
//! General compressors cannot do this, because one additional register renumbers everything after it. For the variants of a matrix product,
//! deflate needs twice as many bytes and LZMA as many, and both take an unoptimized macro more than ten times as long
//! (docs/performance.md).
//!
//! # Format
//!
//! A text is a sequence of lines, each followed by a line feed, of which one is appended to the text. Eight lines follow a byte whose bit
//! *i* says whether line *i* is predicted correctly; bits without a line are zero. The other lines follow in order, each as the index of
//! its form, and for each number of the form the difference to the number in its last line. The index after the last form announces a new
//! form: the length of the line and the line follow. Initially there is the form of the empty line, which is followed by itself.
//!
//! Indices and lengths are unsigned LEB128; so are differences, after the zigzag mapping (0, −1, 1, −2, ..) on 32 bits. A text has one
//! encoding: what a writer would encode differently is rejected.

use super::Variant;
use super::decode::{Read, Reader, malformed};
use std::collections::BTreeMap;
use std::io::Write as _;

/// The placeholder for a number in a form. Texts do not contain it: code that does is not packed.
const NUMBER: u8 = 0;
/// The maximum number of digits of a number; longer ones are part of the form. So every number and every difference fits in 32 bits.
const DIGITS: usize = 9;
/// The smallest number with more digits.
const LIMIT: u32 = 1_000_000_000;
/// The maximum size of all texts of an artifact in bytes, up to which they are packed. It also limits the memory that invalid input
/// requests.
const MOST: usize = 64 << 20;

/// Whether code is a text.
pub(super) fn is_text(code: &[u8]) -> bool {
    !code.contains(&NUMBER)
}

/// Whether an artifact with these variants packs its texts.
pub(super) fn packs(variants: &[Variant]) -> bool {
    variants.iter().filter(|v| is_text(&v.payload)).map(|v| v.payload.len()).sum::<usize>() <= MOST
}

/// A line, divided into its form and its numbers.
#[derive(Debug, Default)]
struct Line {
    form: Vec<u8>,
    numbers: Vec<u32>,
}

impl Line {
    /// Divides the line that starts at `at`, and returns the position of its end.
    fn read(&mut self, text: &[u8], at: usize) -> usize {
        self.form.clear();
        self.numbers.clear();
        // The line has been copied to the form up to `copied`. Digits inside of words are not numbers, unless the word is a name.
        let (mut i, mut copied, mut in_name, mut in_word) = (at, at, false, false);
        while i < text.len() {
            match text[i] {
                b'\n' => break,
                b'0'..=b'9' if !in_word => {
                    let (start, mut value) = (i, 0u32);
                    while i < text.len() && text[i].is_ascii_digit() {
                        value = value.wrapping_mul(10).wrapping_add(u32::from(text[i] - b'0'));
                        i += 1;
                    }
                    if i - start <= DIGITS && (text[start] != b'0' || i - start == 1) {
                        self.form.extend_from_slice(&text[copied..start]);
                        self.form.push(NUMBER);
                        self.numbers.push(value);
                        copied = i;
                    }
                    continue;
                }
                b'0'..=b'9' => {}
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => in_word = !in_name,
                sign => (in_name, in_word) = (sign == b'%' || sign == b'$', false),
            }
            i += 1;
        }
        self.form.extend_from_slice(&text[copied..i]);
        i
    }
}

/// A form, and what is stored about its last lines.
#[derive(Debug, Default)]
struct Form {
    text: Vec<u8>,
    /// The numbers of its last line.
    last: Vec<u32>,
    /// The differences of these numbers to those of the line before.
    step: Vec<u32>,
    /// The form of the line that followed its last line.
    next: usize,
}

/// All forms so far, while the texts of one artifact are written or read in order.
#[derive(Debug)]
pub(super) struct Forms {
    all: Vec<Form>,
    /// The index of each form in `all`.
    known: BTreeMap<Vec<u8>, usize>,
    /// The form of the last line.
    at: usize,
    /// The number of bytes that may still be read.
    left: usize,
}

impl Forms {
    pub(super) fn new() -> Forms {
        Forms { all: vec![Form::default()], known: BTreeMap::from([(Vec::new(), 0)]), at: 0, left: MOST }
    }

    /// Predicts the next line: returns its form, and puts its numbers into `numbers`.
    fn expect(&self, numbers: &mut Vec<u32>) -> usize {
        let next = self.all[self.at].next;
        let form = &self.all[next];
        numbers.clear();
        numbers.extend(form.last.iter().zip(&form.step).map(|(last, step)| last.wrapping_add(*step)));
        next
    }

    /// Stores a line, for later predictions.
    fn came(&mut self, form: usize, numbers: &[u32]) {
        self.all[self.at].next = form;
        self.at = form;
        let Form { last, step, .. } = &mut self.all[form];
        for ((last, step), number) in last.iter_mut().zip(step).zip(numbers) {
            *step = number.wrapping_sub(*last);
            *last = *number;
        }
    }

    /// Adds a new form, that of this line.
    fn add(&mut self, line: &Line) {
        self.known.insert(line.form.clone(), self.all.len());
        let (last, step) = (line.numbers.clone(), vec![0; line.numbers.len()]);
        self.all.push(Form { text: line.form.clone(), last, step, next: 0 });
    }

    /// Packs a text.
    pub(super) fn pack(&mut self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut line, mut expected) = (Vec::new(), Line::default(), Vec::new());
        let (mut at, mut bits, mut bit) = (0, 0, 0u8);
        while at <= text.len() {
            if bit == 0 {
                (bits, bit) = (out.len(), 1);
                out.push(0);
            }
            let end = line.read(text, at);
            let mut form = self.expect(&mut expected);
            let likely = self.all[form].text == line.form;
            if likely && expected == line.numbers {
                out[bits] |= bit;
            } else {
                let known = if likely { Some(form) } else { self.known.get(&line.form).copied() };
                form = self.write(&mut out, known, &line, &text[at..end]);
            }
            self.came(form, &line.numbers);
            at = end + 1;
            bit <<= 1;
        }
        out
    }

    /// Writes a line that was not predicted, and returns its form.
    fn write(&mut self, out: &mut Vec<u8>, known: Option<usize>, line: &Line, text: &[u8]) -> usize {
        let form = known.unwrap_or(self.all.len());
        put_length(out, form);
        if known.is_some() {
            for (number, last) in line.numbers.iter().zip(&self.all[form].last) {
                put(out, zigzag(number.wrapping_sub(*last).cast_signed()));
            }
        } else {
            put_length(out, text.len());
            out.extend_from_slice(text);
            self.add(line);
        }
        form
    }

    /// Unpacks a text of this length from the remaining bytes of the reader.
    pub(super) fn unpack(&mut self, r: &mut Reader<'_>, length: usize) -> Read<Vec<u8>> {
        self.left = self.left.checked_sub(length).ok_or_else(|| malformed("more code than is ever packed", r.at()))?;
        let (mut out, mut numbers, mut line) = (Vec::new(), Vec::new(), Line::default());
        let (mut bits, mut bit) = (0, 0u8);
        while out.len() <= length {
            if bit == 0 {
                (bits, bit) = (r.tag(WHAT)?, 1);
            }
            let mut form = self.expect(&mut numbers);
            if bits & bit == 0 {
                form = self.read(r, form, &mut numbers, &mut line)?;
            }
            if numbers.iter().any(|n| *n >= LIMIT) {
                return Err(malformed("a number in code that has too many digits", r.at()));
            }
            render(&mut out, &self.all[form].text, &numbers);
            self.came(form, &numbers);
            bits &= !bit;
            bit <<= 1;
        }
        if bits != 0 || out.len() != length + 1 {
            return Err(malformed("code of another length than is said", r.at()));
        }
        out.pop();
        Ok(out)
    }

    /// Reads a line that was not predicted: returns its form, and replaces the predicted numbers by its own.
    fn read(&mut self, r: &mut Reader<'_>, expected: usize, numbers: &mut Vec<u32>, line: &mut Line) -> Read<usize> {
        let at = r.at();
        let form = r.leb128(WHAT)? as usize;
        if form == self.all.len() {
            let length = r.leb128(WHAT)? as usize;
            let text = r.take(length, WHAT)?;
            if !is_text(text) || line.read(text, 0) != text.len() || self.known.contains_key(&line.form) {
                return Err(malformed("a line of code that is not of a new form", at));
            }
            numbers.clone_from(&line.numbers);
            self.add(line);
            return Ok(form);
        }
        let last = &self.all.get(form).ok_or_else(|| malformed("a line of code of an unknown form", at))?.last;
        let number = |last: &u32| Ok(last.wrapping_add(unzigzag(r.leb128(WHAT)?).cast_unsigned()));
        let read = last.iter().map(number).collect::<Read<Vec<u32>>>()?;
        if form == expected && read == *numbers {
            return Err(malformed("a line of code that comes as expected, and is not marked so", at));
        }
        *numbers = read;
        Ok(form)
    }
}

/// The name of packed code in errors.
const WHAT: &str = "the code";

/// Appends a line and a line feed.
fn render(out: &mut Vec<u8>, form: &[u8], numbers: &[u32]) {
    let mut numbers = numbers.iter();
    for (i, piece) in form.split(|b| *b == NUMBER).enumerate() {
        if i > 0 {
            // Writing to a vector cannot fail.
            let _ = write!(out, "{}", numbers.next().copied().unwrap_or(0));
        }
        out.extend_from_slice(piece);
    }
    out.push(b'\n');
}

fn zigzag(v: i32) -> u32 {
    ((v << 1) ^ (v >> 31)).cast_unsigned()
}

fn unzigzag(v: u32) -> i32 {
    (v >> 1).cast_signed() ^ -(v & 1).cast_signed()
}

/// Writes an unsigned LEB128 number.
fn put(out: &mut Vec<u8>, mut value: u32) {
    while value > 0x7f {
        out.push(0x80 | value.to_le_bytes()[0]);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Writes a number of lines or forms, which is less than 2³² for packed texts.
fn put_length(out: &mut Vec<u8>, n: usize) {
    put(out, u32::try_from(n).unwrap_or(u32::MAX));
}

#[cfg(test)]
mod tests;
