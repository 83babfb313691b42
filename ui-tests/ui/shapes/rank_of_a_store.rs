//! A tile of rank 1 into a tensor of rank 2.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p, 0], v);
}

fn main() {}
