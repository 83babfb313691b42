//! The twin of `ui/syntax/closure_assigns.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    let sum = v.reduce_sum::<0>();
    y.store_tile([p], v / sum);
}
