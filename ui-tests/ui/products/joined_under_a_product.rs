//! A part is not joined while an MMA reads it.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let [p, q] = ring.ready().wait().split::<2>();
    let product = mma_async(p.a(), p.b().t(), Tile::zeros());
    let stage = Stage::join([p, q]);
    y.store_tile([0, 0], product.wait());
    stage.release();
}

fn main() {}
