//! The twin of `ui/targets/three_warps.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1), instances(BN in [64, 128]), roles(load: 1 warp, work: 4 warps))]
fn k<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let ring = Ring::<Smem<f32, BN>, 1>::new();
    match role() {
        Role::Load => {
            ring.acquire().copy(x.tile([0])).commit();
        }
        Role::Work => {
            let stage = ring.ready().wait();
            y.store_tile([program_id(0)], stage.get().load());
            stage.release();
        }
    }
}
