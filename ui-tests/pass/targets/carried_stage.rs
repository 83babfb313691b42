//! The twin of `ui/targets/carried_stage.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1), instances(BN in [64, 128]), targets(cpu))]
fn k<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let ring = Ring::<Smem<f32, BN>, 2>::new();
    ring.acquire().copy(x.tile([0])).commit();
    let mut stage = ring.ready().wait();
    for t in 0..n {
        ring.acquire().copy(x.tile([t])).commit();
        stage.release();
        stage = ring.ready().wait();
    }
    y.store_tile([program_id(0)], stage.get().load());
    stage.release();
}
