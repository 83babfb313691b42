//! The twin of `ui/elements/division_by_zero.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) / 2);
}
