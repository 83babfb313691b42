//! The twin of `ui/roles/continue_out_of_produce.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    for i in 0..2 {
        for (t, slot) in ring.produce(0..1) {
            slot.copy(x.tile([i, t])).commit();
            continue;
        }
    }
    for (t, ready) in ring.consume(0..2) {
        ready.wait().release();
        y.set([0, t], 1.0);
    }
}
