//! A string is not a value of a kernel.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let name = "k";
    y.set([program_id(0)], name);
}

fn main() {}
