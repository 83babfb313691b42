//! A `Vec` is the host's; devices have tensors.
use titan::prelude::*;

#[titan::kernel]
fn k(x: Vec<f32>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x[p]);
}

fn main() {}
