//! The pipeline of README.md without the release.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup))]
fn twice(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 64, 64>, 3>::new();
    let staging = Staging::<Smem<f32, 64, 64>, 2>::new();
    let tiles = y.work::<64, 64>();
    match role() {
        Role::Load => for at in tiles.indices() {
            ring.acquire().copy(x.tile(at)).commit();
        },
        Role::Work => for out in tiles.tiles() {
            let stage = ring.ready().wait();
            let written = staging.acquire().write(stage.get().load() * 2.0);
            out.store_from(written).wait();
        },
    }
}

fn main() {}
