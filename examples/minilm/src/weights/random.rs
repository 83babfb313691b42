//! Reproducible weights: splitmix64, mapped to ranges that keep activations near 1.
//!
//! | role   | range                                          |
//! |--------|------------------------------------------------|
//! | table  | -1 .. 1                                        |
//! | matrix | ±sqrt(3 / inputs), so that variance is kept    |
//! | scale  | 0.9 .. 1.1                                     |
//! | shift  | -0.1 .. 0.1                                    |
//!
//! Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.

use super::Role;

/// The generator's state.
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The elements of a tensor of this shape.
    pub(super) fn fill(&mut self, shape: &[usize], role: Role) -> Vec<f32> {
        let (centre, radius) = match role {
            Role::Table => (0.0, 1.0),
            Role::Matrix { inputs } => (0.0, (3.0 / inputs as f32).sqrt()),
            Role::Scale => (1.0, 0.1),
            Role::Shift => (0.0, 0.1),
        };
        (0..shape.iter().product()).map(|_| centre + radius * self.symmetric()).collect()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in -1 .. 1, from the top 24 bits: every value is exact in f32.
    fn symmetric(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Weights};

    #[test]
    fn the_generator_gives_the_published_sequence() {
        let mut random = SplitMix64::new(1_234_567);
        let drawn = [random.next(), random.next(), random.next()];
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn the_seed_decides_every_bit() {
        let of = |seed| Weights::random(&Config::TINY, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn every_tensor_has_as_many_elements_as_its_shape_says() {
        let weights = Weights::random(&Config::TINY, 3);
        for tensor in weights.tensors() {
            assert_eq!(tensor.data.len(), tensor.shape.iter().product::<usize>(), "{}", tensor.name);
        }
        assert_eq!(weights.tensors().count(), 5 + 16 * Config::TINY.layers);
    }
}
