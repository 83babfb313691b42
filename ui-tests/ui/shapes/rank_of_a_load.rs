//! A tile of rank 1 out of a tensor of rank 2.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<16>([p, 0]));
}

fn main() {}
