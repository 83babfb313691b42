//! There is no loop to leave.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    if n < 0 {
        break;
    }
    y.set([program_id(0)], n);
}

fn main() {}
