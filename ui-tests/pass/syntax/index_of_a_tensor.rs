//! The twin of `ui/syntax/index_of_a_tensor.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.get([p]);
    y.set([p], v);
}
