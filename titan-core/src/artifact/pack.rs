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
//! What is written is coded arithmetically ([`code`]): the chances of each bit adapt to the text, those of the form to the form before it, those of
//! the numbers to their form. So the code of a variant that is like the one before costs a fraction of a byte for a line.
//!
//! # Format
//!
//! A text is a sequence of lines, each with a line feed behind it; one more than the text has is put behind the last. Of each line comes
//! first whether it comes as expected. If not, the index of its form follows and then, by numbers of the form, the difference to the number in its
//! last line. The index after the last form announces a new one: the length of the line and the line follow. In the beginning there is the
//! form of the empty line, and it is followed by itself.
//!
//! Indices and lengths are unsigned LEB128, differences as well after the zigzag mapping (0, −1, 1, −2, ..) on 32 bits. Bytes are coded from
//! their highest bit. A text has one encoding: whatever a writer would have written otherwise is refused.

mod code;

use super::Variant;
use super::decode::{Read, Reader, malformed};
use crate::collections::SortedMap;
use code::{Bits, Byte, Decoder, Encoder, Flag};

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

/// The chances of what follows a form.
#[derive(Debug, Default)]
struct Context {
    /// The first byte of the index of the form that comes next, if that is not expected.
    next: Byte,
    /// The first byte of a number of this form.
    number: Byte,
}

/// As many forms have a context of their own, a power of two; they share them with the others.
const CONTEXTS: usize = 1 << 12;

/// The chances of all that is written.
#[derive(Debug)]
struct Model {
    expected: Flag,
    contexts: Vec<Context>,
    /// The first byte of a length.
    length: Byte,
    /// Further bytes of indices, lengths and numbers, by their place.
    further: [Byte; 4],
    /// Characters, by the one before.
    letters: Vec<Byte>,
}

impl Model {
    fn new() -> Model {
        Model {
            expected: Flag::new(),
            contexts: vec![Context::default()],
            length: Byte::default(),
            further: Default::default(),
            letters: vec![Byte::default(); 256],
        }
    }

    /// There is one form more, the one of this index.
    fn grow(&mut self, form: usize) {
        if form == self.contexts.len() && form < CONTEXTS {
            self.contexts.push(Context::default());
        }
    }
}

/// All forms so far, to write or to read the texts of one artifact in their order.
#[derive(Debug)]
pub(super) struct Forms {
    all: Vec<Form>,
    /// The index of each form in `all`.
    known: SortedMap<Vec<u8>, usize>,
    /// The form of the last line.
    at: usize,
    model: Model,
    /// How many bytes may still be read.
    left: usize,
}

impl Forms {
    pub(super) fn new() -> Forms {
        Forms {
            all: vec![Form::default()],
            known: SortedMap::from([(Vec::new(), 0)]),
            at: 0,
            model: Model::new(),
            left: MOST,
        }
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
        self.model.grow(self.all.len());
        let (last, step) = (line.numbers.clone(), vec![0; line.numbers.len()]);
        self.all.push(Form { text: line.form.clone(), last, step, next: 0 });
    }

