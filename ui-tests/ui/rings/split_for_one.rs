//! A stage is split for at least two readers.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let [p] = ring.ready().wait().split::<1>();
    y.store_tile([0, 0], p.get().load());
    Stage::join([p]).release();
}

fn main() {}
