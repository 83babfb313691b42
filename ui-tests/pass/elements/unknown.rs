//! The twin of `ui/elements/unknown.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).cast::<f64>();
    y.store_tile([p], v.cast::<f32>());
}
