//! The twin of `ui/first_hour/shapes_in_some_instances.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BN in [8, 16]))]
fn k<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]) + x.load_tile::<BN>([p]));
}
