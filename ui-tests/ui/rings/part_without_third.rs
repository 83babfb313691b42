//! A part shows the tiles of its stage.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let [p, q] = ring.ready().wait().split::<2>();
    y.store_tile([0, 0], p.d().load().cast());
    Stage::join([p, q]).release();
}

fn main() {}
