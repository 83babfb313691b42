//! A scalar has no shape.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] n: i32, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], n);
}

fn main() {}
