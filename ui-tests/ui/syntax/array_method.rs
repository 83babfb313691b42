//! Arrays have elements, and nothing else.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let a = [p, p + 1];
    for i in a.iter() {
        y.set([p], x.get([i]));
    }
}

fn main() {}
