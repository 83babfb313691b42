//! A ring is not assigned.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    let mut one = Ring::<Smem<f32, 8, 8>, 2>::new();
    one.acquire().zero().commit();
    one = ring;
    one.ready().wait().release();
    y.set([0], 1.0);
}

fn main() {}
