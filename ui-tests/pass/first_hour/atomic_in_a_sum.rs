//! The twin of `ui/first_hour/atomic_in_a_sum.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, sum: &mut Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    sum.atomic_add_tile([0], x.load_tile::<8>([p]));
    y.store_tile([p], 1.0 + x.load_tile::<8>([p]));
}
