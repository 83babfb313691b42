//! A function of the user's with the name of one of the language.
use titan::prelude::*;

fn cdiv(a: i32, b: i32) -> i32 {
    a / b
}

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    y.set([program_id(0)], cdiv(n, 8));
}

fn main() {}
