//! The twin of `ui/first_hour/power.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], v * v);
}