    /// Packs a text.
    pub(super) fn pack(&mut self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut line, mut expected) = (Encoder::new(), Line::default(), Vec::new());
        let mut at = 0;
        while at <= text.len() {
            let end = line.read(text, at);
            let mut form = self.expect(&mut expected);
            let likely = self.all[form].text == line.form;
            let comes = likely && expected == line.numbers;
            if !self.model.expected.code(&mut out, comes) {
                let known = if likely { Some(form) } else { self.known.get(&line.form).copied() };
                form = self.write(&mut out, known, &line, &text[at..end]);
            }
            self.came(form, &line.numbers);
            at = end + 1;
        }
        out.end()
    }

    /// Writes a line that does not come as expected, and returns its form.
    fn write(&mut self, out: &mut Encoder, known: Option<usize>, line: &Line, text: &[u8]) -> usize {
        let form = known.unwrap_or(self.all.len());
        // A writer has no number that could not be written.
        let _ = self.index(out, form);
        if known.is_some() {
            for (number, last) in line.numbers.iter().zip(&self.all[form].last) {
                let value = zigzag(number.wrapping_sub(*last).cast_signed());
                let number = &mut self.model.contexts[form & (CONTEXTS - 1)].number;
                let _ = leb128(out, number, &mut self.model.further, value);
            }
        } else {
            let _ = self.length(out, text.len());
            let mut before = 0;
            for letter in text {
                before = self.model.letters[usize::from(before)].code(out, *letter);
            }
            self.add(line);
        }
        form
    }

    /// Writes or reads the index of the form of the next line.
    fn index(&mut self, bits: &mut impl Bits, form: usize) -> Option<usize> {
        let Model { contexts, further, .. } = &mut self.model;
        let value = leb128(bits, &mut contexts[self.at & (CONTEXTS - 1)].next, further, short(form))?;
        usize::try_from(value).ok()
    }

    /// Writes or reads the length of a line.
    fn length(&mut self, bits: &mut impl Bits, length: usize) -> Option<usize> {
        let Model { length: first, further, .. } = &mut self.model;
        usize::try_from(leb128(bits, first, further, short(length))?).ok()
    }

    /// The text of this length that the rest of the reader's bytes stand for.
    pub(super) fn unpack(&mut self, r: &mut Reader<'_>, length: usize) -> Read<Vec<u8>> {
        let start = r.at();
        self.left = self.left.checked_sub(length).ok_or_else(|| malformed("more code than is ever packed", start))?;
        let mut bits = Decoder::new(r.rest());
        let (mut out, mut numbers, mut line) = (Vec::new(), Vec::new(), Line::default());
        while out.len() <= length {
            let mut form = self.expect(&mut numbers);
            if !self.model.expected.code(&mut bits, false) {
                form = self
                    .read(&mut bits, (form, length), &mut numbers, &mut line)
                    .map_err(|what| malformed(what, start))?;
            }
            if numbers.iter().any(|n| *n >= LIMIT) {
                return Err(malformed("a number in code that has too many digits", start));
            }
            render(&mut out, &self.all[form].text, &numbers);
            self.came(form, &numbers);
        }
        if out.len() != length + 1 {
            return Err(malformed("code of another length than is said", start));
        }
        if !bits.is_at_end() {
            return Err(malformed("code that ends before or behind the end of its bytes", start));
        }
        out.pop();
        Ok(out)
    }

    /// Reads a line that does not come as expected: returns its form, and puts its numbers in place of those that were expected.
    fn read(
        &mut self,
        bits: &mut Decoder<'_>,
        (expected, most): (usize, usize),
        numbers: &mut Vec<u32>,
        line: &mut Line,
    ) -> Result<usize, &'static str> {
        let form = self.index(bits, 0).ok_or(LEB128)?;
        if form == self.all.len() {
            let length = self.length(bits, 0).ok_or(LEB128)?;
            if length > most {
                return Err("code of another length than is said");
            }
            let (mut text, mut before) = (Vec::new(), 0);
            for _ in 0..length {
                before = self.model.letters[usize::from(before)].code(bits, 0);
                text.push(before);
            }
            if !is_text(&text) || line.read(&text, 0) != text.len() || self.known.contains_key(&line.form) {
                return Err("a line of code that is not of a new form");
            }
            numbers.clone_from(&line.numbers);
            self.add(line);
            return Ok(form);
        }
        let last = self.all.get(form).map(|form| &form.last).ok_or("a line of code of an unknown form")?;
        let mut read = Vec::with_capacity(last.len());
        for last in last {
            let Model { contexts, further, .. } = &mut self.model;
            let value = leb128(bits, &mut contexts[form & (CONTEXTS - 1)].number, further, 0).ok_or(LEB128)?;
            read.push(last.wrapping_add(unzigzag(value).cast_unsigned()));
        }
        if form == expected && read == *numbers {
            return Err("a line of code that comes as expected, and is not marked so");
        }
        *numbers = read;
        Ok(form)
    }
}

/// A number that is not LEB128 as short as it can be.
const LEB128: &str = "a number that is not LEB128";

/// Writes or reads unsigned LEB128 of 32 bits; `None` if what is read is not as short as it can be.
fn leb128(bits: &mut impl Bits, first: &mut Byte, further: &mut [Byte; 4], value: u32) -> Option<u32> {
    let (mut left, mut read) = (value, 0u64);
    for place in 0..5 {
        let [low, ..] = left.to_le_bytes();
        left >>= 7;
        let more = if left > 0 { 0x80 } else { 0 };
        let chances = if place == 0 { &mut *first } else { &mut further[place - 1] };
        let byte = chances.code(bits, (low & 0x7f) | more);
        read |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return u32::try_from(read).ok().filter(|_| byte > 0 || place == 0);
        }
    }
    None
}

/// Lines and forms of texts that are packed are fewer than 2³².
fn short(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Appends a line and a line feed.
fn render(out: &mut Vec<u8>, form: &[u8], numbers: &[u32]) {
    let mut numbers = numbers.iter();
    for (i, piece) in form.split(|b| *b == NUMBER).enumerate() {
        if i > 0 {
            decimal(out, numbers.next().copied().unwrap_or(0));
        }
        out.extend_from_slice(piece);
    }
    out.push(b'\n');
}

/// Appends a number. Formatting it with `write!` would take a fifth of the time of unpacking.
fn decimal(out: &mut Vec<u8>, mut number: u32) {
    let start = out.len();
    loop {
        let [digit, ..] = (number % 10).to_le_bytes();
        out.push(b'0' + digit);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

fn zigzag(v: i32) -> u32 {
    ((v << 1) ^ (v >> 31)).cast_unsigned()
}

fn unzigzag(v: u32) -> i32 {
    (v >> 1).cast_signed() ^ -(v & 1).cast_signed()
}
