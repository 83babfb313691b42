//! Instances take the tiles of a `work` in turn.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: [1 warpgroup; 2]), grid(cdiv(M, 8)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 4>::new();
    match role() {
        Role::Producer => {
            ring.acquire().copy(x.tile([program_id(0), 0])).commit();
        }
        Role::Consumer => {
            let stage = ring.ready().wait();
            y.store_tile([program_id(0), 0], stage.get().load());
            stage.release();
        }
    }
}

fn main() {}
