//! The twin of `ui/pipelines/copied_from_another_part.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    let (m, n) = (program_id(0), program_id(1));
    ring.acquire().copy(x.tile([0, n])).commit();
    let stage = ring.ready().wait();
    y.store_tile([m, n], stage.get().load() + x.load_tile::<8, 8>([m, n]));
    stage.release();
}
