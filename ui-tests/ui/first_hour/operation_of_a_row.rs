//! Rows have operators, vectors have operations.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, b: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let (i, j) = (program_id(0), program_id(1));
    let scale = b.load_tile::<64>([j]).row().exp();
    y.store_tile([i, j], x.load_tile::<16, 64>([i, j]) * scale);
}

fn main() {}
