//! The twin of `ui/names/own_intrinsic.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    y.set([program_id(0)], cdiv(n, 8));
}
