//! The twin of `ui/signature/destructured.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(a: i32, b: i32, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], a + b);
}
