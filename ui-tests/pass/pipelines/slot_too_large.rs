//! The twin of `ui/pipelines/slot_too_large.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 64, 256>, 1>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    y.store_tile([0, 0], stage.get().load());
    stage.release();
}
