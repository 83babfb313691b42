//! The twin of `ui/first_hour/stored_in_an_arm_and_after.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<32, 64>() {
        let [m, n] = out.index();
        let v = x.load_tile::<32, 64>([m, n]);
        if m > n {
            out.store(v * 2.0);
        } else {
            out.store(v);
        }
    }
}
