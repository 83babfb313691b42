//! The same, of what is stored.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], x);
}

fn main() {}
