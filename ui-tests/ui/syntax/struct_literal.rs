//! A struct inside a kernel: kernels have tuples.
use titan::prelude::*;

struct Pair { a: i32, b: i32 }

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let pair = Pair { a: p, b: 2 };
    y.set([p], pair.a * pair.b);
}

fn main() {}
