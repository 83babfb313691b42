//! `powf` is for floats.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).powf(2));
}

fn main() {}
