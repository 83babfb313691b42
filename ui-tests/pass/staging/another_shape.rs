//! The twin of `ui/staging/another_shape.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    let v = x.load_tile::<8, 8>([0, 0]);
    ring.acquire().write(v).store(y, [0, 0]).wait();
}
