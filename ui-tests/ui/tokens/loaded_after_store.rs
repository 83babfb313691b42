//! A stored tile is gone: load it before.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        out.store(Tile::zeros());
        tprint!("{}", out.load().reduce_max::<1>().reduce_max::<0>());
    }
}

fn main() {}
