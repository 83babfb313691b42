//! The twin of `ui/targets/gfx942_no_code.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(allow(no_code))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let ring = Ring::<Smem<f32, 128, 256>, 1>::new();
    ring.acquire().copy(x.tile([m, n])).commit();
    let stage = ring.ready().wait();
    y.store_tile([m, n], stage.get().load() * 2.0);
    stage.release();
}
