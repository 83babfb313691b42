//! The twin of `ui/signature/is_unsafe.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], 1);
}
