//! A role does not hold every slot and wait for another.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 1>::new();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let one = ring.ready().wait();
    ring.acquire().copy(x.tile([0, 0])).commit();
    let two = ring.ready().wait();
    y.store_tile([0, 0], one.get().load() + two.get().load());
    one.release();
    two.release();
}

fn main() {}
