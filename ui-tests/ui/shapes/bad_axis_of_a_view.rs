//! A view along an axis that the tensor does not have.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.index::<2>(0).load_tile::<8>([p]));
}

fn main() {}
