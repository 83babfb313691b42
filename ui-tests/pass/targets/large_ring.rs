//! The twin of `ui/targets/large_ring.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 4 warps), targets(cpu, sm_90a))]
fn k(#[shape(M, 256)] x: &Tensor<f32, 2>, #[shape(M, 256)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 128, 256>, 1>::new();
    let tiles = y.work::<128, 256>();
    match role() {
        Role::Load => {
            for at in tiles.indices() {
                ring.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Work => {
            for out in tiles.tiles() {
                let stage = ring.ready().wait();
                out.store(stage.get().load());
                stage.release();
            }
        }
    }
}
