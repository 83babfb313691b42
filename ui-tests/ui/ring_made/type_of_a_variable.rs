//! `Smem` is part of the type of a ring.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let stage = ring.ready().wait();
    let tile: Smem<f32, 8, 8> = stage.get();
    y.store_tile([0, 0], tile.load());
    stage.release();
}

fn main() {}
