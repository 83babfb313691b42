//! `wait_filled` waits: there is nothing to wait for after it.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let ready = ring.ready();
    if let Some(stage) = ready.wait_filled() {
        stage.release();
    }
    let stage = ready.wait();
    y.store_tile([0, 0], stage.get().load());
    stage.release();
}

fn main() {}
