//! The twin of `ui/tokens/stored_in_a_loop.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        let mut v = out.load();
        for _ in 0..n {
            v += 1.0;
        }
        out.store(v);
    }
}
