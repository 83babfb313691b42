//! A stage that was released is not read.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    stage.release();
    y.store_tile([0, 0], stage.get().load());
}

fn main() {}
