//! What the examples share: reproducible numbers, plain products, and a comparison that says how far off a result is.
#![allow(dead_code, reason = "each example uses a part")]

use titan::prelude::*;

/// Numbers in −1 .. 1 that are the same at every run.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// `n` numbers of an element type.
    pub fn fill<T: Elem>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.next().cast()).collect()
    }

    /// `n` integers in `range`.
    pub fn ints(&mut self, n: usize, range: std::ops::Range<i32>) -> Vec<i32> {
        let width = (range.end - range.start) as f32;
        (0..n).map(|_| range.start + ((self.next() + 1.0) * 0.5 * width) as i32 % width as i32).collect()
    }
}

/// The elements as `f64`.
pub fn f64s<T: Elem>(v: &[T]) -> Vec<f64> {
    v.iter().map(|x| x.cast::<f64>()).collect()
}

/// C[m, n] = Σ_k A[m, k] · B[n, k]
pub fn matmul_nt(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    (0..m * n).map(|i| (0..k).map(|l| a[i / n * k + l] * b[i % n * k + l]).sum()).collect()
}

/// The exact error function to 1e-15, by its series and its continued fraction.
pub fn erf(x: f64) -> f64 {
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
pub fn max_error<T: Elem>(got: &[T], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len(), "a result of another length");
    let error = |(g, w): (f64, &f64)| if g == *w { 0.0 } else { (g - w).abs() / (1.0 + w.abs()) };
    // NaN counts as infinitely wrong.
    f64s(got).into_iter().zip(want).map(error).fold(0.0, |a, e| if e.is_nan() { f64::INFINITY } else { a.max(e) })
}

/// Prints what was done and how well; an error above `bound` ends the program.
pub fn report(what: &str, dev: &Device, error: f64, bound: f64) {
    println!("{what} on {dev}: greatest error {error:.1e} (bound {bound:.0e})");
    if error.is_nan() || error > bound {
        eprintln!("{what}: WRONG");
        std::process::exit(1);
    }
}
