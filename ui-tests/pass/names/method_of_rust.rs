//! The twin of `ui/names/method_of_rust.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.get([p]);
    y.set([p], v * v);
}
