//! An MMA that is never waited for still reads its stage.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let stage = ring.ready().wait();
    let _product = mma_async(stage.a(), stage.b().t(), Tile::<f32, 8, 8>::zeros());
    stage.release();
    y.store_tile([0, 0], Tile::<f32, 8, 8>::zeros());
}

fn main() {}
