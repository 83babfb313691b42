//! A parameter is one name.
use titan::prelude::*;

#[titan::kernel]
fn k((a, b): (i32, i32), y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], a + b);
}

fn main() {}
