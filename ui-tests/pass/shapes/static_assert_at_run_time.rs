//! The twin of `ui/shapes/static_assert_at_run_time.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    tassert!(n > 0);
    y.set([program_id(0)], n);
}
