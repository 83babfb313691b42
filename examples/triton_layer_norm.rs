//! Triton's fifth tutorial, `python/tutorials/05-layer-norm.py`, its forward pass (`_layer_norm_fwd_fused`), line by line: the row is read three
//! times, a block at a time. The tutorial's backward pass adds partial sums under a lock, which has no counterpart; the book has one without
//! locks, in `book/src/tutorials/layer-norm.md`.
//!
//! Run with `cargo run --release --example triton_layer_norm`.
mod common;

use titan::prelude::*;

/// `y = (x − mean) · rstd · w + b` for each row.
#[titan::kernel(instances(T in [f16, f32], BLOCK_SIZE in [256]), grid(M))]
pub fn layer_norm_fwd_fused<T: Float, const BLOCK_SIZE: i32>(
    #[shape(M, N)] x: &Tensor<T, 2>,
    #[shape(M, N)] y: &mut Tensor<T, 2>,
    #[shape(N)] w: &Tensor<T, 1>,
    #[shape(N)] b: &Tensor<T, 1>,
    #[shape(M)] mean: &mut Tensor<f32, 1>,
    #[shape(M)] rstd: &mut Tensor<f32, 1>,
    eps: f32,
) {
    let row = program_id(0);
    let x = x.index::<0>(row);
    let mut y = y.index_mut::<0>(row);
    // Compute the mean.
    let mut sums = Tile::<f32, BLOCK_SIZE>::zeros();
    for off in 0..cdiv(N, BLOCK_SIZE) {
        sums += x.load_tile::<BLOCK_SIZE>([off]).cast::<f32>();
    }
    let average = sums.reduce_sum::<0>() / N as f32;
    // Compute the variance.
    let mut squares = Tile::<f32, BLOCK_SIZE>::zeros();
    for off in 0..cdiv(N, BLOCK_SIZE) {
        let cols = iota::<BLOCK_SIZE>() + off * BLOCK_SIZE;
        let v = x.load_tile::<BLOCK_SIZE>([off]).cast::<f32>();
        let v = select(cols < N, v - average, 0.0);
        squares += v * v;
    }
    let variance = squares.reduce_sum::<0>() / N as f32;
    let scale = 1.0 / (variance + eps).sqrt();
    mean.set([row], average);
    rstd.set([row], scale);
    // Normalize, and apply the linear transformation.
    for off in 0..cdiv(N, BLOCK_SIZE) {
        let w = w.load_tile::<BLOCK_SIZE>([off]).cast::<f32>();
        let b = b.load_tile::<BLOCK_SIZE>([off]).cast::<f32>();
        let v = x.load_tile::<BLOCK_SIZE>([off]).cast::<f32>();
        let normal = (v - average) * scale;
        y.store_tile([off], (normal * w + b).cast());
    }
}

/// The greatest error on `m` rows of `n`.
pub(crate) fn check<T: Float>(dev: &Device, m: usize, n: usize) -> titan::Result<f64> {
    const EPS: f64 = 1e-5;
    let mut rng = common::Rng::new(23);
    // As in the tutorial: a mean that is far from 0, and a deviation below 1.
    let xh: Vec<T> = (0..m * n).map(|_| (rng.next() * 0.9 - 2.3).cast()).collect();
    let (wh, bh) = (rng.fill::<T>(n), rng.fill::<T>(n));
    let (x, w, b) = (dev.tensor(&xh, [m, n])?, dev.tensor(&wh, [n])?, dev.tensor(&bh, [n])?);
    let (ws, bs) = (common::f64s(&wh), common::f64s(&bh));
    let (mut means, mut scales, mut want) = (Vec::new(), Vec::new(), Vec::new());
    for row in common::f64s(&xh).chunks(n) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let scale = 1.0 / (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64 + EPS).sqrt();
        want.extend(row.iter().zip(ws.iter().zip(&bs)).map(|(v, (w, b))| (v - mean) * scale * w + b));
        means.push(mean);
        scales.push(scale);
    }
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut y, mut mean, mut rstd) = (dev.zeros([m, n])?, dev.zeros([m])?, dev.zeros([m])?);
        if reference {
            layer_norm_fwd_fused::generic_reference::<T, 256>(&x, &mut y, &w, &b, &mut mean, &mut rstd, EPS as f32)?;
        } else {
            layer_norm_fwd_fused::generic::<T, 256>(&x, &mut y, &w, &b, &mut mean, &mut rstd, EPS as f32).sync()?;
        }
        error = error.max(common::max_error(&y.to_vec()?, &want));
        error = error.max(common::max_error(&mean.to_vec()?, &means));
        error = error.max(common::max_error(&rstd.to_vec()?, &scales));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("layer norm of 115 rows of 8192, f16", &dev, check::<f16>(&dev, 115, 8192)?, 2e-3);
    common::report("layer norm of 115 rows of 8192, f32", &dev, check::<f32>(&dev, 115, 8192)?, 1e-5);
    Ok(())
}
