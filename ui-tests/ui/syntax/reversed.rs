//! Ranges are walked upwards.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut s = 0.0;
    for i in (0..8).rev() {
        s = s * x.get([8 * p + i]) + 1.0;
    }
    y.set([p], s);
}

fn main() {}
