//! The twin of `ui/staging/loaded_after_the_store.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let v = x.load_tile::<8, 8>([0, 0]);
    y.store_tile([0, 0], v);
    let again = y.load_tile::<8, 8>([0, 0]);
    y.store_tile([0, 1], again);
}
