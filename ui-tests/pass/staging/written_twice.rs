//! The twin of `ui/staging/written_twice.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    let slot = ring.acquire();
    let first = slot.write(v);
    let written = ring.acquire().write(v + 1.0);
    first.store(y, [0, 0]).wait();
    written.store(y, [0, 1]).wait();
}
