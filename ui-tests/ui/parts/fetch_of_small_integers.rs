//! Bytes have no atomics.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<u8, 1>, y: &mut Tensor<u8, 1>, z: &mut Tensor<u8, 1>) {
    let p = program_id(0);
    z.set([p], y.fetch_or([p], x.get([p])));
}

fn main() {}
