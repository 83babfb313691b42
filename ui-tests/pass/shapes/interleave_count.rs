//! The twin of `ui/shapes/interleave_count.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let v = x.load_tile::<4, 8>([p, 0]);
    y.store_tile([p, 0], v.interleave::<4, 16>(v));
}
