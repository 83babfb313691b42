//! A seeded generator, the only source of chance in the engine.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014): one word of state, so
//! that states stay small to clone and to hash. Not for cryptography and not for statistics.

/// A generator; equal seeds give equal sequences on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number in `0..n`; 0 if `n` is 0.
    #[expect(clippy::cast_possible_truncation, reason = "less than `n`, which is a usize")]
    pub const fn below(&mut self, n: usize) -> usize {
        // The upper half of a product of 64 bits: unbiased enough for choosing among agents.
        ((self.next_u64() as u128 * n as u128) >> 64) as usize
    }
}
