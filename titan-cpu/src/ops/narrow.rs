//! Products of few rows with many, as in every step of a decoder: `sums[j][i] = Σ few[i][k] · many[j][k]`.
//!
//! What such a product takes is the time to read the many rows once. So their elements are widened to `f32` in registers, instead of being
//! converted and packed in memory first, which pays off only where each is multiplied with many others.
//!
//! Worked example: one row of 4096 elements and 64 rows of weights in `f16`. 16 elements of a weight at a time are widened, multiplied with 16
//! of the row, and added to 16 partial sums, which are in two vectors of AVX2; at the end of the row the partial sums are added.
//!
//! Deliberately absent: sums in other types than `f32`; elements of less than 16 bits, whose rows are widened in memory before.

use crate::rep::{bf16_to_f32, f16_to_f32};
use crate::simd::{Isa, Loop};
use half::{bf16, f16};

/// The largest number of rows that are few.
pub(crate) const MOST: usize = 8;
/// The number of few rows that are multiplied at once, so that their partial sums are in registers.
const TOGETHER: usize = 4;
/// The number of partial sums of a row.
pub(crate) const LANES: usize = 16;

/// One of the many rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Row<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

/// The products of one row with each of the `few`, which are rows of as many elements, one after the other.
pub(crate) fn products(isa: Isa, few: &[f32], row: Row<'_>, sums: &mut [f32]) {
    if let (Row::F16(row), Some(f16c)) = (row, isa.f16c()) {
        return f16c.products(few, row, sums);
    }
    isa.run(Products { few, row, sums });
}

struct Products<'a> {
    few: &'a [f32],
    row: Row<'a>,
    sums: &'a mut [f32],
}

impl Loop for Products<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        match self.row {
            Row::F32(row) => all::<f32, FMA>(self.few, row, (|x| *x, |x| x), self.sums),
            Row::F16(row) => all::<f16, FMA>(self.few, row, (|x| x.map(f16_to_f32), f16_to_f32), self.sums),
            Row::Bf16(row) => all::<bf16, FMA>(self.few, row, (|x| x.map(bf16_to_f32), bf16_to_f32), self.sums),
        }
    }
}

/// The products, where `wide` gives `f32` of [`LANES`] elements and of one.
#[inline(always)]
pub(crate) fn all<T: Copy, const FMA: bool>(
    few: &[f32],
    row: &[T],
    widen: (impl Fn(&[T; LANES]) -> [f32; LANES] + Copy, impl Fn(T) -> f32 + Copy),
    sums: &mut [f32],
) {
    let k = row.len().max(1);
    for (few, sums) in few.chunks(TOGETHER * k).zip(sums.chunks_mut(TOGETHER)) {
        match sums {
            [a] => [*a] = some::<T, 1, FMA>(few, row, widen),
            [a, b] => [*a, *b] = some::<T, 2, FMA>(few, row, widen),
            [a, b, c] => [*a, *b, *c] = some::<T, 3, FMA>(few, row, widen),
            [a, b, c, d] => [*a, *b, *c, *d] = some::<T, TOGETHER, FMA>(few, row, widen),
            _ => {}
        }
    }
}

#[inline(always)]
fn some<T: Copy, const R: usize, const FMA: bool>(
    few: &[f32],
    row: &[T],
    (widen, widen_one): (impl Fn(&[T; LANES]) -> [f32; LANES], impl Fn(T) -> f32),
) -> [f32; R] {
    let mut sums = [[0f32; LANES]; R];
    let few: [&[f32]; R] = std::array::from_fn(|i| few.get(i * row.len()..(i + 1) * row.len()).unwrap_or_default());
    let parts = few.map(|row| row.as_chunks::<LANES>().0);
    let (chunks, rest) = row.as_chunks::<LANES>();
    let step = |sum: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]| {
        for i in 0..LANES {
            sum[i] = if FMA { a[i].mul_add(b[i], sum[i]) } else { a[i] * b[i] + sum[i] };
        }
    };
    for (at, chunk) in chunks.iter().enumerate() {
        let wide = widen(chunk);
        for (sum, part) in sums.iter_mut().zip(&parts) {
            if let Some(a) = part.get(at) {
                step(sum, a, &wide);
            }
        }
    }
    for (i, x) in rest.iter().enumerate() {
        let x = widen_one(*x);
        for (sum, row) in sums.iter_mut().zip(&few) {
            sum[i] += row[row.len() - rest.len() + i] * x;
        }
    }
    sums.map(|sum| {
        let eight: [f32; 8] = std::array::from_fn(|i| sum[i] + sum[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    })
}
