//! The smallest kernel: z = x + y, one block of elements per program.
//!
//! Run with `cargo run --release --example vector_add`.
mod common;

use titan::prelude::*;

/// z[i] = x[i] + y[i]
#[titan::kernel(instances(B in [1024]), grid(cdiv(N, B)))]
pub fn vector_add<const B: i32>(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] y: &Tensor<f32, 1>,
    #[shape(N)] z: &mut Tensor<f32, 1>,
) {
    let at = [program_id(0)];
    z.store_tile(at, x.load_tile::<B>(at) + y.load_tile::<B>(at));
}

/// The greatest error over `n` elements; `n` need not be a multiple of the block.
pub(crate) fn check(dev: &Device, n: usize) -> titan::Result<f64> {
    let mut rng = common::Rng::new(1);
    let (xh, yh) = (rng.fill::<f32>(n), rng.fill::<f32>(n));
    let (x, y) = (dev.tensor(&xh, [n])?, dev.tensor(&yh, [n])?);
    let mut z = dev.zeros([n])?;
    vector_add(&x, &y, &mut z).sync()?;
    let want: Vec<f64> = xh.iter().zip(&yh).map(|(x, y)| f64::from(*x) + f64::from(*y)).collect();
    let error = common::max_error(&z.to_vec()?, &want);

    let mut again = dev.zeros([n])?;
    vector_add::reference::<1024>(&x, &y, &mut again)?;
    Ok(error.max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("vector_add of 1 000 003 elements", &dev, check(&dev, 1_000_003)?, 1e-6);
    Ok(())
}
