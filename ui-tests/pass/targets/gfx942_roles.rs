//! The twin of `ui/targets/gfx942_roles.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 4 warps), targets(gfx942), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    match role() {
        Role::Load => {
            for t in 0..4 {
                ring.acquire().copy(x.tile([0, t])).commit();
            }
        }
        Role::Work => {
            for t in 0..4 {
                let stage = ring.ready().wait();
                y.store_tile([0, t], stage.get().load());
                stage.release();
            }
        }
    }
}
