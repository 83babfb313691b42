//! Random numbers in kernels, as functions of a counter: the generator Philox 4×32 with ten rounds.
//!
//! A number depends on the seed and on the counter alone, not on the program, the device or what was drawn before. So a kernel draws the number
//! of an element by the element's index, and another kernel can draw it again: the backward pass of a dropout needs no stored mask. The words and
//! [`uniform`] are equal on every device, and in the body that runs as plain Rust.
//!
//! Source: J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011. The results are those
//! of the library Random123 for the same counters and keys.
//!
//! Deliberately absent: generators with a state, and numbers for secrets: Philox is not a cipher.
//!
//! ```
//! use titan::prelude::*;
//! use titan::random::{philox, uniform};
//!
//! /// y = x / (1 - p) for the elements that are kept, each with probability 1 - p, and 0 for the others.
//! #[titan::kernel]
//! fn dropout(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, p: f32, seed: u64) {
//!     let n = program_id(0);
//!     let (bits, _, _, _) = philox((iota::<256>() + n * 256).cast::<u32>(), seed);
//!     y.store_tile([n], select(uniform(bits) >= p, x.load_tile::<256>([n]) / (1.0 - p), 0.0));
//! }
//!
//! # fn main() -> titan::Result<()> {
//! let dev = Device::cpu();
//! let (x, mut y) = (dev.full([10_000], 1.0f32)?, dev.zeros([10_000])?);
//! dropout(&x, &mut y, 0.25, 42).sync()?;
//! let kept = y.to_vec()?.iter().filter(|v| **v != 0.0).count();
//! assert!((7300..7700).contains(&kept));
//! # Ok(())
//! # }
//! ```

use crate::prelude::*;

/// Four random words for each counter, each uniform in all 32 bits. Different counters, and different seeds, give independent words.
#[crate::device]
pub fn philox<S: Shape>(counter: Tile<u32, S>, seed: u64) -> (Tile<u32, S>, Tile<u32, S>, Tile<u32, S>, Tile<u32, S>) {
    let zero = counter & 0;
    philox4x32(counter, zero, zero, zero, seed.cast::<u32>(), (seed >> 32).cast::<u32>())
}

/// The same for counters of 128 bits and a key of 64 bits, the least significant word of each first: for more than 2³² numbers of a seed, or to draw
/// by several indices, such as a row and a column.
#[crate::device]
pub fn philox4x32<S: Shape>(
    counter0: Tile<u32, S>,
    counter1: Tile<u32, S>,
    counter2: Tile<u32, S>,
    counter3: Tile<u32, S>,
    key0: u32,
    key1: u32,
) -> (Tile<u32, S>, Tile<u32, S>, Tile<u32, S>, Tile<u32, S>) {
    let (mut c0, mut c1, mut c2, mut c3) = (counter0, counter1, counter2, counter3);
    let (mut k0, mut k1) = (key0, key1);
    for _round in 0..10 {
        let (high0, low0) = (upper_half(c0, 0xD251_1F53), c0 * 0xD251_1F53);
        let (high1, low1) = (upper_half(c2, 0xCD9E_8D57), c2 * 0xCD9E_8D57);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        // The fractional parts of the golden ratio and of the square root of 3.
        k0 += 0x9E37_79B9;
        k1 += 0xBB67_AE85;
    }
    (c0, c1, c2, c3)
}

/// The upper 32 bits of the product of each element.
#[doc(hidden)]
#[crate::device]
pub fn upper_half<S: Shape>(a: Tile<u32, S>, b: u32) -> Tile<u32, S> {
    a.mul_hi(b)
}

/// Numbers from 0 to less than 1, multiples of 2⁻²⁴, from the upper 24 bits of random words.
#[crate::device]
pub fn uniform<S: Shape>(bits: Tile<u32, S>) -> Tile<f32, S> {
    (bits >> 8).cast::<f32>() * (1.0 / 16_777_216.0)
}

/// Two independent numbers of the normal distribution with mean 0 and variance 1 for each two random words, by the method of Box and Muller. Their
/// absolute value is at most 5.8, √(48 ln 2) rounded up.
#[crate::device]
pub fn normal<S: Shape>(a: Tile<u32, S>, b: Tile<u32, S>) -> (Tile<f32, S>, Tile<f32, S>) {
    // From 2⁻²⁴ to 1, so that the logarithm is finite.
    let u = 1.0 - uniform(a);
    let radius = (u.ln() * -2.0).sqrt();
    let angle = uniform(b) * std::f32::consts::TAU;
    (radius * angle.cos(), radius * angle.sin())
}
