//! CubeCL's example `normalization` (`norm_test`), line by line. A line of four elements, the vectorization of the original, is a row of a matrix of
//! four columns: vectors of neighbouring elements are the compiler's choice.
//!
//! Run with `cargo run --release --example cubecl_normalization`.
mod common;

use titan::prelude::*;

/// Each row by its length, in two ways: by a function, and by a division.
#[titan::kernel(instances(CUBE_DIM in [64]), grid(cdiv(LINES, CUBE_DIM)))]
pub fn norm_test<const CUBE_DIM: i32>(
    #[shape(LINES, 4)] input: &Tensor<f32, 2>,
    #[shape(LINES, 4)] output_a: &mut Tensor<f32, 2>,
    #[shape(LINES, 4)] output_b: &mut Tensor<f32, 2>,
) {
    let pos = [program_id(0), 0];
    let line = input.load_tile::<CUBE_DIM, 4>(pos);
    output_a.store_tile(pos, normalize(line));
    output_b.store_tile(pos, line / magnitude(line).col());
}

/// The length of each row.
#[titan::device]
fn magnitude<const M: i32, const N: i32>(x: Tile<f32, M, N>) -> Tile<f32, M> {
    (x * x).reduce_sum::<1>().sqrt()
}

/// Each row times the reciprocal of its length.
#[titan::device]
fn normalize<const M: i32, const N: i32>(x: Tile<f32, M, N>) -> Tile<f32, M, N> {
    x * magnitude(x).recip().col()
}

/// The greatest error on rows of four numbers.
pub(crate) fn check(dev: &Device, host: &[f32]) -> titan::Result<f64> {
    let shape = [host.len() / 4, 4];
    let input = dev.tensor(host, shape)?;
    let row = |row: &[f64]| {
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        row.iter().map(|v| v / length).collect::<Vec<f64>>()
    };
    let want: Vec<f64> = common::f64s(host).chunks(4).flat_map(row).collect();
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut a, mut b) = (dev.zeros(shape)?, dev.zeros(shape)?);
        if reference {
            norm_test::reference::<64>(&input, &mut a, &mut b)?;
        } else {
            norm_test(&input, &mut a, &mut b).sync()?;
        }
        error = error.max(common::max_error(&a.to_vec()?, &want)).max(common::max_error(&b.to_vec()?, &want));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("normalization of four numbers", &dev, check(&dev, &[-1.0, 0.0, 1.0, 5.0])?, 1e-6);
    let many = common::Rng::new(26).fill::<f32>(4 * 1001);
    common::report("normalization of 1001 rows of four", &dev, check(&dev, &many)?, 1e-6);
    Ok(())
}
