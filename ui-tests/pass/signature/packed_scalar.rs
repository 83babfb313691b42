//! The twin of `ui/signature/packed_scalar.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(zero: i8, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], zero.cast());
}
