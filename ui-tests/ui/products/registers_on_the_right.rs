//! The right operand of an MMA in flight is in a stage.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let p = Tile::<f16, 16, 8>::ones();
    let stage = ring.ready().wait();
    let product = mma_async(stage.a(), p, Tile::<f32, 8, 8>::zeros());
    y.store_tile([0, 0], product.wait());
    stage.release();
}

fn main() {}
