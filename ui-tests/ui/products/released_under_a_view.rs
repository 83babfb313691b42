//! A tile of a stage is read before the stage is released.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    let tile = stage.get();
    stage.release();
    y.store_tile([0, 0], tile.load());
}

fn main() {}
