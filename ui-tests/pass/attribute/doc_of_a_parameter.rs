//! The twin of `ui/attribute/doc_of_a_parameter.rs`, without the mistake.
use titan::prelude::*;

/// `x` is the input.
#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
