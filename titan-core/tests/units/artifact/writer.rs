//! A writer of packed code that writes what it is told, also what is not allowed. It follows the description of the format (of
//! `artifact` and `artifact::pack`) and shares no code with the crate: the arithmetic is on 64 bits, the rates are computed.
//!
//! Deliberately absent: the choice of forms, which the tests make.

/// How probable it is that a bit is one.
#[derive(Clone, Copy)]
struct Chance {
    one: u64,
    seen: u64,
}

impl Chance {
    const EVEN: Chance = Chance { one: 1 << 15, seen: 0 };

    /// The part by which the chance approaches a bit after n bits is 1 / (n + 3/2), for n of at most 11.
    fn came(&mut self, bit: bool) {
        let rate = (65536 * 2) / (2 * self.seen.min(11) + 3);
        let one = if bit {
            self.one + (((65535 - self.one) * rate) >> 16)
        } else {
            self.one - (self.one * rate).div_ceil(65536)
        };
        self.one = one.clamp(64, 65536 - 64);
        self.seen += 1;
    }
}

/// The interval that is left, and the bytes that are final.
struct Coder {
    low: u64,
    high: u64,
    out: Vec<u8>,
}

impl Coder {
    fn bit(&mut self, chance: &mut Chance, bit: bool) {
        let middle = self.low + (((self.high - self.low) * chance.one) >> 16);
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
        while self.low >> 24 == self.high >> 24 {
            self.out.push((self.high >> 24) as u8);
            self.low = (self.low << 8) & 0xffff_ffff;
            self.high = ((self.high << 8) & 0xffff_ffff) | 0xff;
        }
        chance.came(bit);
    }
}

/// The chances of a byte: of each bit by those before it.
type Byte = [Chance; 256];

const BYTE: Byte = [Chance::EVEN; 256];

/// The chances that belong to a form.
struct Form {
    /// The first byte of the index of the form that comes next.
    next: Byte,
    /// The first byte of a number.
    number: Byte,
}

const FORM: Form = Form { next: BYTE, number: BYTE };

/// Writes one text.
pub(super) struct Writer {
    coder: Coder,
    expected: [Chance; 4],
    /// The last two bits that said whether a line came as expected.
    last_two: usize,
    forms: Vec<Form>,
    /// The first byte of a length.
    length: Byte,
    further: [Byte; 4],
    letters: Vec<Byte>,
    /// The form of the last line.
    pub(super) at: usize,
}

/// What a number is, which has chances of its own.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// The index of the form that comes next.
    Index,
    /// The length of a new line.
    Length,
    /// The change of a number of a line of this form.
    Change(usize),
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer {
            coder: Coder { low: 0, high: 0xffff_ffff, out: Vec::new() },
            expected: [Chance::EVEN; 4],
            last_two: 0,
            forms: vec![FORM],
            length: BYTE,
            further: [BYTE; 4],
            letters: vec![BYTE; 256],
            at: 0,
        }
    }

    /// Whether a line comes as expected.
    pub(super) fn comes(&mut self, yes: bool) {
        self.coder.bit(&mut self.expected[self.last_two], yes);
        self.last_two = (2 * self.last_two + usize::from(yes)) % 4;
    }

    /// The bytes of a number, as they are.
    pub(super) fn bytes(&mut self, kind: Kind, bytes: &[u8]) {
        for (place, byte) in bytes.iter().enumerate() {
            let chances = match (place, kind) {
                (0, Kind::Index) => &mut self.forms[self.at].next,
                (0, Kind::Length) => &mut self.length,
                (0, Kind::Change(form)) => &mut self.forms[form].number,
                _ => &mut self.further[place - 1],
            };
            code(&mut self.coder, chances, *byte);
        }
    }

    /// A number as unsigned LEB128.
    pub(super) fn leb128(&mut self, kind: Kind, mut value: u32) {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        self.bytes(kind, &bytes);
    }

    /// A line that does not come as expected, with the index of a form that there is not yet.
    pub(super) fn new_line(&mut self, index: usize, text: &[u8]) {
        self.comes(false);
        self.leb128(Kind::Index, index as u32);
        self.leb128(Kind::Length, text.len() as u32);
        let mut before = 0;
        for letter in text {
            code(&mut self.coder, &mut self.letters[usize::from(before)], *letter);
            before = *letter;
        }
    }

    /// A reader has accepted a line of a new form.
    pub(super) fn accepted(&mut self) {
        self.at = self.forms.len();
        self.forms.push(FORM);
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.coder.out.push((self.coder.low >> 24) as u8 + 1);
        self.coder.out
    }
}

/// A byte, from its highest bit.
fn code(coder: &mut Coder, chances: &mut Byte, byte: u8) {
    let mut node = 1;
    for at in (0..8).rev() {
        let bit = (byte >> at) & 1 == 1;
        coder.bit(&mut chances[node], bit);
        node = 2 * node + usize::from(bit);
    }
}
