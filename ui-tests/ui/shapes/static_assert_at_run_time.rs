//! What is known at run time only is `tassert!`'s.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    static_assert!(n > 0);
    y.set([program_id(0)], n);
}

fn main() {}
