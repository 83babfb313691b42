//! A literal that its type cannot hold.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<u8, 1>, y: &mut Tensor<u8, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) & 256);
}

fn main() {}
