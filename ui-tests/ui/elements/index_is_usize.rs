//! Indices are `i32`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, at: i64) {
    y.store_tile([program_id(0)], x.load_tile::<8>([at]));
}

fn main() {}
