//! The twin of `ui/first_hour/runtime_extent_of_a_variable.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BN in [64]))]
fn k<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}
