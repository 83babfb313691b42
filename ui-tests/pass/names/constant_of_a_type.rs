//! The twin of `ui/names/constant_of_a_type.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<bf16, 1>, y: &mut Tensor<bf16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) + 1.0);
}
