//! A claim is made for each stage.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let ready = ring.ready();
    for i in 0..2 {
        let stage = ready.wait();
        y.store_tile([0, i], stage.get().load());
        stage.release();
    }
}

fn main() {}
