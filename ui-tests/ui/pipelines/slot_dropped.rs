//! A slot is filled.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    let _slot = ring.acquire();
    let stage = ring.ready().wait();
    y.store_tile([0, 0], stage.get().load());
    stage.release();
}

fn main() {}
