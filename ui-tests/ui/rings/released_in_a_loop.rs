//! A stage that is acquired before a loop is released after it.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    for i in 0..4 {
        y.store_tile([i, 0], stage.get().load());
        stage.release();
    }
}

fn main() {}
