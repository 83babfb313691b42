//! Row softmax of any width up to the tile's: the padding is −∞, so that it does not contribute.
//!
//! Run with `cargo run --release --example softmax`.
mod common;

use titan::prelude::*;

/// y[m, ..] = softmax(x[m, ..]), one row per program.
#[titan::kernel(instances(BN in [1024, 64]), grid(M), require(N <= BN))]
pub fn softmax<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let at = [program_id(0), 0];
    let v = x.load_tile_or::<1, BN>(at, f32::NEG_INFINITY);
    let e = (v - v.reduce_max::<1>().col()).exp();
    y.store_tile(at, e / e.reduce_sum::<1>().col());
}

/// The greatest error on an `m` × `n` matrix.
pub(crate) fn check(dev: &Device, m: usize, n: usize) -> titan::Result<f64> {
    let xh = common::Rng::new(2).fill::<f32>(m * n);
    let x = dev.tensor(&xh, [m, n])?;
    let (mut y, mut again) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
    softmax::<1024>(&x, &mut y).sync()?;
    softmax::reference::<1024>(&x, &mut again)?;
    let rows = xh.chunks(n).map(common::f64s);
    let want: Vec<f64> = rows
        .flat_map(|row| {
            let sum: f64 = row.iter().map(|v| v.exp()).sum();
            row.into_iter().map(move |v| v.exp() / sum)
        })
        .collect();
    Ok(common::max_error(&y.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("softmax of 257 rows of 1000", &dev, check(&dev, 257, 1000)?, 1e-6);
    Ok(())
}
