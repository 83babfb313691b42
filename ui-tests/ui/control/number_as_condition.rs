//! An integer is not a `bool`.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    if n {
        y.set([program_id(0)], n);
    }
}

fn main() {}
