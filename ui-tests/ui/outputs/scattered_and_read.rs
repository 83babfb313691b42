//! What is scattered to is not read: other programs write it.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let i = ix.load_tile::<8>([program_id(0)]);
    let v = y.gather([i]);
    y.scatter([i], v + 1.0);
}

fn main() {}
