//! An MMA is waited for once.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let stage = ring.ready().wait();
    let product = mma_async(stage.a(), stage.b().t(), Tile::zeros());
    y.store_tile([0, 0], product.wait());
    y.store_tile([0, 0], product.wait());
    stage.release();
}

fn main() {}
