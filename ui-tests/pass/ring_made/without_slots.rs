//! The twin of `ui/ring_made/without_slots.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().zero().commit();
    ring.ready().wait().release();
    y.set([0], 1.0);
}
