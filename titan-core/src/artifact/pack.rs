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
//!
//! # Memory
//!
//! Lines that come as expected cost next to nothing, so that a few bytes could stand for a text of any size. Therefore each text has a
//! *cost*, which is what a reader allocates for it: a byte for each byte of it, and [`FORM`] bytes and [`LINE`] for each of its bytes for each
//! line of a new form. The texts of an artifact may cost [`FREE`] bytes and [`PER_BYTE`] for each packed byte. Where a text costs more,
//! zeros are put behind its packed bytes until it does not. A reader checks this before it allocates; the chances have a maximum size.

mod code;

use super::Variant;
use super::decode::{Read, Reader, malformed};
use crate::collections::SortedMap;
use code::{Bits, Blocks, Byte, Decoder, Encoder, Flag};

/// The placeholder for a number in a form. Texts do not contain it: code that does is not packed.
const NUMBER: u8 = 0;
/// The maximum number of digits of a number; longer ones are part of the form. So every number and every difference fits in 32 bits.
const DIGITS: usize = 9;
/// The smallest number with more digits.
const LIMIT: u32 = 1_000_000_000;
/// The maximum size of all texts of an artifact in bytes, up to which they are packed.
const MOST: usize = 64 << 20;
/// What texts may cost independently of their packed bytes.
const FREE: usize = 352 << 10;
/// What texts may cost for each packed byte.
const PER_BYTE: usize = 64;
/// The cost of a new form: what [`Form`] and the entry in `known` take in vectors that grow to twice their size.
const FORM: usize = 256;
/// The cost of each byte of a line of a new form: the form, twice; its numbers, of which there is one for every other byte; the same of
/// the current line.
const LINE: usize = 16;

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
    text: Box<[u8]>,
    numbers: Box<[Number]>,
    /// The form of the line that followed its last line.
    next: usize,
}

/// What is stored about a number of a form.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// The number in the last line.
    last: u32,
    /// The difference to the line before.
    step: u32,
}

const _: () = assert!(3 * (size_of::<Form>() + size_of::<(Box<[u8]>, usize)>()) <= FORM);

/// The chances of what follows a form.
#[derive(Debug, Default)]
struct Context {
    /// The first byte of the index of the form that comes next, if that is not expected.
    next: Byte,
    /// The first byte of a number of this form.
    number: Byte,
}

/// As many forms have a context of their own, a power of two; they share them with the others.
const CONTEXTS: usize = 1 << 11;

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
    /// The chances of all these bytes.
    blocks: Blocks,
}

impl Model {
    fn new() -> Model {
        Model {
            expected: Flag::new(),
            contexts: vec![Context::default()],
            length: Byte::default(),
            further: Default::default(),
            letters: vec![Byte::default(); 256],
            blocks: Blocks::new(),
        }
    }

    /// There is one form more, the one of this index.
    fn grow(&mut self, form: usize) {
        if form == self.contexts.len() && form < CONTEXTS {
            self.contexts.push(Context::default());
        }
    }

    /// Writes or reads the index of the form of the line behind one of the form `at`.
    fn index(&mut self, bits: &mut impl Bits, at: usize, form: usize) -> Option<usize> {
        let Model { contexts, further, blocks, .. } = self;
        let value = leb128(bits, blocks, &mut contexts[at & (CONTEXTS - 1)].next, further, short(form))?;
        usize::try_from(value).ok()
    }

    /// Writes or reads the length of a line.
    fn length(&mut self, bits: &mut impl Bits, length: usize) -> Option<usize> {
        let Model { length: first, further, blocks, .. } = self;
        usize::try_from(leb128(bits, blocks, first, further, short(length))?).ok()
    }

    /// Writes or reads the change of a number in a line of the form `form`.
    fn change(&mut self, bits: &mut impl Bits, form: usize, change: u32) -> Option<u32> {
        let Model { contexts, further, blocks, .. } = self;
        leb128(bits, blocks, &mut contexts[form & (CONTEXTS - 1)].number, further, change)
    }

    /// Writes or reads a character behind another.
    fn letter(&mut self, bits: &mut impl Bits, before: u8, letter: u8) -> u8 {
        self.letters[usize::from(before)].code(&mut self.blocks, bits, letter)
    }
}

