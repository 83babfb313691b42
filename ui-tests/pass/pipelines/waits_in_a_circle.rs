//! The twin of `ui/pipelines/waits_in_a_circle.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: 1 warp), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let ring = Ring::<Smem<f32, 8, 8>, 1>::new();
    let other = Ring::<Smem<f32, 8, 8>, 1>::new();
    match role() {
        Role::Producer => {
            ring.acquire().copy(x.tile([0, 0])).commit();
            other.ready().wait().release();
        }
        Role::Consumer => {
            ring.ready().wait().release();
            other.acquire().zero().commit();
            y.set([0, n], 1.0);
        }
    }
}
