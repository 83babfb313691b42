//! CubeCL's example `sum_things`: a sum by a loop (`sum_basic`), by a reduction over the units (`sum_subgroup`, later `sum_plane`), and one that is
//! multiplied with each element (`series` with `SumThenMul`). The original chooses among kinds of sums when the kernel is compiled, by a
//! `comptime` argument and by traits; here that is the constant `PLANE`.
//!
//! Run with `cargo run --release --example cubecl_sum`.
mod common;

use titan::dispatch;
use titan::prelude::*;

/// The sum of all elements, in each element of the output.
#[titan::kernel(instances(LEN in [4, 100]), grid(1))]
pub fn sum_basic<const LEN: i32>(#[shape(LEN)] input: &Tensor<f32, 1>, #[shape(LEN)] output: &mut Tensor<f32, 1>) {
    let mut sum = 0.0;
    for i in 0..LEN {
        sum += input.get([i]);
    }
    output.store_tile([program_id(0)], Tile::<f32, LEN>::full(sum));
}

/// The same by a reduction, if `PLANE`: the compiler uses shuffles within warps.
#[titan::kernel(instances(LEN in [4, 100], PLANE in [true, false]), grid(1))]
pub fn sum_plane<const LEN: i32, const PLANE: bool>(
    #[shape(LEN)] input: &Tensor<f32, 1>,
    #[shape(LEN)] output: &mut Tensor<f32, 1>,
) {
    let mut sum = 0.0;
    if PLANE {
        sum = input.load_tile::<LEN>([program_id(0)]).reduce_sum::<0>();
    } else {
        for i in 0..LEN {
            sum += input.get([i]);
        }
    }
    output.store_tile([program_id(0)], Tile::<f32, LEN>::full(sum));
}

/// The sum of a tile.
#[titan::device]
fn sum<const LEN: i32>(input: Tile<f32, LEN>) -> f32 {
    input.reduce_sum::<0>()
}

/// The sum times each element.
#[titan::device]
fn sum_then_mul<const LEN: i32>(input: Tile<f32, LEN>) -> Tile<f32, LEN> {
    sum(input) * input
}

/// A series of operations.
#[titan::kernel(instances(LEN in [4, 100]), grid(1))]
pub fn series<const LEN: i32>(#[shape(LEN)] input: &Tensor<f32, 1>, #[shape(LEN)] output: &mut Tensor<f32, 1>) {
    output.store_tile([program_id(0)], sum_then_mul(input.load_tile::<LEN>([program_id(0)])));
}

/// The greatest error of all kernels on these numbers, 4 or 100 of them.
pub(crate) fn check(dev: &Device, host: &[f32]) -> titan::Result<f64> {
    let n = host.len();
    let len = n as i32;
    let input = dev.tensor(host, [n])?;
    let total: f64 = host.iter().map(|v| f64::from(*v)).sum();
    let sums = vec![total; n];
    let products: Vec<f64> = host.iter().map(|v| total * f64::from(*v)).collect();
    let mut error = 0.0f64;
    for (kind, want) in [&sums, &sums, &sums, &products].into_iter().enumerate() {
        let (mut output, mut again) = (dev.full([n], f32::NAN)?, dev.full([n], f32::NAN)?);
        match kind {
            0 => {
                dispatch!(sum_basic::<len>(&input, &mut output)).sync()?;
                dispatch!(sum_basic::reference::<len>(&input, &mut again))?;
            }
            1 | 2 => {
                dispatch!(sum_plane::<len, { kind == 2 }>(&input, &mut output)).sync()?;
                dispatch!(sum_plane::reference::<len, { kind == 2 }>(&input, &mut again))?;
            }
            _ => {
                dispatch!(series::<len>(&input, &mut output)).sync()?;
                dispatch!(series::reference::<len>(&input, &mut again))?;
            }
        }
        error = error.max(common::max_error(&output.to_vec()?, want)).max(common::max_error(&again.to_vec()?, want));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("sums of the four numbers of the original", &dev, check(&dev, &[-1.0, 10.0, 1.0, 5.0])?, 0.0);
    let many = common::Rng::new(25).fill::<f32>(100);
    common::report("sums of a hundred numbers", &dev, check(&dev, &many)?, 1e-5);
    Ok(())
}
