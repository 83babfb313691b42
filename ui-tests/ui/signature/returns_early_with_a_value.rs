//! A kernel returns nothing, early or late.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    if p > 3 {
        return x.get([p]);
    }
    y.set([p], x.get([p]));
}

fn main() {}
