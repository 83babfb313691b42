//! One part of an index taken apart is not used.
use titan::prelude::*;

#[titan::kernel(grid(H * W))]
fn k(#[shape(H, W)] x: &Tensor<f32, 2>, #[shape(H, W)] y: &mut Tensor<f32, 2>) {
    let [i, j] = unflatten(program_id(0), [H, W]);
    y.set([i, 0], x.get([i, j]));
}

fn main() {}
