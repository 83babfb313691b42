//! The twin of `ui/tokens/bound_and_dropped.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let mine = out;
        mine.store(Tile::zeros());
    }
}
