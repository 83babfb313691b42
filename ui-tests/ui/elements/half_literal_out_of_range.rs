//! A float literal that would be infinite in the type of the tile beside it.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).max(-70000.0));
}

fn main() {}
