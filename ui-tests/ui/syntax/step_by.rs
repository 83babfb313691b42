//! Ranges are walked one by one.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut s = 0.0;
    for i in (0..8).step_by(2) {
        s += x.get([8 * p + i]);
    }
    y.set([p], s);
}

fn main() {}
