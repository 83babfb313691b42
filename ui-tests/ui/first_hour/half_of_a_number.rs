//! Halves are made by casts.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * f16::from_f32(0.1));
}

fn main() {}
