//! The twin of `ui/pipelines/staging_slot_again.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    let first = ring.acquire().write(v).store(y, [0, 0]);
    let second = ring.acquire().write(v + 1.0).store(y, [0, 1]);
    first.wait();
    second.wait();
}
