//! Triton's first tutorial, `python/tutorials/01-vector-add.py` (`add_kernel`), line by line. The mask has no counterpart: loads beyond the end
//! read zeros, and stores beyond the end are dropped.
//!
//! Run with `cargo run --release --example triton_vector_add`.
mod common;

use titan::prelude::*;

/// `output[i] = x[i] + y[i]`, `BLOCK_SIZE` elements per program.
#[titan::kernel(instances(BLOCK_SIZE in [1024]), grid(cdiv(N_ELEMENTS, BLOCK_SIZE)))]
pub fn add_kernel<const BLOCK_SIZE: i32>(
    #[shape(N_ELEMENTS)] x: &Tensor<f32, 1>,
    #[shape(N_ELEMENTS)] y: &Tensor<f32, 1>,
    #[shape(N_ELEMENTS)] output: &mut Tensor<f32, 1>,
) {
    let pid = program_id(0);
    let block_start = pid * BLOCK_SIZE;
    let x = x.load_at::<BLOCK_SIZE>([block_start]);
    let y = y.load_at::<BLOCK_SIZE>([block_start]);
    output.store_at([block_start], x + y);
}

/// The greatest error over `n` elements.
pub(crate) fn check(dev: &Device, n: usize) -> titan::Result<f64> {
    let mut rng = common::Rng::new(21);
    let (xh, yh) = (rng.fill::<f32>(n), rng.fill::<f32>(n));
    let (x, y) = (dev.tensor(&xh, [n])?, dev.tensor(&yh, [n])?);
    let (mut output, mut again) = (dev.zeros([n])?, dev.zeros([n])?);
    add_kernel(&x, &y, &mut output).sync()?;
    add_kernel::reference::<1024>(&x, &y, &mut again)?;
    let want: Vec<f64> = xh.iter().zip(&yh).map(|(x, y)| f64::from(*x) + f64::from(*y)).collect();
    Ok(common::max_error(&output.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("add_kernel of 98 432 elements", &dev, check(&dev, 98_432)?, 1e-6);
    Ok(())
}
