//! The twin of `ui/control/used_before_assigned.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    let v;
    if n > 0 {
        v = 1;
    } else {
        v = 2;
    }
    y.set([program_id(0)], v);
}
