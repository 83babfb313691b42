//! The twin of `ui/control/endless.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>, n: i32) {
    let mut i = 0;
    loop {
        i += 1;
        if i >= n {
            break;
        }
    }
    y.set([program_id(0)], i);
}
