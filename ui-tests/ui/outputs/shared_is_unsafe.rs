//! Who leaves the rule says so.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let at = ix.get([program_id(0)]);
    y.shared().set([at], 1.0);
}

fn main() {}
