//! The twin of `ui/memory/gather_index_count.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let i = iota::<8>();
    y.store_tile([p], x.gather([i, i]));
}
