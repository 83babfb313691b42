//! A ring has a name.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    Ring::<Smem<f32, 8, 8>, 2>::new().acquire().zero().commit();
    y.set([0], 1.0);
}

fn main() {}
