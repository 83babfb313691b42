//! Matrix products of one wave.

use super::{Case, map};
use crate::trial::{Element, Trial, tame, u32s};
use half::{bf16, f16};

/// `D = A Bᵀ` of one wave; the numbers are short, so that every sum is exact.
fn product<T: Element, D: Element>(
    t: &mut Trial<'_>,
    (size, k): (usize, usize),
    [x, y]: [Vec<T>; 2],
    value: impl Fn(T) -> f64,
    round: impl Fn(f64) -> D,
) {
    let (a, b, d) = (t.put(&x), t.put(&y), t.out::<D>(size * size));
    t.run(1, 64, &[a.arg(), b.arg(), d.arg()]);
    let at = |i: usize, j: usize| (0..k).map(|e| value(x[i * k + e]) * value(y[j * k + e])).sum::<f64>();
    t.is(d, &(0..size * size).map(|n| round(at(n / size, n % size))).collect::<Vec<D>>());
}

fn short(n: usize, seed: u64) -> Vec<f32> {
    map(&tame(n, seed), |x| (x * 4.0).trunc() / 4.0)
}

fn two<T>(n: usize, f: impl Fn(f32) -> T) -> [Vec<T>; 2] {
    [1, 2].map(|s| map(&short(n, s), &f))
}

/// fp8 with a bias of 8, -0 for NaN: from the definition.
fn fp8(bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size =
        if exponent == 0 { fraction / 8.0 * 2_f64.powi(-7) } else { (1.0 + fraction / 8.0) * 2_f64.powi(exponent - 8) };
    if bits & 0x80 != 0 { -size } else { size }
}

pub(crate) const CASES: &[Case] = &[
    ("mfma_f16_16", |t| product(t, (16, 16), two(256, f16::from_f32), f16::to_f64, |x| x as f32)),
    ("mfma_f16_32", |t| product(t, (32, 32), two(1024, f16::from_f32), f16::to_f64, |x| x as f32)),
    ("mfma_bf16_16", |t| product(t, (16, 16), two(256, bf16::from_f32), bf16::to_f64, |x| x as f32)),
    ("mfma_bf16_32", |t| product(t, (32, 8), two(256, bf16::from_f32), bf16::to_f64, |x| x as f32)),
    ("mfma_i8_16", |t| {
        let bytes = |s| map(&u32s(512, s), |x| (x ^ x >> 11) as i8);
        product(t, (16, 32), [bytes(3), bytes(4)], f64::from, |x| x as i32);
    }),
    ("mfma_fp8_16", |t| {
        // Exponents of a few octaves.
        let bytes = |s| map(&u32s(512, s), |x| (x as u8 & 0x87) | 0x38 | (x >> 8) as u8 & 0x10);
        product(t, (16, 32), [bytes(5), bytes(6)], fp8, |x| x as f32);
    }),
    ("mfma_f32_32", |t| product(t, (32, 4), two(128, |x| x), f64::from, |x| x as f32)),
    ("mfma_f64_16", |t| product(t, (16, 4), two(64, f64::from), |x| x, |x| x)),
];
