//! A method that `f32` has on the host only.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.get([p]);
    y.set([p], v.powi(2));
}

fn main() {}
