//! A ring says how many slots it has.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let ring = Ring::<Smem<f32, 8, 8>>::new();
    ring.acquire().zero().commit();
    ring.ready().wait().release();
    y.set([0], 1.0);
}

fn main() {}
