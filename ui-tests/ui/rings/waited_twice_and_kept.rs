//! The second wait is the mistake, not that its stage is not released.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let ready = ring.ready();
    let stage = ready.wait();
    let other = ready.wait();
    y.store_tile([0, 0], stage.get().load() + other.get().load());
    stage.release();
}

fn main() {}
