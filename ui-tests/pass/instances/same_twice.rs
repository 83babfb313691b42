//! The twin of `ui/instances/same_twice.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BM in [64, 32, 16]))]
fn k<const BM: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m], x.load_tile::<BM>([m]));
}
