//! What was written to a slot is stored once.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    let written = ring.acquire().write(v);
    written.store(y, [0, 0]).wait();
    written.store(y, [0, 1]).wait();
}

fn main() {}
