//! The twin of `ui/syntax/closure_may_trap.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let nine = x.get([9]);
    let v = x.load_tile::<8>([p]).map(|e| if e > 2.0 { nine } else { e });
    y.store_tile([p], v);
}
