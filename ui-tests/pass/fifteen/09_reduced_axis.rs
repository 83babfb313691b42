//! The twin of `ui/fifteen/09_reduced_axis.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64, 16>([p, 0]).reduce_sum::<1>());
}
