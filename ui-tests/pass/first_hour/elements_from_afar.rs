//! The macro gives rustc the element types that follow from other arguments.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f16, 2>, b: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>, s: f32) {
    let (i, j) = (program_id(0), program_id(1));
    let (a, b) = (a.load_tile::<16, 16>([i, 0]), b.load_tile::<16, 16>([0, j]));
    let product = mma(a, b, Tile::zeros()) * s;
    let mut sum = Tile::zeros();
    sum += (mma(a, b, Tile::zeros()) * s).exp();
    y.store_tile([i, j], a.cast() * s + (product + sum).sqrt());
}
