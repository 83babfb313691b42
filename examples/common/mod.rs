//! Common code of the examples: reproducible numbers, plain matrix products, and a comparison that computes the error of a result.
#![allow(clippy::allow_attributes, dead_code, reason = "each example uses a part")]
#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "examples talk, and round as they say")]

use titan::prelude::*;

/// Numbers in −1 .. 1 that are the same at every run.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// `n` numbers of an element type.
    pub(crate) fn fill<T: Elem>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.next().cast()).collect()
    }

    /// `n` integers in `range`.
    pub(crate) fn ints(&mut self, n: usize, range: std::ops::Range<i32>) -> Vec<i32> {
        let width = (range.end - range.start) as f32;
        (0..n).map(|_| range.start + ((self.next() + 1.0) * 0.5 * width) as i32 % width as i32).collect()
    }
}

/// The elements as `f64`.
pub(crate) fn f64s<T: Elem>(v: &[T]) -> Vec<f64> {
    v.iter().map(|x| x.cast::<f64>()).collect()
}

/// C[m, n] = Σ_k A[m, k] · B[n, k]
pub(crate) fn matmul_nt(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    (0..m * n).map(|i| (0..k).map(|l| a[i / n * k + l] * b[i % n * k + l]).sum()).collect()
}

/// The exact error function to 1e-15, by its series and its continued fraction.
pub(crate) fn erf(x: f64) -> f64 {
    if x.abs() < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut tail = 0.0;
    for n in (1..=60).rev() {
        tail = f64::from(n) * 0.5 / (x.abs() + tail);
    }
    x.signum() * (1.0 - (-x * x).exp() / ((x.abs() + tail) * std::f64::consts::PI.sqrt()))
}

/// The greatest error against `want`, relative to 1 + |want|.
pub(crate) fn max_error<T: Elem>(got: &[T], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len(), "a result of another length");
    let error = |(g, w): (f64, &f64)| if g == *w { 0.0 } else { (g - w).abs() / (1.0 + w.abs()) };
    // NaN counts as infinitely wrong.
    f64s(got).into_iter().zip(want).map(error).fold(0.0, |a, e| if e.is_nan() { f64::INFINITY } else { a.max(e) })
}

/// Prints a line.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Prints what was done and how well.
///
/// # Panics
/// If the error is above the bound: then the result is wrong.
pub(crate) fn report(what: &str, dev: &Device, error: f64, bound: f64) {
    println!("{what} on {dev}: greatest error {error:.1e} (bound {bound:.0e})");
    assert!(error <= bound, "{what} is wrong");
}
