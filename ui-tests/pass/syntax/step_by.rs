//! The twin of `ui/syntax/step_by.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut s = 0.0;
    for i in 0..4 {
        s += x.get([8 * p + 2 * i]);
    }
    y.set([p], s);
}
