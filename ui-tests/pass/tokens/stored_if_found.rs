//! The twin of `ui/tokens/stored_if_found.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        let mut i = 0;
        loop {
            if i == n {
                out.skip();
                break;
            }
            if x.get([i]) > 0.0 {
                out.store(Tile::<f32, 8, 8>::full(x.get([i])));
                break;
            }
            i += 1;
        }
    }
}
