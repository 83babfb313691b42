//! Sequences that refine an approximation are right for every approximation that the manual allows, not only for the emulator's, which is
//! the nearest number: their arithmetic is done here, with each error of the approximation in turn.
//!
//! What is done here follows the texts of `select/divide.rs` and `select/root.rs`, not their code; that the code does the same is shown by the
//! operations that the emulator runs.

use super::values::{Random, integers};
use titan_core::lane::Ty;

/// The numbers within one unit of `x` that an instruction may give.
fn within_one(x: f32) -> [f32; 3] {
    [f32::from_bits(x.to_bits() - 1), x, f32::from_bits(x.to_bits() + 1)]
}

/// The unsigned quotient and remainder, from an approximation of 1 / d.
fn divided(n: u32, d: u32, reciprocal: f32) -> (u32, u32) {
    let near = (reciprocal * 4_294_965_248.0) as u32;
    let error = 0u32.wrapping_sub(near.wrapping_mul(d));
    let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
    let inverse = near.wrapping_add(high(near, error));
    let mut quotient = high(n, inverse);
    let mut rest = n.wrapping_sub(quotient.wrapping_mul(d));
    for _ in 0..2 {
        if rest >= d {
            (quotient, rest) = (quotient.wrapping_add(1), rest.wrapping_sub(d));
        }
    }
    (quotient, rest)
}

#[test]
fn quotients_of_words_are_right_for_every_reciprocal() {
    let mut random = Random::new(1);
    let corners: Vec<u32> = integers(Ty::B32).into_iter().map(|x| x as u32).collect();
    let check = |n: u32, d: u32| {
        if d > 0 {
            for reciprocal in within_one(1.0 / d as f32) {
                assert_eq!(divided(n, d, reciprocal), (n / d, n % d), "{n} / {d} by {reciprocal:e}");
            }
        }
    };
    for n in &corners {
        corners.iter().for_each(|d| check(*n, *d));
    }
    for _ in 0..test_depth::cases(20_000_000, 500_000) {
        let [x, y, sizes] = [random.next(), random.next(), random.next()];
        let (d, q) = ((x as u32) >> (sizes % 32), (y as u32) >> (sizes / 64 % 32));
        // Dividends at a multiple of the divisor, and beside one.
        let n = d.wrapping_mul(q).wrapping_add((sizes >> 32) as u32 % 3).wrapping_sub(1);
        check(n, d);
        check(y as u32, d);
    }
}

/// The square root of a normal number, from an approximation of it.
fn root(x: f32, near: f32) -> f32 {
    let (below, above) = (f32::from_bits(near.to_bits() - 1), f32::from_bits(near.to_bits() + 1));
    let mut root = near;
    if (-below).mul_add(near, x) <= 0.0 {
        root = below;
    }
    if (-above).mul_add(near, x) > 0.0 {
        root = above;
    }
    root
}

#[test]
fn square_roots_are_right_for_every_approximation() {
    let mut random = Random::new(2);
    let check = |x: f32| {
        for near in within_one(x.sqrt()) {
            assert_eq!(root(x, near), x.sqrt(), "the root of {x:e} from {near:e}");
        }
    };
    // All digits of two exponents in the full depth, which are those of all others.
    let step = test_depth::cases(1, 37);
    (1.0f32.to_bits()..4.0f32.to_bits()).step_by(step).for_each(|bits| check(f32::from_bits(bits)));
    for _ in 0..100_000 {
        let exponent = 31 + random.next() % 223;
        check(f32::from_bits((exponent as u32) << 23 | random.next() as u32 & 0x7f_ffff));
    }
}

/// The square root of an `f64`, from an approximation of 1 / √x with this relative error.
fn root_double(x: f64, error: f64) -> f64 {
    let inverse = 1.0 / x.sqrt() * (1.0 + error);
    let (g, h) = (x * inverse, inverse * 0.5);
    let r = (-h).mul_add(g, 0.5);
    let (g, h) = (g.mul_add(r, g), h.mul_add(r, h));
    let near = (-g).mul_add(g, x).mul_add(h, g);
    let (below, above) = (near.next_down(), near.next_up());
    let mut root = near;
    if (-below).mul_add(near, x) <= 0.0 {
        root = below;
    }
    if (-above).mul_add(near, x) > 0.0 {
        root = above;
    }
    root
}

/// ISA §12.8: the reciprocal root of `f64` has an error of at most 2²⁹ units, which is 2⁻²³.
#[test]
fn square_roots_of_doubles_are_right_for_every_approximation() {
    let mut random = Random::new(3);
    for _ in 0..test_depth::cases(3_000_000, 200_000) {
        let exponent = 300 + random.next() % 1700;
        let near_square = (1.0 + (random.next() >> 38) as f64 / 67_108_864.0).powi(2);
        let any = f64::from_bits(exponent << 52 | random.next() >> 12);
        for x in [any, near_square, near_square.next_up(), near_square.next_down()] {
            let part = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0;
            for error in [0.0, 2f64.powi(-23), -(2f64.powi(-23)), part * 2f64.powi(-23)] {
                assert_eq!(root_double(x, error), x.sqrt(), "the root of {x:e} with an error of {error:e}");
            }
        }
    }
}