/// All forms so far, to write or to read the texts of one artifact in their order.
#[derive(Debug)]
pub(super) struct Forms {
    all: Vec<Form>,
    /// The index of each form in `all`.
    known: SortedMap<Box<[u8]>, usize>,
    /// The form of the last line.
    at: usize,
    model: Model,
    /// How many bytes of texts may still be read.
    left: usize,
    /// What all texts cost so far.
    cost: usize,
    /// How many packed bytes they have.
    packed: usize,
}

impl Forms {
    pub(super) fn new() -> Forms {
        Forms {
            all: vec![Form::default()],
            known: SortedMap::from([(Box::default(), 0)]),
            at: 0,
            model: Model::new(),
            left: MOST,
            cost: 0,
            packed: 0,
        }
    }

    /// Adds to the cost; `None` if that is then more than `most`.
    fn charge(&mut self, cost: usize, most: usize) -> Option<()> {
        self.cost = self.cost.saturating_add(cost);
        (self.cost <= most).then_some(())
    }

    /// What all texts may cost if these packed bytes are added.
    fn allowed(&self, packed: usize) -> usize {
        self.packed.saturating_add(packed).saturating_mul(PER_BYTE).saturating_add(FREE)
    }

    /// The number of packed bytes of a text that has been charged for, and takes `bytes` bytes without zeros behind them.
    fn with_zeros(&self, bytes: usize) -> usize {
        let paid = self.cost.saturating_sub(FREE).div_ceil(PER_BYTE);
        bytes.max(paid.saturating_sub(self.packed))
    }

    /// Predicts the next line: returns its form, and puts its numbers into `numbers`.
    fn expect(&self, numbers: &mut Vec<u32>) -> usize {
        let next = self.all[self.at].next;
        let form = &self.all[next];
        numbers.clear();
        numbers.extend(form.numbers.iter().map(|number| number.last.wrapping_add(number.step)));
        next
    }

    /// Stores a line, for later predictions.
    fn came(&mut self, form: usize, numbers: &[u32]) {
        self.all[self.at].next = form;
        self.at = form;
        for (stored, number) in self.all[form].numbers.iter_mut().zip(numbers) {
            *stored = Number { last: *number, step: number.wrapping_sub(stored.last) };
        }
    }

    /// Adds a new form, that of this line.
    fn add(&mut self, line: &Line) {
        self.known.insert(line.form.as_slice().into(), self.all.len());
        self.model.grow(self.all.len());
        let numbers = line.numbers.iter().map(|number| Number { last: *number, step: 0 }).collect();
        self.all.push(Form { text: line.form.as_slice().into(), numbers, next: 0 });
    }

