//! A kernel is not `async`: launches are.
use titan::prelude::*;

#[titan::kernel]
async fn k(y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], 1);
}

fn main() {}
