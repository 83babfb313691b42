//! Triton's second tutorial, `python/tutorials/02-fused-softmax.py` (`softmax_kernel`), line by line: a persistent kernel whose programs each
//! compute several rows. The loop over `range(program_id, n_rows, num_programs)` is `output.tiles()`, and the launch chooses the number of
//! programs. The width of a block need not be a power of two.
//!
//! Run with `cargo run --release --example triton_softmax`.
mod common;

use titan::prelude::*;

/// Softmax of each row of up to `BLOCK_SIZE` elements.
#[titan::kernel(instances(BLOCK_SIZE in [1024, 100]), require(N_COLS <= BLOCK_SIZE))]
pub fn softmax_kernel<const BLOCK_SIZE: i32>(
    #[shape(N_ROWS, N_COLS)] output: &mut Tensor<f32, 2>,
    #[shape(N_ROWS, N_COLS)] input: &Tensor<f32, 2>,
) {
    for out in output.tiles::<1, BLOCK_SIZE>() {
        let row = input.load_tile_or::<1, BLOCK_SIZE>(out.index(), f32::NEG_INFINITY);
        let row_minus_max = row - row.reduce_max::<1>().col();
        let numerator = row_minus_max.exp();
        let denominator = numerator.reduce_sum::<1>();
        let softmax_output = numerator / denominator.col();
        out.store(softmax_output);
    }
}

/// The greatest error on an `m` × `n` matrix.
pub(crate) fn check(dev: &Device, m: usize, n: usize) -> titan::Result<f64> {
    let host = common::Rng::new(22).fill::<f32>(m * n);
    let input = dev.tensor(&host, [m, n])?;
    let (mut output, mut again) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
    if n <= 100 {
        softmax_kernel::<100>(&mut output, &input).sync()?;
        softmax_kernel::reference::<100>(&mut again, &input)?;
    } else {
        softmax_kernel::<1024>(&mut output, &input).sync()?;
        softmax_kernel::reference::<1024>(&mut again, &input)?;
    }
    let row = |row: &[f32]| {
        let exponentials: Vec<f64> = row.iter().map(|v| f64::from(*v).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.into_iter().map(move |e| e / sum)
    };
    let want: Vec<f64> = host.chunks(n).flat_map(row).collect();
    Ok(common::max_error(&output.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("softmax_kernel of 1823 rows of 781", &dev, check(&dev, 1823, 781)?, 1e-6);
    Ok(())
}
