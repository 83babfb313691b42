//! A stage is used before its copies are complete, twice.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 4 warps))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 64, 64>, 3>::new();
    let tiles = y.work::<64, 64>();
    match role() {
        Role::Load => for at in tiles.indices() {
            ring.acquire().copy(x.tile(at)).commit();
        },
        Role::Work => for out in tiles.tiles() {
            let stage = ring.ready();
            out.store(stage.get().load());
            stage.release();
        },
    }
}

fn main() {}
