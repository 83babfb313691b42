//! Roles, which have no code on the target that is listed.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 4 warps), targets(gfx942), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    match role() {
        Role::Load => {
            for t in 0..n {
                ring.acquire().copy(x.tile([0, t])).commit();
            }
        }
        Role::Work => {
            for t in 0..n {
                let stage = ring.ready().wait();
                y.store_tile([0, t], stage.get().load());
                stage.release();
            }
        }
    }
}

fn main() {}
