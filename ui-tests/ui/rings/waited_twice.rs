//! A claimed stage is waited for once.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let ready = ring.ready();
    let stage = ready.wait();
    let again = ready.wait();
    y.store_tile([0, 0], stage.get().load() + again.get().load());
    stage.release();
    again.release();
}

fn main() {}
