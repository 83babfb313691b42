//! The twin of `ui/signature/returns_early_with_a_value.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    if p > 3 {
        return;
    }
    y.set([p], x.get([p]));
}
