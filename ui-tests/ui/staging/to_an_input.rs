//! A store is to an output.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    ring.acquire().write(v).store(x, [0, 0]).wait();
    y.store_tile([0, 0], v);
}

fn main() {}
