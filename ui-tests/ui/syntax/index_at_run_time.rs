//! An array is indexed by constants: its elements are registers.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, which: i32) {
    let steps = [1, 2, 4];
    let step = steps[which];
    y.set([program_id(0)], step);
}

fn main() {}
