//! Bits in fewer bits: an arithmetic coder whose model of each bit adapts to those that came before it.
//!
//! A message is a number between 0 and 1. Each bit takes one of two parts of the interval that is left, as large as the bit is probable; so a
//! bit of probability *p* costs −log₂ *p* bits. The interval is `low ..= high`, the next 32 binary digits of its ends; leading bytes on
//! which both ends agree are final (Witten, Neal, Cleary: "Arithmetic Coding for Data Compression", CACM 30(6), 1987; without carries, as
//! in Mahoney's lpaq).
//!
//! ```text
//! low = 00000000, high = ffffffff        the bit is 1 with probability 3/4: the middle is bfffffff
//! 1: high = bfffffff                     0: low = c0000000
//! ```
//!
//! Reader and writer are one trait, so that both ask for the same bits: [`Bits::bit`] takes the bit that is written, and returns the one that is
//! read.
//!
//! Deliberately absent: floating-point numbers, which need not be the same everywhere.

/// How probable it is that a bit is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    /// In 65536ths.
    one: u16,
    /// How many bits it has seen, as far as that is counted.
    seen: u8,
}

/// By which part, in 65536ths, a chance approaches the next bit: 1 / (n + 3/2) after n bits. Later ones count as much as the last here.
const RATES: [i64; 12] = [43690, 26214, 18724, 14563, 11915, 10082, 8738, 7710, 6898, 6241, 5698, 5242];

/// No chance is nearer to 0 or 1.
const LEAST: i64 = 64;

impl Chance {
    const EVEN: Chance = Chance { one: 1 << 15, seen: 0 };

    fn came(&mut self, bit: bool) {
        let aim = if bit { 65535 } else { 0 };
        let rate = RATES.get(usize::from(self.seen)).copied().unwrap_or(RATES[RATES.len() - 1]);
        let old = i64::from(self.one);
        let new = (old + (((aim - old) * rate) >> 16)).clamp(LEAST, 65536 - LEAST);
        self.one = u16::try_from(new).unwrap_or(u16::MAX);
        self.seen = self.seen.saturating_add(1);
    }
}

/// The interval that is left.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: u32,
    high: u32,
}

impl Interval {
    const WHOLE: Interval = Interval { low: 0, high: u32::MAX };

    /// The last number of the part for a one.
    const fn middle(self, chance: Chance) -> u32 {
        let (size, one) = (self.high - self.low, chance.one as u32);
        self.low + (size >> 16) * one + (((size & 0xffff) * one) >> 16)
    }

    const fn narrow(&mut self, bit: bool, middle: u32) {
        if bit { self.high = middle } else { self.low = middle + 1 }
    }

    /// Shifts a byte out, if both ends agree on it.
    const fn shift(&mut self) -> Option<u8> {
        if (self.low ^ self.high) >> 24 != 0 {
            return None;
        }
        let [byte, ..] = self.high.to_be_bytes();
        (self.low, self.high) = (self.low << 8, (self.high << 8) | 0xff);
        Some(byte)
    }

    /// The first byte of the number in the interval whose other bytes are zero.
    const fn last(self) -> u8 {
        let [byte, ..] = self.low.to_be_bytes();
        byte + 1
    }
}

/// What bits are written to, or read from.
pub(super) trait Bits {
    /// Writes a bit and returns it; or ignores it and returns the one that is read.
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;
}

/// Writes bits.
#[derive(Debug)]
pub(super) struct Encoder {
    left: Interval,
    out: Vec<u8>,
}

impl Encoder {
    pub(super) const fn new() -> Encoder {
        Encoder { left: Interval::WHOLE, out: Vec::new() }
    }

    /// The bytes. Behind the last one come zeros.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.out.push(self.left.last());
        self.out
    }
}

impl Bits for Encoder {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        self.left.narrow(bit, self.left.middle(*chance));
        while let Some(byte) = self.left.shift() {
            self.out.push(byte);
        }
        chance.came(bit);
        bit
    }
}

/// Reads bits.
#[derive(Debug)]
pub(super) struct Decoder<'b> {
    left: Interval,
    /// The next 32 digits of the message.
    value: u32,
    bytes: &'b [u8],
    /// How many bytes have been shifted out.
    shifted: usize,
}

