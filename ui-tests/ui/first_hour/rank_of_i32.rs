//! A rank as a constant parameter.
use titan::prelude::*;

#[titan::kernel(instances(R in [1, 2]))]
fn k<const R: i32>(x: &Tensor<f32, R>, y: &mut Tensor<f32, R>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
