//! The twin of `ui/tokens/loaded_after_store.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        tprint!("{}", out.load().reduce_max::<1>().reduce_max::<0>());
        out.store(Tile::zeros());
    }
}
