//! A parameter with fields.
use titan::prelude::*;

#[derive(Clone, Copy)]
struct Params {
    scale: f32,
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, params: Params) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]) * params.scale);
}

fn main() {}
