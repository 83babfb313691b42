//! Nothing is kept from tile to tile where instances take them in turn.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: [1 warpgroup; 2]))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 4>::new();
    let work = y.work::<8, 8>();
    match role() {
        Role::Producer => for at in work.indices() {
            ring.acquire().copy(x.tile(at)).commit();
        },
        Role::Consumer => {
            let mut sum = Tile::<f32, 8, 8>::zeros();
            for out in work.tiles() {
                let stage = ring.ready().wait();
                sum = sum + stage.get().load();
                stage.release();
                out.store(sum);
            }
        }
    }
}

fn main() {}
