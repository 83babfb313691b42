//! Residual addition and RMS norm in one pass; the residual is updated in place.
//!
//! Run with `cargo run --release --example rms_norm`.
mod common;

use titan::prelude::*;

/// `res += x; out = res / rms(res) * w`, one row per program.
#[titan::kernel(instances(T in [f16, bf16], BN in [64, 5120]), grid(M), require(N <= BN))]
pub fn add_rms_norm<T: Float, const BN: i32>(
    #[shape(M, N)] x: &Tensor<T, 2>,
    #[shape(M, N)] res: &mut Tensor<T, 2>,
    #[shape(N)] w: &Tensor<T, 1>,
    #[shape(M, N)] out: &mut Tensor<T, 2>,
    eps: f32,
) {
    let at = [program_id(0), 0];
    let h = x.load_tile::<1, BN>(at).cast::<f32>() + res.load_tile::<1, BN>(at).cast();
    res.store_tile(at, h.cast::<T>());
    let rstd = ((h * h).reduce_sum::<1>() / N as f32 + eps).rsqrt();
    let y = h * rstd.col() * w.load_tile::<BN>([0]).cast::<f32>().row();
    out.store_tile(at, y.cast());
}

/// The greatest error on `m` rows of `n`.
pub(crate) fn check(dev: &Device, m: usize, n: usize) -> titan::Result<f64> {
    let mut rng = common::Rng::new(5);
    let (xh, rh, wh) = (rng.fill::<f16>(m * n), rng.fill::<f16>(m * n), rng.fill::<f16>(n));
    let (x, w) = (dev.tensor(&xh, [m, n])?, dev.tensor(&wh, [n])?);
    let sum: Vec<f64> = common::f64s(&xh).iter().zip(common::f64s(&rh)).map(|(a, b)| a + b).collect();
    let mean = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>() / n as f64;
    let want: Vec<f64> =
        (0..m * n).map(|i| sum[i] / (mean(&sum[i / n * n..][..n]) + 1e-5).sqrt() * wh[i % n].to_f64()).collect();
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut res, mut out) = (dev.tensor(&rh, [m, n])?, dev.zeros([m, n])?);
        if reference {
            add_rms_norm::reference::<f16, 5120>(&x, &mut res, &w, &mut out, 1e-5)?;
        } else {
            add_rms_norm::<f16, 5120>(&x, &mut res, &w, &mut out, 1e-5).sync()?;
        }
        error = error.max(common::max_error(&out.to_vec()?, &want)).max(common::max_error(&res.to_vec()?, &sum));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("add + RMS norm of 33 rows of 5000", &dev, check(&dev, 33, 5000)?, 4e-3);
    Ok(())
}
