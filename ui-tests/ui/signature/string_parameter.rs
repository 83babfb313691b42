//! A `String` does not go to a device.
use titan::prelude::*;

#[titan::kernel]
fn k(name: String, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], 1);
}

fn main() {}
