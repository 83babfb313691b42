//! `S: Shape` is for device functions.
use titan::prelude::*;

#[titan::kernel(instances(S in [D1]))]
fn copy<S: Shape>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
