//! A ring is read.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: 1 warp), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..n) {
                slot.copy(x.tile([0, t])).commit();
            }
        }
        Role::Consumer => {
            y.set([0, n], 1.0);
        }
    }
}

fn main() {}
