//! A side of a ring is not left for the next round of a loop around it.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    'rounds: for i in 0..2 {
        for (t, slot) in ring.produce(0..1) {
            slot.copy(x.tile([i, t])).commit();
            continue 'rounds;
        }
    }
    for (t, ready) in ring.consume(0..2) {
        ready.wait().release();
        y.set([0, t], 1.0);
    }
}

fn main() {}
