//! The twin of `ui/instances/not_an_element.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, f32]))]
fn copy<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
