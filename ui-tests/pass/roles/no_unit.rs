//! The twin of `ui/roles/no_unit.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(producer: 1 warp, consumer: 4 warps), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let ring = Ring::<Smem<f32, 8, 8>, 2>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..n) {
                slot.copy(x.tile([0, t])).commit();
            }
        }
        Role::Consumer => {
            for (t, ready) in ring.consume(0..n) {
                let stage = ready.wait();
                y.store_tile([0, t], stage.get().load());
                stage.release();
            }
        }
    }
}
