//! Half a byte is not an argument.
use titan::prelude::*;

#[titan::kernel]
fn k(zero: i4, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], zero.cast());
}

fn main() {}
