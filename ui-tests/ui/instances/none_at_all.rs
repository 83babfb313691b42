//! A generic kernel without `instances`.
use titan::prelude::*;

#[titan::kernel]
fn copy<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
