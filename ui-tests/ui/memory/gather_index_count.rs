//! One index tile for each axis.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let i = iota::<8>();
    y.store_tile([p], x.gather([i]));
}

fn main() {}
