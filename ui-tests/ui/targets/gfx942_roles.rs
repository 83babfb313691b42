//! Roles that cannot be fused, as the target that is listed needs it: their loops do not count alike.
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
            for t in 4..8 {
                let stage = ring.ready().wait();
                y.store_tile([0, t - 4], stage.get().load());
                stage.release();
            }
        }
    }
}

fn main() {}
