//! The twin of `ui/shapes/carried_shape.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let p = program_id(0);
    let mut v = x.load_tile::<8, 4>([p, 0]);
    for _ in 0..n {
        v = v.t().t();
    }
    y.store_tile([p, 0], v);
}
