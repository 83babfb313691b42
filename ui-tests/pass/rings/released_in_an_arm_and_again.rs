//! The twin of `ui/rings/released_in_an_arm_and_again.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    y.store_tile([0, 0], stage.get().load());
    if n > 3 {
        y.set([0, 0], 1.0);
    }
    stage.release();
}
