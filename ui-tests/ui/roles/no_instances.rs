//! A role has at least one instance.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: [1 warpgroup; 0]))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 4>::new();
    let work = y.work::<8, 8>();
    match role() {
        Role::Producer => {
            for at in work.indices() {
                ring.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let stage = ring.ready().wait();
                let t = stage.get().load();
                stage.release();
                out.store(t);
            }
        }
    }
}

fn main() {}
