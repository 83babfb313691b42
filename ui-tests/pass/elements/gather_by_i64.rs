//! The twin of `ui/elements/gather_by_i64.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.gather([ix.load_tile::<8>([p])]));
}
