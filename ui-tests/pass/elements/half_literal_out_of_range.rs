//! The twin of `ui/elements/half_literal_out_of_range.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).max(-65504.0));
}
