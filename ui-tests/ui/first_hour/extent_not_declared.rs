//! The name of an extent that no tensor declares.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mask = iota::<64>() + p * 64 < N;
    y.store_tile([p], select(mask, x.load_tile::<64>([p]), -1.0));
}

fn main() {}
