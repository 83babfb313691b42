//! The twin of `ui/pipelines/filled_twice_for_each_tile.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let pipe = Ring::<Smem<f32, 64, 64>, 3>::new();
    let out_buf = Staging::<Smem<f32, 64, 64>, 2>::new();
    let tiles = y.work::<64, 64>();
    match role() {
        Role::Load => {
            for at in tiles.indices() {
                pipe.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Work => {
            for out in tiles.tiles() {
                let stage = pipe.ready().wait();
                let written = out_buf.acquire().write(stage.get().load() * 2.0);
                stage.release();
                out.store_from(written).wait();
            }
        }
    }
}
