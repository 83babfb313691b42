//! Every part of a stage is joined.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let [p, q, r] = ring.ready().wait().split::<3>();
    y.store_tile([0, 0], r.get().load());
    Stage::join([p, q]).release();
}

fn main() {}
