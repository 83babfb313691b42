//! Kernels have no lifetime parameters.
use titan::prelude::*;

#[titan::kernel]
fn k<'a>(x: &'a Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
