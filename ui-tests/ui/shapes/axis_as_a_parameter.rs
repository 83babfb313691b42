//! An axis is a number.
use titan::prelude::*;

#[titan::kernel(instances(A in [0, 1]), grid(1))]
fn k<const A: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    y.store_tile([0], x.load_tile::<8, 8>([0, 0]).reduce_sum::<A>());
}

fn main() {}
