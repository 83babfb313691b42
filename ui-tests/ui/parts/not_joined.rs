//! Two tiles that do not make up the result.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (a, b) = (x.load_tile::<8, 16>([0, 0]), x.load_tile::<8, 32>([0, 1]));
    y.store_tile([program_id(0), 0], a.concat::<16, 32>(b));
}

fn main() {}
