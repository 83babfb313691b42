//! The twin of `ui/instances/uncovered.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, bf16], BN in [64]))]
fn copy<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}
