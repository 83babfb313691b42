//! A loop that nothing leaves.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    let mut i = 0;
    loop {
        i += 1;
        y.set([program_id(0)], i * n);
    }
}

fn main() {}