    /// Packs a text.
    pub(super) fn pack(&mut self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut line, mut expected) = (Encoder::new(), Line::default(), Vec::new());
        let mut at = 0;
        // A writer may spend any amount, and pays for it in the end.
        let _ = self.charge(text.len() + 1, usize::MAX);
        while at <= text.len() {
            let end = line.read(text, at);
            let mut form = self.expect(&mut expected);
            let likely = *self.all[form].text == *line.form;
            let comes = likely && expected == line.numbers;
            if !self.model.expected.code(&mut out, comes) {
                let known = if likely { Some(form) } else { self.known.get(line.form.as_slice()).copied() };
                form = self.write(&mut out, known, &line, &text[at..end]);
            }
            self.came(form, &line.numbers);
            at = end + 1;
        }
        let mut packed = out.end();
        packed.resize(self.with_zeros(packed.len()), 0);
        self.packed += packed.len();
        packed
    }

    /// Writes a line that does not come as expected, and returns its form.
    fn write(&mut self, out: &mut Encoder, known: Option<usize>, line: &Line, text: &[u8]) -> usize {
        let form = known.unwrap_or(self.all.len());
        // A writer has no number that could not be written.
        let _ = self.model.index(out, self.at, form);
        if known.is_some() {
            for (number, stored) in line.numbers.iter().zip(&self.all[form].numbers) {
                let value = zigzag(number.wrapping_sub(stored.last).cast_signed());
                let _ = self.model.change(out, form, value);
            }
        } else {
            let _ = self.model.length(out, text.len());
            let _ = self.charge(cost_of_new(text.len()), usize::MAX);
            let mut before = 0;
            for letter in text {
                before = self.model.letter(out, before, *letter);
            }
            self.add(line);
        }
        form
    }

    /// The text of this length that the rest of the reader's bytes stand for.
    pub(super) fn unpack(&mut self, r: &mut Reader<'_>, length: usize) -> Read<Vec<u8>> {
        let start = r.at();
        let refused = |what| malformed(what, start);
        self.left = self.left.checked_sub(length).ok_or_else(|| refused("more code than is ever packed"))?;
        let packed = r.rest();
        let most = self.allowed(packed.len());
        self.charge(length + 1, most).ok_or_else(|| refused(COSTS))?;
        let mut bits = Decoder::new(packed);
        let (mut out, mut numbers, mut line) = (Vec::with_capacity(length + 1), Vec::new(), Line::default());
        while out.len() <= length {
            let mut form = self.expect(&mut numbers);
            let room = length - out.len();
            if !self.model.expected.code(&mut bits, false) {
                form = self.read(&mut bits, (form, room, most), &mut numbers, &mut line).map_err(refused)?;
            }
            if numbers.iter().any(|n| *n >= LIMIT) {
                return Err(refused("a number in code that has too many digits"));
            }
            let form_text = &self.all[form].text;
            if rendered(form_text, &numbers) > room {
                return Err(refused(LENGTH));
            }
            render(&mut out, form_text, &numbers);
            self.came(form, &numbers);
        }
        let end = bits.end().map(|bytes| self.with_zeros(bytes));
        if end != Some(packed.len()) {
            return Err(refused("code that ends before or behind the end of its bytes"));
        }
        self.packed += packed.len();
        out.pop();
        Ok(out)
    }

    /// Reads a line that does not come as expected, of at most `room` bytes, as long as texts cost at most `most`: returns its form, and puts
    /// its numbers in place of those that were expected.
    fn read(
        &mut self,
        bits: &mut Decoder<'_>,
        (expected, room, most): (usize, usize, usize),
        numbers: &mut Vec<u32>,
        line: &mut Line,
    ) -> Result<usize, &'static str> {
        let form = self.model.index(bits, self.at, 0).ok_or(LEB128)?;
        if form == self.all.len() {
            let length = self.model.length(bits, 0).ok_or(LEB128)?;
            if length > room {
                return Err(LENGTH);
            }
            self.charge(cost_of_new(length), most).ok_or(COSTS)?;
            let (mut text, mut before) = (Vec::with_capacity(length), 0);
            for _ in 0..length {
                before = self.model.letter(bits, before, 0);
                text.push(before);
            }
            let is_line = is_text(&text) && line.read(&text, 0) == text.len();
            if !is_line || self.known.contains_key(line.form.as_slice()) {
                return Err("a line of code that is not of a new form");
            }
            numbers.clone_from(&line.numbers);
            self.add(line);
            return Ok(form);
        }
        let stored = self.all.get(form).map(|form| &form.numbers).ok_or("a line of code of an unknown form")?;
        let mut read = Vec::with_capacity(stored.len());
        for stored in stored {
            let value = self.model.change(bits, form, 0).ok_or(LEB128)?;
            read.push(stored.last.wrapping_add(unzigzag(value).cast_unsigned()));
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
/// A text that is longer or shorter than its length.
const LENGTH: &str = "code of another length than is said";
/// A text that costs more than its bytes allow.
const COSTS: &str = "code that is too large for its packed bytes";

/// The cost of a line of a new form.
fn cost_of_new(length: usize) -> usize {
    length.saturating_mul(LINE).saturating_add(FORM)
}

/// Writes or reads unsigned LEB128 of 32 bits; `None` if what is read is not as short as it can be.
fn leb128(
    bits: &mut impl Bits,
    blocks: &mut Blocks,
    first: &mut Byte,
    further: &mut [Byte; 4],
    value: u32,
) -> Option<u32> {
    let (mut left, mut read) = (value, 0u64);
    for place in 0..5 {
        let [low, ..] = left.to_le_bytes();
        left >>= 7;
        let more = if left > 0 { 0x80 } else { 0 };
        let chances = if place == 0 { &mut *first } else { &mut further[place - 1] };
        let byte = chances.code(blocks, bits, (low & 0x7f) | more);
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

/// The number of bytes of a line, without its line feed.
fn rendered(form: &[u8], numbers: &[u32]) -> usize {
    let digits = |number: &u32| number.checked_ilog10().map_or(1, |log| log as usize + 1);
    // Each number stands for one byte of the form.
    form.len() + numbers.iter().map(digits).sum::<usize>() - numbers.len()
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
