//! One argument too few.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let t = x.load_tile::<16, 16>([0, 0]);
    y.store_tile([0, 0], mma(t, t));
}

fn main() {}