impl<'b> Decoder<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Decoder<'b> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let value = u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)]);
        Decoder { left: Interval::WHOLE, value, bytes, shifted: 0 }
    }

    /// The number of bytes that an encoder writes for the bits that were read, if these are its bytes and only zeros come behind them. The
    /// last byte is compared; the others are right because each was shifted out by the interval that it led to.
    pub(super) fn end(&self) -> Option<usize> {
        let (last, behind) = self.bytes.get(self.shifted..)?.split_first()?;
        (*last == self.left.last() && behind.iter().all(|byte| *byte == 0)).then_some(self.shifted + 1)
    }
}

impl Bits for Decoder<'_> {
    fn bit(&mut self, chance: &mut Chance, _: bool) -> bool {
        let middle = self.left.middle(*chance);
        let bit = self.value <= middle;
        self.left.narrow(bit, middle);
        while self.left.shift().is_some() {
            self.shifted += 1;
            let next = self.bytes.get(self.shifted + 3).copied().unwrap_or(0);
            self.value = (self.value << 8) | u32::from(next);
        }
        chance.came(bit);
        bit
    }
}

/// The chances of four bits: of each bit, by those before it.
#[derive(Clone, Copy, Debug)]
struct Block([Chance; 16]);

impl Block {
    /// Writes four bits and returns them; or returns those that are read.
    fn code(&mut self, bits: &mut impl Bits, four: u8) -> u8 {
        // A one, and the bits so far.
        let mut node = 1u8;
        for at in (0..4).rev() {
            let bit = bits.bit(&mut self.0[usize::from(node)], (four >> at) & 1 == 1);
            node = (node << 1) | u8::from(bit);
        }
        // The leading one is the fifth bit.
        node & 15
    }
}

/// All blocks of a model. There is a maximum of them, so that no input can ask for more memory.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Chunks of blocks, which are never moved.
    chunks: Vec<Vec<Block>>,
    /// How often a block was given to a byte.
    given: u16,
}

impl Blocks {
    /// The maximum number of blocks, a power of two. If more are needed, bytes share blocks, which costs compression only.
    const MOST: u16 = 1 << 12;
    /// The number of blocks of a chunk.
    const CHUNK: u16 = 1 << 6;

    pub(super) const fn new() -> Blocks {
        Blocks { chunks: Vec::new(), given: 0 }
    }

    /// The block with this number. The number 0 stands for none yet; it becomes that of the next block.
    fn of(&mut self, number: &mut u16) -> &mut Block {
        if *number == 0 {
            let index = self.given % Self::MOST;
            if usize::from(index / Self::CHUNK) == self.chunks.len() {
                self.chunks.push(vec![Block([Chance::EVEN; 16]); usize::from(Self::CHUNK)]);
            }
            *number = index + 1;
            self.given = self.given.wrapping_add(1);
        }
        let index = *number - 1;
        &mut self.chunks[usize::from(index / Self::CHUNK)][usize::from(index % Self::CHUNK)]
    }
}

/// The chances of a byte: of each bit, by those before it. These are numbers of blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Byte {
    /// The upper four bits.
    upper: u16,
    /// The lower four bits, by the upper ones.
    lower: [u16; 16],
}

impl Byte {
    /// Writes a byte and returns it; or returns the one that is read.
    pub(super) fn code(&mut self, blocks: &mut Blocks, bits: &mut impl Bits, byte: u8) -> u8 {
        let upper = blocks.of(&mut self.upper).code(bits, byte >> 4);
        let lower = blocks.of(&mut self.lower[usize::from(upper)]).code(bits, byte & 15);
        (upper << 4) | lower
    }
}

/// The chances of a bit by the two before it of its kind.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    chances: [Chance; 4],
    before: usize,
}

impl Flag {
    pub(super) const fn new() -> Flag {
        Flag { chances: [Chance::EVEN; 4], before: 0 }
    }

    /// Writes a bit and returns it; or returns the one that is read.
    pub(super) fn code(&mut self, bits: &mut impl Bits, bit: bool) -> bool {
        let bit = bits.bit(&mut self.chances[self.before], bit);
        self.before = ((self.before << 1) | usize::from(bit)) & 3;
        bit
    }
}
