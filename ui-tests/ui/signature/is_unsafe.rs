//! A kernel is safe to launch.
use titan::prelude::*;

#[titan::kernel]
unsafe fn k(y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], 1);
}

fn main() {}
