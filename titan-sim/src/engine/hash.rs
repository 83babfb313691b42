//! A hash of states: 128 bits, equal on every machine and in every build.
//!
//! std's hashers are seeded or unspecified; a model checker that stores only hashes needs one that is neither, and wide
//! enough that two of its states never collide by accident. Two multiply-and-rotate lanes with different odd multipliers,
//! mixed at the end as in SplitMix64. `usize` counts as 64 bits and everything is little-endian.

use std::hash::{Hash, Hasher};

/// A hasher for states: it hashes what `#[derive(Hash)]` passes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHasher {
    a: u64,
    b: u64,
}

impl Default for StateHasher {
    fn default() -> Self {
        StateHasher { a: 0x243F_6A88_85A3_08D3, b: 0x1319_8A2E_0370_7344 }
    }
}

impl StateHasher {
    /// The hash of a value.
    #[must_use]
    pub fn of(value: &impl Hash) -> u128 {
        let mut hasher = StateHasher::default();
        value.hash(&mut hasher);
        hasher.finish128()
    }

    /// The hash of what was written so far.
    #[must_use]
    pub const fn finish128(&self) -> u128 {
        (mix(self.a ^ self.b.rotate_left(32)) as u128) << 64 | mix(self.b.wrapping_add(self.a)) as u128
    }

    const fn word(&mut self, x: u64) {
        self.a = (self.a.rotate_left(5) ^ x).wrapping_mul(0x517C_C1B7_2722_0A95);
        self.b = (self.b.rotate_left(23) ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

const fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        (self.finish128() >> 64) as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, x: u8) {
        self.word(x.into());
    }
    fn write_u16(&mut self, x: u16) {
        self.word(x.into());
    }
    fn write_u32(&mut self, x: u32) {
        self.word(x.into());
    }
    fn write_u64(&mut self, x: u64) {
        self.word(x);
    }
    fn write_usize(&mut self, x: usize) {
        self.word(x as u64);
    }
    fn write_i64(&mut self, x: i64) {
        self.word(x.cast_unsigned());
    }
}
