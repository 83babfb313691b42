//! The twin of `ui/first_hour/vector_as_a_mask.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let (i, j) = (program_id(0), program_id(1));
    let inside = iota::<16>() + i * 16 < n;
    y.store_tile([i, j], select(inside.broadcast::<1, 64>(), x.load_tile::<16, 64>([i, j]), 0.0));
}
