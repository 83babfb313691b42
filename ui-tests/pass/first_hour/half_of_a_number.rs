//! The twin of `ui/first_hour/half_of_a_number.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * 0.1);
}
