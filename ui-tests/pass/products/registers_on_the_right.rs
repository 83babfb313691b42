//! The twin of `ui/products/registers_on_the_right.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let p = Tile::<f16, 16, 8>::ones();
    let stage = ring.ready().wait();
    let product = mma(stage.a(), p, Tile::<f32, 8, 8>::zeros());
    y.store_tile([0, 0], product);
    stage.release();
}
