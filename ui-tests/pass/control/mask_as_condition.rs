//! The twin of `ui/control/mask_as_condition.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    if (v > 0.0).any::<0>() {
        y.store_tile([p], v);
    }
}
