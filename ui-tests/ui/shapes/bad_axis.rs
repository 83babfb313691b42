//! Axes count from zero.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m], x.load_tile::<16, 8>([m, 0]).reduce_sum::<2>());
}

fn main() {}
