//! CubeCL's example `gelu` (`gelu_array`), line by line. `ABSOLUTE_POS` and the guard against the end have no counterpart: a program computes a tile,
//! and what is beyond the end is not stored. The launch is not `unsafe`.
//!
//! Run with `cargo run --release --example cubecl_gelu`.
mod common;

use titan::prelude::*;

/// `output[i] = gelu(input[i])`, `CUBE_DIM` elements per program.
#[titan::kernel(instances(F in [f16, f32], CUBE_DIM in [256]))]
pub fn gelu_array<F: Float, const CUBE_DIM: i32>(
    #[shape(LEN)] input: &Tensor<F, 1>,
    #[shape(LEN)] output: &mut Tensor<F, 1>,
) {
    let pos = [program_id(0)];
    output.store_tile(pos, gelu_scalar(input.load_tile::<CUBE_DIM>(pos)));
}

/// `x · (erf(x / √2) + 1) / 2`
#[titan::device]
fn gelu_scalar<F: Float, S: Shape>(x: Tile<F, S>) -> Tile<F, S> {
    let (sqrt2, one, two) = (std::f32::consts::SQRT_2.cast::<F>(), 1.0f32.cast::<F>(), 2.0f32.cast::<F>());
    x * ((x / sqrt2).erf() + one) / two
}

/// The greatest error over these numbers.
pub(crate) fn check<F: Float>(dev: &Device, host: &[F]) -> titan::Result<f64> {
    let n = host.len();
    let input = dev.tensor(host, [n])?;
    let (mut output, mut again) = (dev.zeros([n])?, dev.zeros([n])?);
    gelu_array::generic::<F, 256>(&input, &mut output).sync()?;
    gelu_array::generic_reference::<F, 256>(&input, &mut again)?;
    let exact = |x: f64| x * (common::erf(x / std::f64::consts::SQRT_2) + 1.0) / 2.0;
    let want: Vec<f64> = common::f64s(host).into_iter().map(exact).collect();
    Ok(common::max_error(&output.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("gelu of the four numbers of the original", &dev, check(&dev, &[-1.0f32, 0.0, 1.0, 5.0])?, 1e-6);
    let many = common::Rng::new(24).fill::<f16>(100_000);
    common::report("gelu of 100 000 elements of f16", &dev, check(&dev, &many)?, 2e-3);
    Ok(())
}
