//! The twin of `ui/syntax/reversed.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut s = 0.0;
    for i in 0..8 {
        s = s * x.get([8 * p + 7 - i]) + 1.0;
    }
    y.set([p], s);
}
