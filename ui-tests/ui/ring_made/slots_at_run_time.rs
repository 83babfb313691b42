//! The number of slots is a constant.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let ring = Ring::<Smem<f32, 8, 8>, { y.dim(0) }>::new();
    ring.acquire().zero().commit();
    ring.ready().wait().release();
    y.set([0], 1.0);
}

fn main() {}
