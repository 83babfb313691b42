//! The twin of `ui/instances/shape_parameter.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(N in [8]))]
fn copy<const N: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<N>([p]));
}
