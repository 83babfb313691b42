//! A divisor that one instance makes zero.
use titan::prelude::*;

#[titan::kernel(instances(G in [4, 0]))]
fn k<const G: i32>(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.set([p], p % G);
}

fn main() {}
