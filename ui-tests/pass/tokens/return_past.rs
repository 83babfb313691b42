//! The twin of `ui/tokens/return_past.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        let [i, j] = out.index();
        if i >= n {
            out.skip();
            continue;
        }
        out.store(x.load_tile::<8, 8>([i, j]));
    }
}
