//! Index tiles are `i32` too.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, ix: &Tensor<i64, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.gather([ix.load_tile::<8>([p])]));
}

fn main() {}
