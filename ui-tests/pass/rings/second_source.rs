//! The twin of `ui/rings/second_source.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(a: &Tensor<f32, 2>, b: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f32, 8, 8>, Smem<f16, 8, 8>), 2>::new();
    ring.acquire().copy((a.tile([0, 0]), b.tile([0, 0]))).commit();
    let stage = ring.ready().wait();
    y.store_tile([0, 0], stage.a().load() * stage.b().load().cast());
    tprint!("{}", b.dim(0));
    stage.release();
}
