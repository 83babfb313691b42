//! An operation is called.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, bias: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<16, 64>([m, n]) + bias.load_tile::<64>([n]).row);
}

fn main() {}
