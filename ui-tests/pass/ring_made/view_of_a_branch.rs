//! The twin of `ui/ring_made/view_of_a_branch.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let stage = ring.ready().wait();
    let t = if x.dim(0) > 8 { stage.a().load() } else { stage.b().load() };
    y.store_tile([0, 0], t.cast::<f32>().t().reshape::<8, 16>().split::<8, 8>().0);
    stage.release();
}
