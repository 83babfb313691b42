//! Axis 5 of a tile of rank 2.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64, 16>([p, 0]).reduce_sum::<5>());
}

fn main() {}
