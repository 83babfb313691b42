//! The twin of `ui/parts/not_joined.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (a, b) = (x.load_tile::<8, 16>([0, 0]), x.load_tile::<8, 32>([0, 1]));
    y.store_tile([program_id(0), 0], a.concat::<8, 48>(b));
}
