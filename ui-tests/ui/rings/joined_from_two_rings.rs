//! Parts of stages with other tiles are not joined.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    let other = Ring::<Smem<f32, 8, 4>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    other.acquire().copy(x.tile([0, 0])).commit();
    let [p, q] = ring.ready().wait().split::<2>();
    let [r, s] = other.ready().wait().split::<2>();
    y.store_tile([0, 0], p.get().load());
    Stage::join([p, q, r]).release();
    Stage::join([s]).release();
}

fn main() {}
