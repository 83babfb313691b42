//! The twin of `ui/rings/waited_twice_and_kept.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let ready = ring.ready();
    let stage = ready.wait();
    y.store_tile([0, 0], stage.get().load() + stage.get().load());
    stage.release();
}
