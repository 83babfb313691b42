//! The twin of `ui/tokens/labelled_break.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    'rounds: for round in 0..n {
        if round > 3 {
            break 'rounds;
        }
        for out in y.tiles::<8, 8>() {
            let [i, j] = out.index();
            if i + j >= round {
                out.skip();
                continue;
            }
            out.store(x.load_tile::<8, 8>([i, j]));
        }
    }
}
