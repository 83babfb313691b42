//! The twin of `ui/tokens/tiles_of_a_row.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<1, 8>() {
        let [m, j] = out.index();
        out.store(x.load_tile::<1, 8>([m, j]));
    }
}
