//! The twin of `ui/tokens/stored_after_skip.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        let v = out.load();
        if n < 0 {
            out.skip();
        } else {
            out.store(v + 1.0);
        }
    }
}
