//! Sets of small numbers, as bits.

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(numbers: usize) -> Bits {
        Bits(vec![0; numbers.div_ceil(64)])
    }

    pub(super) fn insert(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Adds a set; returns whether that adds any number.
    pub(super) fn extend(&mut self, other: &Bits) -> bool {
        let mut more = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            more |= *other & !*own != 0;
            *own |= other;
        }
        more
    }

    pub(super) fn meets(&self, other: &Bits) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let of_word = |(i, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| (word >> bit) & 1 == 1).map(move |bit| 64 * i + bit)
        };
        self.0.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(of_word)
    }
}
