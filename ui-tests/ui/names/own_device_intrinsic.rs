//! A device function with the name of a function of the language.
use titan::prelude::*;

#[titan::device]
fn cdiv(a: i32, b: i32) -> i32 {
    a / b
}

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    y.set([program_id(0)], cdiv(n, 8));
}

fn main() {}
