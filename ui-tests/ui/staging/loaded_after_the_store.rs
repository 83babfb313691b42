//! What is stored from a staging slot is not read again: that the store was waited for says only that the slot has been read.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 1>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    ring.acquire().write(v).store(y, [0, 0]).wait();
    let again = y.load_tile::<8, 8>([0, 0]);
    y.store_tile([0, 1], again);
}

fn main() {}
