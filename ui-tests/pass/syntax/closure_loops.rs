//! The twin of `ui/syntax/closure_loops.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut half = x.load_tile::<8>([p]);
    while (half > 1.0).any::<0>() {
        half = select(half > 1.0, half / 2.0, half);
    }
    y.store_tile([p], half);
}
