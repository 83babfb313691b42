//! The twin of `ui/products/stage_for_two_accumulators.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let stage = ring.ready().wait();
    let a = mma(stage.a(), stage.b().t(), Tile::<f32, 8, 8>::zeros());
    let b = Acc::<f32, D2<8, 8>, 1>::zeros().mma(stage, |s| (s.b(), s.a().t()));
    y.store_tile([0, 0], a + b.finish());
}
