//! A branch gives scalars and tiles, not tensors.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f32, 1>, b: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let v = if n > 0 { a } else { b }.load_tile::<8>([p]);
    y.store_tile([p], v);
}

fn main() {}
