//! `row` and `col` make rank 1 broadcast; rank 2 has no direction to go.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let v = x.load_tile::<8, 8>([p, 0]);
    y.store_tile([p, 0], v - v.col());
}

fn main() {}
