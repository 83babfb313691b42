//! Row kernels by hand: rayon over rows, plain std functions, sums in independent partial sums.

use rayon::prelude::*;

/// Input, weights, output, row length.
pub(crate) type ByHand = fn(&[f32], &[f32], &mut [f32], usize);

/// Rows of one task: enough that rayon's own work does not show.
const ROWS: usize = 16;

fn for_rows(x: &[f32], y: &mut [f32], n: usize, f: impl Fn(&[f32], &mut [f32]) + Sync) {
    x.par_chunks(ROWS * n).zip(y.par_chunks_mut(ROWS * n)).for_each(|(x, y)| {
        x.chunks_exact(n).zip(y.chunks_exact_mut(n)).for_each(|(x, y)| f(x, y));
    });
}

fn fold(x: &[f32], start: f32, f: impl Fn(f32, f32) -> f32, merge: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; 16];
    let chunks = x.chunks_exact(16);
    let rest = chunks.remainder().iter().fold(start, |s, v| f(s, *v));
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, v)| *lane = f(*lane, *v));
    }
    lanes.iter().fold(rest, |s, lane| merge(s, *lane))
}

fn sum(x: &[f32]) -> f32 {
    fold(x, 0.0, |s, v| s + v, |a, b| a + b)
}

pub(crate) fn copy(x: &[f32], _: &[f32], y: &mut [f32], n: usize) {
    for_rows(x, y, n, |x, y| y.copy_from_slice(x));
}

pub(crate) fn softmax(x: &[f32], _: &[f32], y: &mut [f32], n: usize) {
    for_rows(x, y, n, |x, y| {
        let max = fold(x, f32::NEG_INFINITY, f32::max, f32::max);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - max).exp());
        let scale = 1.0 / sum(y);
        y.iter_mut().for_each(|y| *y *= scale);
    });
}

pub(crate) fn rms_norm(x: &[f32], w: &[f32], y: &mut [f32], n: usize) {
    for_rows(x, y, n, |x, y| {
        let squares = fold(x, 0.0, |s, v| s + v * v, |a, b| a + b);
        let rstd = 1.0 / (squares / n as f32 + 1e-5).sqrt();
        y.iter_mut().zip(x).zip(w).for_each(|((y, x), w)| *y = x * rstd * w);
    });
}

pub(crate) fn layer_norm(x: &[f32], w: &[f32], y: &mut [f32], n: usize) {
    for_rows(x, y, n, |x, y| {
        let mean = sum(x) / n as f32;
        let squares = fold(x, 0.0, |s, v| s + (v - mean) * (v - mean), |a, b| a + b);
        let rstd = 1.0 / (squares / n as f32 + 1e-5).sqrt();
        y.iter_mut().zip(x).zip(w).for_each(|((y, x), w)| *y = (x - mean) * rstd * w);
    });
}
