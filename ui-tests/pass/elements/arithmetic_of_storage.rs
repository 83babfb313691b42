//! The twin of `ui/elements/arithmetic_of_storage.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<e4m3, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).cast::<f32>();
    y.store_tile([p], (v + v));
}
