//! The twin of `ui/pipelines/slot_dropped.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    let slot = ring.acquire();
    slot.zero().commit();
    let stage = ring.ready().wait();
    y.store_tile([0, 0], stage.get().load());
    stage.release();
}
