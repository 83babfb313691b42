//! A variable that has a value on one path only.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    let v;
    if n > 0 {
        v = 1;
    }
    y.set([program_id(0)], v);
}

fn main() {}
