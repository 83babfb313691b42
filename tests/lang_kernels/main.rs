//! Kernels of an inference engine in the form that the macro gives them, run on ragged shapes against plain loops.

mod attention;
mod conv;
mod gemm;
mod moe;
mod norm;
mod quant;

use titan::lang::{Shared, Tensor};
use titan::prelude::*;

/// Numbers in −1..1, the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f64 / f64::from(1 << 23) - 1.0
    }

    fn many<T: Elem>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.next().cast()).collect()
    }

    /// Integers in `lo..hi`.
    fn within<T: Elem>(&mut self, n: usize, lo: i32, hi: i32) -> Vec<T> {
        let span = f64::from(hi - lo) / 2.0;
        (0..n).map(|_| (((self.next() + 1.0) * span).floor() + f64::from(lo)).cast()).collect()
    }
}

/// A row-major tensor of these elements.
fn tensor<T: Elem, const R: usize>(values: &[T], extents: [i32; R]) -> Tensor<T, R> {
    memory(Shared::new(values.to_vec()), extents)
}

/// A row-major tensor over memory that the test reads later.
fn memory<T: Elem, const R: usize>(shared: Shared<T>, extents: [i32; R]) -> Tensor<T, R> {
    let mut strides = [1; R];
    for axis in (1..R).rev() {
        strides[axis - 1] = strides[axis] * i64::from(extents[axis]);
    }
    Tensor::from_host(shared, 0, extents, strides)
}

fn f64s<T: Elem>(values: &[T]) -> Vec<f64> {
    values.iter().map(|x| x.cast()).collect()
}

#[track_caller]
fn close<T: Elem>(got: &Shared<T>, want: &[f64], tolerance: f64) {
    let got = f64s(&got.to_vec());
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "element {i}: {g}, but {w} is right");
    }
}

/// `a · bᵀ` of row-major `[m, k]` and `[n, k]`.
fn matmul(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let dot = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
    (0..m * n).map(|i| dot(i / n, i % n)).collect()
}
